"""The checks of types that hold from the typed stage on; a part of `tack.ir.verify`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tack.ir.nodes import (
    Expression,
    IRActive,
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
    IRGroupIndex,
    IRIf,
    IRIfExp,
    IRName,
    IRNode,
    IRParallelFor,
    IRParam,
    IRPrint,
    IRSequentialFor,
    IRStride,
    IRTripCount,
    IRUnaryOp,
    IRWarpSize,
    IRWhile,
    LocalArray,
    dtype_of,
)
from tack.ir.operations import BIT_COUNTS, ELEMENTARY, PREDICATES, RANDOM, random_dtype
from tack.model.dtypes import DType, bool_, i64, round_float, u64

__all__ = ["TYPE_CHECKS", "Scope"]

_COUNTED: Final = frozenset({"<<", ">>", "**"})
"""Operators whose right operand keeps a type of its own."""

_INTEGERS_ONLY: Final = frozenset({"**", "<<", ">>", "&", "|", "^", "cdiv", "cmod", "shl", "shr"})
_OF_BOOLS: Final = frozenset({"&", "|", "^"})
_PRINTED: Final = frozenset({"bool", "i64", "u64", "f32", "f64"})
_FLOATS_ONLY: Final = PREDICATES | {
    *(
        "floor",
        "ceil",
        "trunc",
        "round",
        "sqrt",
        "fma",
        "mulacc",
        "recip",
        "fmod",
        "copysign",
        "mix",
    ),
    *ELEMENTARY,
}


class Scope(NamedTuple):
    """What the names of a function stand for."""

    arrays: Mapping[str, IRParam | LocalArray]
    names: Mapping[str, DType]
    locals: Mapping[str, DType]

    @classmethod
    def of(cls, function: IRFunction) -> Scope:
        """The scope of a function."""
        params = {param.name: param.dtype for param in function.params if param.dtype is not None}
        return cls(function.arrays, {**function.locals, **params}, function.locals)


def _is(node: Expression, dtype: DType, what: str) -> str | None:
    return None if node.dtype is dtype else f"{what} is {node.dtype}, not {dtype}"


def _constant(_: Scope, node: IRConstant) -> str | None:
    dtype, value = dtype_of(node), node.value
    kind = dtype.kind
    expected = bool if kind == "bool" else float if kind == "float" else int
    if type(value) is not expected:
        return f"a constant of {dtype} holds {type(value).__name__}"
    if kind == "float":
        if not _represents(dtype, value):
            return f"{dtype} cannot represent {value!r}"
    elif kind != "bool" and not dtype.holds(int(value)):
        return f"{value} is out of the range of {dtype}"
    return None


def _represents(dtype: DType, value: float) -> bool:
    return dtype.bits == 64 or round_float(value, dtype) == value or math.isnan(value)


def _name(scope: Scope, node: IRName) -> str | None:
    dtype = scope.names.get(node.name, i64)
    if node.dtype is dtype:
        return None
    return f"{node.name!r} is read as {node.dtype} and has the type {dtype}"


def _binary(_: Scope, node: IRBinOp) -> str | None:
    dtype, op = dtype_of(node), node.op
    if node.left.dtype is not dtype:
        return _is(node.left, dtype, "the left operand")
    if op not in _COUNTED:
        if node.right.dtype is not dtype:
            return _is(node.right, dtype, "the right operand")
    elif not dtype_of(node.right).is_integer:
        return f"the right operand is {node.right.dtype}, no integer"
    kind = dtype.kind
    if kind == "float":
        if op in _INTEGERS_ONLY and not _is_square(node):
            return f"{op!r} of {dtype}"
    elif op == "/" or (kind == "bool" and op not in _OF_BOOLS):
        return f"{op!r} of {dtype}"
    return None


def _is_square(node: IRBinOp) -> bool:
    """Whether it is the one power of floats that is no call."""
    return node.op == "**" and isinstance(node.right, IRConstant) and node.right.value == 2


def _unary(_: Scope, node: IRUnaryOp) -> str | None:
    dtype = dtype_of(node)
    if node.operand.dtype is not dtype:
        return _is(node.operand, dtype, "the operand")
    if (node.op == "not") != dtype.is_bool:
        return f"{node.op!r} of {dtype}"
    if node.op == "~" and not dtype.is_integer:
        return f"'~' of {dtype}"
    return None


def _compare(_: Scope, node: IRCompare) -> str | None:
    if node.left.dtype is not node.right.dtype and node.dtype is bool_:
        return f"{node.left.dtype} is compared with {node.right.dtype}"
    return _is(node, bool_, "a comparison")


def _logic(_: Scope, node: IRBoolOp) -> str | None:
    return (
        _is(node, bool_, "logic")
        or _is(node.left, bool_, "the left operand")
        or _is(node.right, bool_, "the right operand")
    )


def _choice(_: Scope, node: IRIfExp) -> str | None:
    if node.condition.dtype is not bool_:
        return _is(node.condition, bool_, "the condition")
    if node.then_value.dtype is node.else_value.dtype is node.dtype:
        return None
    return f"{node.dtype} is chosen from {node.then_value.dtype} and {node.else_value.dtype}"


def _call(_: Scope, node: IRCall) -> str | None:
    dtype = dtype_of(node.args[0])
    for number, arg in enumerate(node.args):
        if arg.dtype is not dtype:
            return _is(arg, dtype, f"operand {number}")
    is_random = node.function in RANDOM
    result = random_dtype(node.function) if is_random else dtype
    if node.function in PREDICATES:
        result = bool_
    if node.dtype is not result:
        return _is(node, result, node.function)
    if (
        dtype.is_bool
        or (node.function in _FLOATS_ONLY and not dtype.is_float)
        or (node.function in BIT_COUNTS and not dtype.is_integer)
        or (is_random and dtype is not u64)
    ):
        return f"{node.function} of {dtype}"
    return None


def _cast(_: Scope, node: IRCast) -> str | None:
    if dtype_of(node).is_bool:
        return "a cast to bool, which is a comparison with zero"
    return None


def _bitcast(_: Scope, node: IRBitcast) -> str | None:
    if dtype_of(node).bits != dtype_of(node.value).bits:
        return f"the bits of {node.value.dtype} as {node.dtype}"
    return None


def _dim_size(_: Scope, node: IRDimSize) -> str | None:
    return _is(node, i64, "an extent")


def _group_index(_: Scope, node: IRGroupIndex) -> str | None:
    return _is(node, i64, "the number of a thread or a group")


def _warp_size(_: Scope, node: IRWarpSize) -> str | None:
    return _is(node, i64, "the size of a warp")


def _active(_: Scope, node: IRActive) -> str | None:
    return _is(node, bool_, "whether a lane is an iteration")


def _stride(_: Scope, node: IRStride) -> str | None:
    return _is(node, i64, "a stride")


def _trip_count(_: Scope, node: IRTripCount) -> str | None:
    return _is(node, i64, "a trip count") or _range(node)


def _range(node: IRTripCount | IRSequentialFor) -> str | None:
    return _is(node.start, i64, "start") or _is(node.end, i64, "end") or _is(node.step, i64, "step")


def _access(scope: Scope, node: IRArrayLoad | IRArrayStore) -> str | None:
    element = scope.arrays[node.array].dtype
    value = node if isinstance(node, IRArrayLoad) else node.value
    if value.dtype is not element:
        return f"{value.dtype} where {node.array!r} has {element}"
    return _indices(node)


def _indices(node: IRArrayLoad | IRArrayStore | IRAtomic) -> str | None:
    for number, index in enumerate(node.indices):
        if index.dtype is not i64:
            return _is(index, i64, f"index {number}")
    return None


def _atomic(scope: Scope, node: IRAtomic) -> str | None:
    element = scope.arrays[node.array].dtype
    for name in ("value", "compare"):
        operand = getattr(node, name)
        if operand is not None and operand.dtype is not element:
            return f"{name} is {operand.dtype} where {node.array!r} has {element}"
    if scope.locals.get(node.target) is not element:
        return f"{node.target!r} is {scope.locals.get(node.target)}, not {element}"
    return _indices(node)


def _print(_: Scope, node: IRPrint) -> str | None:
    for value, words in zip(node.values, node.words, strict=True):
        dtype = dtype_of(value)
        if dtype.name not in _PRINTED or dtype.is_bool != (words is not None):
            return f"{dtype} is printed by {words}"
    return None


def _assign(scope: Scope, node: IRAssign) -> str | None:
    dtype = scope.locals.get(node.target)
    if node.resolved_type is None or node.resolved_type is not dtype:
        return f"resolved_type is {node.resolved_type}, and {node.target!r} has the type {dtype}"
    if node.value.dtype is not dtype:
        return f"{node.value.dtype} is assigned to {node.target!r}, which has the type {dtype}"
    return None


def _condition(_: Scope, node: IRIf | IRWhile) -> str | None:
    return _is(node.condition, bool_, "the condition")


def _for(scope: Scope, node: IRSequentialFor) -> str | None:
    message = _range(node)
    if message is None and scope.locals.get(node.var) is not i64:
        return f"the loop variable {node.var!r} is {scope.locals.get(node.var)}, not i64"
    return message


def _parallel(_: Scope, node: IRParallelFor) -> str | None:
    for number, extent in enumerate(node.extents):
        if extent.dtype is not i64:
            return _is(extent, i64, f"extent {number}")
    return None


TYPE_CHECKS: Final[dict[type[IRNode], Callable[..., str | None]]] = {
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
    IRGroupIndex: _group_index,
    IRWarpSize: _warp_size,
    IRActive: _active,
    IRTripCount: _trip_count,
    IRArrayLoad: _access,
    IRArrayStore: _access,
    IRAtomic: _atomic,
    IRAssign: _assign,
    IRPrint: _print,
    IRIf: _condition,
    IRWhile: _condition,
    IRSequentialFor: _for,
    IRParallelFor: _parallel,
}
"""Kind -> what is wrong first with the types of a node, or None."""
