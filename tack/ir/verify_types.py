"""The checks of types that hold from the typed stage on; a part of `tack.ir.verify`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from tack.ir.nodes import (
    BIT_COUNTS,
    ELEMENTARY,
    PREDICATES,
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRDimSize,
    IRFunction,
    IRIf,
    IRIfExp,
    IRName,
    IRNode,
    IRParallelFor,
    IRSequentialFor,
    IRStride,
    IRTripCount,
    IRUnaryOp,
    IRWhile,
    dtype_of,
)
from tack.model.dtypes import DType, bool_, i64, round_float

__all__ = ["TYPE_CHECKS"]

_COUNTED: Final = frozenset({"<<", ">>", "**"})
"""Operators whose right operand keeps a type of its own."""

_INTEGERS_ONLY: Final = frozenset({"**", "<<", ">>", "&", "|", "^", "cdiv", "cmod", "shl", "shr"})
_OF_BOOLS: Final = frozenset({"&", "|", "^"})
_FLOATS_ONLY: Final = PREDICATES | {
    *("floor", "ceil", "trunc", "round", "sqrt", "fma", "fmod", "copysign", "mix"),
    *ELEMENTARY,
}


def _is(node: Expression, dtype: DType, what: str) -> Iterator[str]:
    if node.dtype is not dtype:
        yield f"{what} is {node.dtype}, not {dtype}"


def _constant(_: IRFunction, node: IRConstant) -> Iterator[str]:
    dtype, value = dtype_of(node), node.value
    expected = bool if dtype.is_bool else float if dtype.is_float else int
    if type(value) is not expected:
        yield f"a constant of {dtype} holds {type(value).__name__}"
    elif dtype.is_integer and not dtype.holds(int(value)):
        yield f"{value} is out of the range of {dtype}"
    elif dtype.is_float and round_float(value, dtype) != value and not math.isnan(value):
        yield f"{dtype} cannot represent {value!r}"


def _name(function: IRFunction, node: IRName) -> Iterator[str]:
    of_param = next((param.dtype for param in function.params if param.name == node.name), None)
    dtype = of_param or function.locals.get(node.name) or i64
    if node.dtype is not dtype:
        yield f"{node.name!r} is read as {node.dtype} and has the type {dtype}"


def _binary(_: IRFunction, node: IRBinOp) -> Iterator[str]:
    dtype = dtype_of(node)
    yield from _is(node.left, dtype, "the left operand")
    if node.op not in _COUNTED:
        yield from _is(node.right, dtype, "the right operand")
    elif not dtype_of(node.right).is_integer:
        yield f"the right operand is {node.right.dtype}, no integer"
    if dtype.is_float and node.op in _INTEGERS_ONLY and not _is_square(node):
        yield f"{node.op!r} of {dtype}"
    if dtype.is_bool and node.op not in _OF_BOOLS:
        yield f"{node.op!r} of bool"
    if node.op == "/" and not dtype.is_float:
        yield f"'/' of {dtype}"


def _is_square(node: IRBinOp) -> bool:
    """Whether it is the one power of floats that is no call."""
    return node.op == "**" and isinstance(node.right, IRConstant) and node.right.value == 2


def _unary(_: IRFunction, node: IRUnaryOp) -> Iterator[str]:
    dtype = dtype_of(node)
    yield from _is(node.operand, dtype, "the operand")
    if (node.op == "not") != dtype.is_bool:
        yield f"{node.op!r} of {dtype}"
    if node.op == "~" and not dtype.is_integer:
        yield f"'~' of {dtype}"


def _compare(_: IRFunction, node: IRCompare) -> Iterator[str]:
    yield from _is(node, bool_, "a comparison")
    if node.left.dtype is not node.right.dtype:
        yield f"{node.left.dtype} is compared with {node.right.dtype}"


def _logic(_: IRFunction, node: IRBoolOp) -> Iterator[str]:
    yield from _is(node, bool_, "logic")
    yield from _is(node.left, bool_, "the left operand")
    yield from _is(node.right, bool_, "the right operand")


def _choice(_: IRFunction, node: IRIfExp) -> Iterator[str]:
    yield from _is(node.condition, bool_, "the condition")
    if not node.then_value.dtype is node.else_value.dtype is node.dtype:
        yield f"{node.dtype} is chosen from {node.then_value.dtype} and {node.else_value.dtype}"


def _call(_: IRFunction, node: IRCall) -> Iterator[str]:
    dtype = dtype_of(node.args[0])
    for number, arg in enumerate(node.args):
        yield from _is(arg, dtype, f"operand {number}")
    yield from _is(node, bool_ if node.function in PREDICATES else dtype, node.function)
    if (
        dtype.is_bool
        or (node.function in _FLOATS_ONLY and not dtype.is_float)
        or (node.function in BIT_COUNTS and not dtype.is_integer)
    ):
        yield f"{node.function} of {dtype}"


def _cast(_: IRFunction, node: IRCast) -> Iterator[str]:
    if dtype_of(node).is_bool:
        yield "a cast to bool, which is a comparison with zero"


def _bitcast(_: IRFunction, node: IRBitcast) -> Iterator[str]:
    if dtype_of(node).bits != dtype_of(node.value).bits:
        yield f"the bits of {node.value.dtype} as {node.dtype}"


def _dim_size(_: IRFunction, node: IRDimSize) -> Iterator[str]:
    yield from _is(node, i64, "an extent")


def _stride(_: IRFunction, node: IRStride) -> Iterator[str]:
    yield from _is(node, i64, "a stride")


def _trip_count(_: IRFunction, node: IRTripCount) -> Iterator[str]:
    yield from _is(node, i64, "a trip count")
    for name in ("start", "end", "step"):
        yield from _is(getattr(node, name), i64, name)


def _access(function: IRFunction, node: IRArrayLoad | IRArrayStore) -> Iterator[str]:
    element = function.arrays[node.array].dtype
    value = node if isinstance(node, IRArrayLoad) else node.value
    if value.dtype is not element:
        yield f"{value.dtype} where {node.array!r} has {element}"
    for number, index in enumerate(node.indices):
        yield from _is(index, i64, f"index {number}")


def _atomic(function: IRFunction, node: IRAtomic) -> Iterator[str]:
    element = function.arrays[node.array].dtype
    for name in ("value", "compare"):
        operand = getattr(node, name)
        if operand is not None and operand.dtype is not element:
            yield f"{name} is {operand.dtype} where {node.array!r} has {element}"
    if function.locals.get(node.target) is not element:
        yield f"{node.target!r} is {function.locals.get(node.target)}, not {element}"
    for number, index in enumerate(node.indices):
        yield from _is(index, i64, f"index {number}")


def _assign(function: IRFunction, node: IRAssign) -> Iterator[str]:
    dtype = function.locals.get(node.target)
    if node.resolved_type is None or node.resolved_type is not dtype:
        yield f"resolved_type is {node.resolved_type}, and {node.target!r} has the type {dtype}"
    elif node.value.dtype is not dtype:
        yield f"{node.value.dtype} is assigned to {node.target!r}, which has the type {dtype}"


def _condition(_: IRFunction, node: IRIf | IRWhile) -> Iterator[str]:
    yield from _is(node.condition, bool_, "the condition")


def _for(function: IRFunction, node: IRSequentialFor) -> Iterator[str]:
    for name in ("start", "end", "step"):
        yield from _is(getattr(node, name), i64, name)
    if function.locals.get(node.var) is not i64:
        yield f"the loop variable {node.var!r} is {function.locals.get(node.var)}, not i64"


def _parallel(_: IRFunction, node: IRParallelFor) -> Iterator[str]:
    for number, extent in enumerate(node.extents):
        yield from _is(extent, i64, f"extent {number}")


TYPE_CHECKS: Final[dict[type[IRNode], Callable[..., Iterator[str]]]] = {
    IRConstant: _constant,
    IRName: _name,
    IRBinOp: _binary,
    IRUnaryOp: _unary,
    IRCompare: _compare,
    IRBoolOp: _logic,
    IRIfExp: _choice,
    IRCall: _call,
    IRCast: _cast,
    IRBitcast: _bitcast,
    IRDimSize: _dim_size,
    IRStride: _stride,
    IRTripCount: _trip_count,
    IRArrayLoad: _access,
    IRArrayStore: _access,
    IRAtomic: _atomic,
    IRAssign: _assign,
    IRIf: _condition,
    IRWhile: _condition,
    IRSequentialFor: _for,
    IRParallelFor: _parallel,
}
"""Kind -> what is wrong with the types of a node."""
