"""Shifts as products and quotients of powers of two."""

from __future__ import annotations

from tack.ir.nodes import Expression, IRBinOp, IRUnaryOp
from tack.model.dtypes import DType, unsigned
from tack.passes.build import Hold, cast, compare, constant, dtype_of, literal, operate, select

__all__ = ["by_power_of_two"]


def by_power_of_two(node: IRBinOp, hold: Hold) -> Expression:
    """``a << n`` as a product, ``a >> n`` as a quotient that is rounded downwards.

    Both are computed without signs: of a negative ``a`` the quotient is ``~(~a / 2 ** n)``.
    """
    dtype = dtype_of(node)
    wide = unsigned(dtype)
    power = _power_of_two(node.right, wide, hold)
    if node.op == "shl":
        return cast(operate("*", cast(node.left, wide), power), dtype)
    if not dtype.is_signed:
        return operate("cdiv", node.left, power)
    value = hold(node.left)
    negative = hold(compare("<", value, 0))
    size = hold(cast(select(negative, _inverted(value), value), wide))
    quotient = hold(cast(operate("cdiv", size, power), dtype))
    return select(negative, _inverted(quotient), quotient)


def _inverted(value: Expression) -> Expression:
    return IRUnaryOp("~", value, value.dtype)


def _power_of_two(count: Expression, dtype: DType, hold: Hold) -> Expression:
    """``2 ** count``: a product of one factor for each bit of the count."""
    known = literal(count)
    if known is not None:
        return constant(1 << known, dtype)
    count = hold(count)
    power: Expression = constant(1, dtype)
    for bit in range((dtype.bits - 1).bit_length()):
        is_set = compare("!=", operate("&", count, constant(1 << bit, count)), 0)
        factor = select(is_set, constant(1 << (1 << bit), dtype), constant(1, dtype))
        power = hold(operate("*", power, factor))
    return power
