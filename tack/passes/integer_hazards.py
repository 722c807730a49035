"""Integer operations that C leaves undefined or defines otherwise, as IR that gives our results.

Each function gives an expression, and holds in temporaries what it reads more than once; none of
what is evaluated is undefined for any operand. Division and remainder by zero
are 0, the least integer by -1 wraps, counts are taken modulo the width.
"""

from __future__ import annotations

from typing import Final

from tack.ir.nodes import Expression
from tack.passes.build import (
    Hold,
    both,
    cast,
    compare,
    constant,
    dtype_of,
    either,
    literal,
    negative,
    operate,
    select,
)
from tack.passes.intervals import Interval

__all__ = ["absolute", "floor_divide", "remainder", "shift"]


def floor_divide(
    a: Expression, b: Expression, a_range: Interval, b_range: Interval, hold: Hold
) -> Expression:
    """``a // b``."""
    known = literal(b)
    if known is not None:
        return _divide_by(a, known, a_range, hold)
    b = hold(b)
    if a_range[0] >= 0 and b_range[0] >= 0:
        return _guarded("cdiv", a, b, b_range)
    a = hold(a)
    divisor = hold(_safe_divisor(b, b_range))
    rest = hold(operate("cmod", a, divisor))
    off = cast(_signs_differ(rest, divisor), dtype_of(a))
    result: Expression = operate("-", operate("cdiv", a, divisor), off)
    if b_range[0] < 0:
        result = select(compare("==", b, -1), negative(a), result)
    if _may_be_zero(b_range):
        result = select(compare("==", b, 0), constant(0, a), result)
    return result


def remainder(
    a: Expression, b: Expression, a_range: Interval, b_range: Interval, hold: Hold
) -> Expression:
    """``a % b``, which has the sign of ``b``."""
    known = literal(b)
    if known is not None:
        return _remainder_by(a, known, a_range, hold)
    b = hold(b)
    if a_range[0] >= 0 and b_range[0] >= 0:
        return _guarded("cmod", a, b, b_range)
    a = hold(a)
    # The remainder by a safe divisor of 1 is 0, which is what b = 0 and b = -1 give.
    divisor = hold(_safe_divisor(b, b_range))
    rest = hold(operate("cmod", a, divisor))
    fix = select(_signs_differ(rest, divisor), divisor, constant(0, a))
    return operate("+", rest, fix)


def shift(op: str, a: Expression, count: Expression) -> Expression:
    """``a << count`` or ``a >> count``, with the count modulo the width of ``a``."""
    dtype = dtype_of(a)
    known = literal(count)
    if known is not None:
        known %= dtype.bits
        return a if known == 0 else operate(_SHIFTS[op], a, constant(known, a))
    masked = operate("&", count, constant(dtype.bits - 1, count))
    return operate(_SHIFTS[op], a, cast(masked, dtype))


_SHIFTS: Final = {"<<": "shl", ">>": "shr"}


def absolute(a: Expression, hold: Hold) -> Expression:
    """``abs(a)``; of the least integer it wraps to itself."""
    if not dtype_of(a).is_signed:
        return a
    a = hold(a)
    return select(compare("<", a, 0), negative(a), a)


def _guarded(op: str, a: Expression, b: Expression, b_range: Interval) -> Expression:
    """C's own division of naturals, by zero 0."""
    quotient = operate(op, a, b)
    if not _may_be_zero(b_range):
        return quotient
    return select(compare("!=", b, 0), quotient, constant(0, a))


def _may_be_zero(range_: Interval) -> bool:
    return range_[0] <= 0 <= range_[1]


def _safe_divisor(b: Expression, b_range: Interval) -> Expression:
    """``b``, or 1 where dividing by ``b`` is undefined or may overflow."""
    unsafe: Expression | None = None
    if _may_be_zero(b_range):
        unsafe = compare("==", b, 0)
    if b_range[0] <= -1 <= b_range[1]:
        minus_one = compare("==", b, -1)
        unsafe = minus_one if unsafe is None else either(unsafe, minus_one)
    return b if unsafe is None else select(unsafe, constant(1, b), b)


def _signs_differ(rest: Expression, divisor: Expression) -> Expression:
    """Whether C's quotient, truncated, lies one above the floor."""
    return both(compare("!=", rest, 0), compare("<", operate("^", rest, divisor), 0))


def _power_of_two(value: int) -> int | None:
    """The exponent of a power of two, else None."""
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _divide_by(a: Expression, divisor: int, a_range: Interval, hold: Hold) -> Expression:
    if divisor in (0, 1):
        return constant(0, a) if divisor == 0 else a
    if divisor == -1:
        return negative(a)
    exponent = _power_of_two(divisor)
    if exponent is not None:
        return operate("shr", a, constant(exponent, a))
    if a_range[0] >= 0 and divisor > 0:
        return operate("cdiv", a, constant(divisor, a))
    a = hold(a)
    quotient = operate("cdiv", a, constant(divisor, a))
    rest = operate("cmod", a, constant(divisor, a))
    return operate("-", quotient, cast(_rest_is_off(rest, divisor), dtype_of(a)))


def _remainder_by(a: Expression, divisor: int, a_range: Interval, hold: Hold) -> Expression:
    if divisor in (-1, 0, 1):
        return constant(0, a)
    exponent = _power_of_two(divisor)
    if exponent is not None:
        return operate("&", a, constant(divisor - 1, a))
    raw = operate("cmod", a, constant(divisor, a))
    if a_range[0] >= 0 and divisor > 0:
        return raw
    rest = hold(raw)
    fix = select(_rest_is_off(rest, divisor), constant(divisor, a), constant(0, a))
    return operate("+", rest, fix)


def _rest_is_off(rest: Expression, divisor: int) -> Expression:
    """Whether C's remainder has a sign that the divisor has not."""
    return compare("<" if divisor > 0 else ">", rest, 0)
