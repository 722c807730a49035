"""storage: array elements as they lie in memory, where that is not how a value is computed with.

A bool is a byte in memory. Any byte but 0 counts as true, so that memory that NumPy did not write,
such as a view of other bytes, has a defined meaning; what is stored is 0 or 1.
"""

from __future__ import annotations

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRFunction,
    IRName,
    IRNode,
    Statement,
)
from tack.ir.traversal import transform_ir
from tack.model.dtypes import bool_, u8
from tack.passes.atomic_loops import change, exchange, replace
from tack.passes.build import both, cast, compare, either, retype
from tack.passes.decompose import Block
from tack.passes.localize import localize

__all__ = ["store_as_bytes"]


def store_as_bytes(function: IRFunction) -> IRFunction | None:
    """Makes the bool arrays of a decomposed function arrays of u8, in place; None without any."""
    arrays = {name for name, array in function.arrays.items() if array.dtype is bool_}
    if not arrays:
        return None
    names = {param.name for param in function.params} | set(function.locals)

    def rewrite(node: IRNode) -> IRNode | list[Statement] | None:
        if isinstance(node, IRArrayLoad) and node.array in arrays:
            return _truth(IRArrayLoad(node.array, node.indices, u8, node.flat))
        if isinstance(node, IRArrayStore) and node.array in arrays:
            node.value = cast(node.value, u8)
        if isinstance(node, IRAtomic) and node.array in arrays:
            out = Block(function, names)
            old = _truth(_atomic_byte(node, out))
            return [*out.statements, IRAssign(node.target, old, bool_)]
        return None

    transform_ir(function, rewrite)
    retype(function, arrays, u8)
    return localize(function)


def _truth(byte: Expression) -> Expression:
    return compare("!=", byte, 0)


def _atomic_byte(node: IRAtomic, out: Block) -> IRName:
    """Does what an atomic does to a bool to the byte that it is; the old byte."""
    value = out.hold(node.value)
    if node.op == "exchange":
        return exchange(out, node, cast(value, u8))
    if node.compare is not None:
        expected = out.hold(node.compare)
        return replace(
            out,
            node,
            cast(expected, u8),
            cast(value, u8),
            lambda now: compare("==", _truth(now), expected),
        )

    def changed(seen: Expression, body: Block) -> Expression:
        old = body.hold(_truth(seen))
        if node.op == "xor":
            return cast(compare("!=", old, value), u8)
        return cast((both if node.op == "and" else either)(old, value), u8)

    return change(out, node, u8, changed)
