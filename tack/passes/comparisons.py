"""Comparisons and signs by way of others: what is less, what differs, and bits."""

from __future__ import annotations

from tack.ir.nodes import Expression, IRCompare, IRUnaryOp
from tack.model.dtypes import DTYPES
from tack.passes.build import (
    Hold,
    bitcast,
    compare,
    constant,
    dtype_of,
    either,
    negate,
    operate,
)

__all__ = ["by_less", "negated", "not_different"]


def not_different(node: IRCompare, _: Hold) -> Expression:
    """``a == b`` as not ``a != b``; NaN is different from all."""
    return negate(IRCompare("!=", node.left, node.right, node.dtype))


def by_less(node: IRCompare, hold: Hold) -> Expression:
    """``<=``, ``>`` and ``>=`` by ``<``.

    Of floats ``a <= b`` is less or equal, for not greater is true of NaN.
    """
    one, other = hold(node.left), hold(node.right)
    if node.op in (">", ">="):
        one, other = other, one
    less = compare("<", one, other)
    if node.op == ">":
        return less
    if dtype_of(one).is_float:
        return either(less, compare("==", one, other))
    return negate(compare("<", other, one))


def negated(node: IRUnaryOp, _: Hold) -> Expression:
    """``-a``: of integers ``0 - a``, of floats the other sign bit."""
    dtype = dtype_of(node)
    if not dtype.is_float:
        return operate("-", constant(0, dtype), node.operand)
    bits = DTYPES[f"u{dtype.bits}"]
    sign = constant(1 << (dtype.bits - 1), bits)
    return bitcast(operate("^", bitcast(node.operand, bits), sign), dtype)
