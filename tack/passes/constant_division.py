"""Division by a constant as multiplication by its reciprocal, for compilers that do not do it.

T. Granlund and P. L. Montgomery, "Division by invariant integers using multiplication", PLDI 1994;
H. S. Warren, "Hacker's Delight", chapter 10.
"""

from __future__ import annotations

from typing import Final

from tack.ir.nodes import Expression
from tack.model.dtypes import u32, u64, unsigned
from tack.passes.build import Hold, cast, constant, dtype_of, operate
from tack.passes.intervals import Interval

__all__ = ["divide_by_constant", "multiplier", "upper_product"]

_WIDE: Final = (u32, u64)


def divide_by_constant(
    op: str, a: Expression, divisor: int, a_range: Interval, hold: Hold
) -> Expression:
    """``a cdiv divisor`` or ``a cmod divisor``, neither 0 nor 1; ``a`` is read again at no cost."""
    dtype = dtype_of(a)
    size, sign = cast(a, unsigned(dtype)), None
    if a_range[0] < 0:
        # Of the magnitude, whose quotient gets its sign back: x ^ sign - sign, of -1 or 0.
        sign = hold(cast(operate("shr", a, constant(dtype.bits - 1, a)), dtype_of(size)))
        size = operate("-", operate("^", size, sign), sign)
    quotient = _natural(hold(size), abs(divisor), max(-a_range[0], a_range[1]), hold)
    if sign is not None:
        quotient = operate("-", operate("^", quotient, sign), sign)
    if divisor < 0:
        quotient = operate("-", constant(0, quotient), quotient)
    if op == "cdiv":
        return cast(quotient, dtype)
    product = operate("*", quotient, constant(divisor % (1 << dtype.bits), quotient))
    return cast(operate("-", cast(a, dtype_of(size)), product), dtype)


def _natural(a: Expression, divisor: int, greatest: int, hold: Hold) -> Expression:
    """The quotient of an unsigned number that is no greater than ``greatest``."""
    dtype = dtype_of(a)
    if greatest < divisor:
        return constant(0, a)
    factor, count = multiplier(divisor, greatest)
    for wide in _WIDE:
        if factor * greatest <= wide.maximum and dtype.bits <= wide.bits:
            product = operate("*", cast(a, wide), constant(factor, wide))
            return cast(operate("shr", product, constant(count, wide)), dtype)
    # The factor is one bit too long: its upper bit adds a, halved beforehand.
    bits, length = dtype.bits, (divisor - 1).bit_length()
    factor = ((1 << bits) * ((1 << length) - divisor)) // divisor + 1
    if dtype is u64:
        upper = hold(upper_product(a, constant(factor, a), hold))
    else:
        product = operate("*", cast(a, u64), constant(factor, u64))
        upper = hold(cast(operate("shr", product, constant(bits, u64)), dtype))
    half = operate("shr", operate("-", a, upper), constant(1, a))
    return operate("shr", operate("+", upper, half), constant(length - 1, a))


def multiplier(divisor: int, greatest: int) -> tuple[int, int]:
    """The least ``(m, s)`` with ``n // divisor == n * m >> s`` for every ``n <= greatest``."""
    last = (greatest + 1) // divisor * divisor - 1  # whose remainder is the greatest
    for count in range(2 * greatest.bit_length() + 1):
        lacking = divisor - 1 - ((1 << count) - 1) % divisor
        if 1 << count > last * lacking:
            return ((1 << count) + lacking) // divisor, count
    raise ValueError(f"{divisor} divides no number up to {greatest}")


def upper_product(a: Expression, b: Expression, hold: Hold) -> Expression:
    """The upper half of the bits of a product of u32 or u64, from products of halves."""
    bits = dtype_of(a).bits // 2
    half, mask = constant(bits, a), constant((1 << bits) - 1, a)
    a_low, b_low = (hold(operate("&", each, mask)) for each in (a, b))
    a_high, b_high = (hold(operate("shr", each, half)) for each in (a, b))
    carried = operate("shr", operate("*", a_low, b_low), half)
    middle = hold(operate("+", operate("*", a_high, b_low), carried))
    other = operate("+", operate("*", a_low, b_high), operate("&", middle, mask))
    top = operate("+", operate("*", a_high, b_high), operate("shr", middle, half))
    return operate("+", top, operate("shr", other, half))
