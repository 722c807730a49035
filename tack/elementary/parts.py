"""What several families share: floats within limits, or as a fraction and an exponent.

Exponents are integers of the float's width.
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.term import Term, bits_of, constant, convert, from_bits, select
from tack.model.dtypes import DTYPES

__all__ = [
    "MANTISSA",
    "apart",
    "between",
    "normal",
    "power_of_two",
    "scaled",
]

MANTISSA: Final = {32: 23, 64: 52}
"""Bits of a float -> those of its fraction."""

_BIAS: Final = {32: 127, 64: 1023}
_ROOT_HALF: Final = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
"""The bits of sqrt(1/2)."""


def between(x: Term, low: float, high: float) -> Term:
    """``x`` from ``low`` to ``high``; NaN is ``low``."""
    return select(x > low, select(x < high, x, high), low)


def power_of_two(exponent: Term) -> Term:
    """Two to a power that is a normal float."""
    bits = exponent.dtype.bits
    return from_bits((exponent + _BIAS[bits]) << MANTISSA[bits])


def scaled(x: Term, exponent: Term) -> Term:
    """``x`` times two to a power of up to twice the range, rounded once if ``x`` is about 1."""
    half = exponent >> 1
    return x * power_of_two(half) * power_of_two(exponent - half)


def normal(x: Term) -> tuple[Term, Term]:
    """``(y, lift)``: ``x * 2**lift`` where ``x`` is subnormal, so that no float here is."""
    width = x.dtype.bits
    lift = MANTISSA[width] + 1
    small = x < math.ldexp(1, 1 - _BIAS[width])
    number = DTYPES[f"i{width}"]
    return (
        select(small, x * math.ldexp(1, lift), x),
        select(small, constant(lift, number), constant(0, number)),
    )


def apart(x: Term, *, centred: bool) -> tuple[Term, Term]:
    """``(m, e)`` where ``x = m * 2**e`` of a positive finite ``x``.

    ``m`` is from 1 to 2, if ``centred`` from sqrt(1/2) to sqrt(2); it is so whatever ``x`` is.
    """
    width = x.dtype.bits
    fraction, one = MANTISSA[width], _BIAS[width] << MANTISSA[width]
    least = _ROOT_HALF[width] if centred else one
    y, lift = normal(x)
    bits = convert(bits_of(y), lift.dtype) + (one - least)
    exponent = (bits >> fraction) - _BIAS[width] - lift
    return from_bits((bits & ((1 << fraction) - 1)) + least), exponent
