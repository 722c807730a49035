"""Small kernels for tests of the IR and its passes: from source text, or node by node."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import Any

import tack
from tack.ir import nodes as ir
from tack.ir.positions import Positions
from tack.ir.verify import verify_ir
from tack.lang.lower import lower_kernel
from tack.model.dtypes import DTYPES, DType, f32, i64
from tack.model.signature import Signature
from tack.passes.pipeline import PASSES

__all__ = ["array", "binary", "elementwise", "kernel", "lowered", "name", "prepared", "scalar"]


def lowered(body: str, signature: str, before: str = "") -> ir.IRFunction:
    """The IR of ``for i in range(1):`` around ``body``.

    ``signature`` names the parameters: ``"x: u8[:], n: i64"``.
    """
    params = [each.partition(": ")[::2] for each in re.split(r",\s*(?=\w+: )", signature)]
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    names = ", ".join(name for name, _ in params)
    text = f"{before}\n@tack.kernel\ndef kernel({names}):\n    for i in range(1):\n{lines}\n"
    file = f"<kernel {hash((text, signature))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {"tack": tack, "__name__": "tests.kernels"}
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    specs = ", ".join(spec for _, spec in params)
    return lower_kernel(namespace["kernel"].definition, Signature.parse(specs))


def prepared(function: ir.IRFunction, stage: str = "decomposed") -> ir.IRFunction:
    """``function`` taken to ``stage``, verified on the way."""
    verify_ir(function, "lowered")
    for step, reached in PASSES:
        verify_ir(step(function) or function, reached)
        if reached == stage:
            return function
    raise ValueError(stage)


# Node by node.


def scalar(name: str, dtype: DType = i64) -> ir.IRParam:
    return ir.IRParam(name, dtype)


def array(name: str, dtype: DType = i64, *dims: int | None) -> ir.IRParam:
    return ir.IRParam(name, dtype, dims or (None,))


def name(text: str, dtype: DType | None = i64) -> ir.IRName:
    return ir.IRName(text, dtype)


def kernel(
    params: Sequence[ir.IRParam],
    body: Sequence[ir.Statement],
    *,
    extents: Sequence[ir.Expression] | None = None,
    index_vars: Sequence[str] = ("i",),
    **tables: Any,
) -> ir.IRFunction:
    """A kernel whose parallel loop has ``body``; by default over one iteration."""
    over = [ir.IRConstant(1, i64)] if extents is None else list(extents)
    loop = ir.IRParallelFor(list(index_vars), over, list(body))
    return ir.IRFunction("test:kernel", list(params), [loop], f32, Positions(), **tables)


def elementwise(node: ir.Expression, *operands: tuple[str, DType]) -> ir.IRFunction:
    """A typed kernel that stores ``node``, of the names of operands, for each of their elements.

    Operand ``a`` is read from the array ``a_in``, into a local; ``out`` has the results.
    """
    assert node.dtype is not None
    params = [array(f"{each}_in", dtype) for each, dtype in operands]
    reads: list[ir.Statement] = [
        ir.IRAssign(each, ir.IRArrayLoad(f"{each}_in", [name("i")], dtype), dtype)
        for each, dtype in operands
    ]
    if node.dtype.is_bool:
        node = ir.IRCast(node, DTYPES["u8"])
    store = ir.IRArrayStore("out", [name("i")], node)
    return kernel(
        [array("out", node.dtype), *params],
        [*reads, store],
        extents=[ir.IRDimSize("out", 0, i64)],
        locals=dict(operands),
    )


def binary(op: str, dtype: DType, right: DType | None = None) -> ir.IRFunction:
    """`elementwise` of ``a op b``."""
    other = dtype if right is None else right
    node = ir.IRBinOp(op, name("a", dtype), name("b", other), dtype)
    return elementwise(node, ("a", dtype), ("b", other))
