"""Lowering gives the IR its shape: one parallel loop from 0, locals of iterations, extents."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
from ir_building import lowered, prepared

from tack.ir import nodes as ir
from tack.ir.traversal import kernel_loop, walk_ir
from tack.lang.lower import lower_kernel
from tack.model.signature import Signature
from tack.passes.pipeline import prepare

Load = Callable[[str], ModuleType]


def function_of(load: Load, text: str, signature: str) -> ir.IRFunction:
    kernel = load(text).kernel
    return lower_kernel(kernel.definition, Signature.parse(signature))


def test_a_start_of_the_parallel_loop_moves_into_its_body(load: Load) -> None:
    text = "@tack.kernel\ndef kernel(x, n):\n    for i in range(3, n, 2):\n        x[i] = i"
    loop = kernel_loop(function_of(load, text, "i64[:], i64"))
    assert loop.index_vars == ["i.index"]
    assert str(loop).splitlines() == [
        "parallel for i.index in ndrange(trip_count(3, n, 2)):",
        "    i = (3 + (i.index * 2))",
        "    x[i] = i",
    ]
    x = np.zeros(8, np.int64)
    load(text).kernel(x, 8)
    assert list(x) == [0, 0, 0, 3, 0, 5, 0, 7]


def test_no_pass_flattens_the_parallel_loop(load: Load) -> None:
    text = """
        @tack.kernel
        def kernel(x):
            for i, j, k in tack.ndrange(x.shape[0], 2, 3):
                x[i] += j * k
    """
    loop = kernel_loop(prepare(function_of(load, text, "i64[:]")))
    assert loop.index_vars == ["i", "j", "k"]
    assert [str(each) for each in loop.extents] == ["x.shape[0]", "2:i64", "3:i64"]


def test_a_scalar_parameter_that_the_body_assigns_is_a_local_of_the_iteration(load: Load) -> None:
    function = prepared(lowered("n += 1\nx[n] = n", "x: i64[:], n: i64"), "localized")
    assert list(function.locals) == ["n.own"]
    assert [param.name for param in function.params] == ["x", "n"]
    text = (
        "@tack.kernel\ndef kernel(x, n):\n    for i in range(3):\n        n += i\n        x[i] = n"
    )
    x = np.zeros(3)
    load(text).kernel(x, 10)
    assert list(x) == [10, 11, 12]


def test_an_extent_is_read_at_run_time_unless_it_is_pinned() -> None:
    body = "x[0, 0] = x.shape[0] * x.shape[1]"
    function = prepared(lowered(body, "x: i64[:, 7]"), "resolved")
    read = [node for node in walk_ir(function) if isinstance(node, ir.IRDimSize)]
    assert [(node.array, node.dim) for node in read] == [("x", 0)]
    assert "x[0, 0] = (x.shape[0] * 7:i64)" in str(function)


def test_comparisons_and_logic_are_bool_and_convert_to_0_and_1() -> None:
    body = "x[0] = (a < 3) and not (a == 2)\nx[1] = int(a < 3)"
    function = prepared(lowered(body, "x: i8[:], a: i64"), "typed")
    kinds = ir.IRCompare | ir.IRBoolOp | ir.IRUnaryOp
    logic = [node for node in walk_ir(function) if isinstance(node, kinds)]
    assert len(logic) == 5
    assert {node.dtype.name for node in logic if node.dtype is not None} == {"bool"}
    stores = [node for node in walk_ir(function) if isinstance(node, ir.IRArrayStore)]
    assert [str(node.value) for node in stores] == [
        "i8(((a < 3:i64) and (not (a == 2:i64))))",
        "i8(i64((a < 3:i64)))",
    ]
