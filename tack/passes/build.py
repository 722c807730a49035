"""Short ways to write typed expressions, for passes that make many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tack.ir.nodes import (
    Expression,
    IRBinOp,
    IRBitcast,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRFunction,
    IRIfExp,
    IRUnaryOp,
    dtype_of,
)
from tack.model.dtypes import DType, bool_
from tack.passes import arithmetic

__all__ = [
    "Hold",
    "bitcast",
    "both",
    "call",
    "cast",
    "compare",
    "constant",
    "dtype_of",
    "either",
    "literal",
    "negate",
    "negative",
    "operate",
    "retype",
    "select",
]


Hold = Callable[[Expression], Expression]
"""Evaluates an expression once, now, and gives what reads its value."""


def literal(node: Expression) -> int | None:
    """The value of an integer constant, else None."""
    if isinstance(node, IRConstant) and not dtype_of(node).is_float:
        return int(node.value)
    return None


def constant(value: float, like: Expression | DType) -> IRConstant:
    """A constant of a dtype, or of the dtype of an expression."""
    dtype = like if isinstance(like, DType) else dtype_of(like)
    return IRConstant(arithmetic.convert(value, dtype), dtype)


def operate(op: str, left: Expression, right: Expression) -> IRBinOp:
    """``left op right`` at the type of the left operand."""
    return IRBinOp(op, left, right, left.dtype)


def compare(op: str, left: Expression, right: Expression | int) -> IRCompare:
    """``left op right``, where a number counts as a constant of the left type."""
    other = constant(right, left) if isinstance(right, int) else right
    return IRCompare(op, left, other, bool_)


def select(condition: Expression, one: Expression, other: Expression) -> IRIfExp:
    """``one if condition else other``."""
    return IRIfExp(condition, one, other, one.dtype)


def both(left: Expression, right: Expression) -> IRBinOp:
    """Both of two bools, without a branch."""
    return IRBinOp("&", left, right, bool_)


def either(left: Expression, right: Expression) -> IRBinOp:
    """One of two bools, without a branch."""
    return IRBinOp("|", left, right, bool_)


def negate(condition: Expression) -> Expression:
    """``not condition``."""
    return IRUnaryOp("not", condition, bool_)


def negative(node: Expression) -> Expression:
    """``-node``, which wraps; of a constant a constant, for C warns of ``-INT64_MIN``."""
    number = literal(node)
    if number is not None:
        return constant(-number, node)
    return IRUnaryOp("-", node, node.dtype)


def call(function: str, *args: Expression) -> IRCall:
    """A builtin at the type of its operands."""
    return IRCall(function, list(args), args[0].dtype)


def bitcast(node: Expression, dtype: DType) -> Expression:
    """The bits of ``node`` as another type of its width."""
    return IRBitcast(node, dtype)


def cast(node: Expression, dtype: DType) -> Expression:
    """``node`` in another type; itself where it has it."""
    if node.dtype is dtype:
        return node
    return constant(node.value, dtype) if isinstance(node, IRConstant) else IRCast(node, dtype)


def retype(function: IRFunction, arrays: Iterable[str], dtype: DType) -> None:
    """Makes ``dtype`` the type of the elements of arrays, parameters and local ones."""
    names = set(arrays)
    for param in function.params:
        if param.name in names:
            param.dtype = dtype
    for name in names & set(function.local_arrays):
        function.local_arrays[name] = replace(function.local_arrays[name], dtype=dtype)
