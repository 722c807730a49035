"""Angles less their multiples of pi/2, to twice the precision, for every float.

Moderate angles go by W. J. Cody and W. Waite, "Software Manual for the Elementary Functions"
(1980): pi/2 is a sum of constants with so few bits that their multiples are exact. Huge ones go by
M. Payne and R. Hanek, "Radian reduction for trigonometric functions" (ACM SIGNUM Newsletter 18,
1983): of the product with 2/pi only those bits are computed that neither make whole turns nor are
too small. How near floats come to multiples of pi/2, and so how many bits that takes, is found with
continued fractions (J.-M. Muller, "Elementary Functions", 2016, chapter 11): 2^-29.2 for f32,
2^-60.9 for f64.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tack.elementary.precise import Double, double, quick_sum
from tack.elementary.term import (
    Term,
    as_float,
    bits_of,
    constant,
    convert,
    from_bits,
    guarded,
    select,
)
from tack.model.dtypes import i32, i64, u64

__all__ = ["HALF_PI", "PIECES", "TWO_OVER_PI", "reduced"]

TWO_OVER_PI: Final = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561"
    "b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484"
    "e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b"
    "3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)
"""The first 1216 bits of 2/pi behind the point; the greatest f64 needs some of the first 1161."""

HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17)
"""pi/2 as two doubles."""

PIECES: Final = {
    32: (1.570556640625, 0.0002396702766418457, 1.5890691429376602e-08, 2.5633440682570896e-12),
    64: (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
}
"""pi/2 as a sum: three numbers of 13 bits (f32) or 33 bits (f64), and what is left, rounded."""

_MODERATE: Final = {32: 3200.0, 64: 1600000.0}
"""Below it, multiples of pi/2 are so few that their products with the pieces are exact."""

_WHOLE: Final = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
"""Added to a float, it leaves the nearest whole number in the last bits."""

_PAD: Final = 40
"""Zeros in front of the bits of 2/pi: the factor of the least huge angle starts among them."""


def reduced(x: Term) -> tuple[Term, Double]:
    """A float ``x`` that is not negative, as ``n * pi/2 + rest`` with ``abs(rest)`` up to pi/4.

    Of ``n``, an unsigned integer, the last two bits count. Nothing is promised for infinity and
    NaN.
    """
    moderate = x < _MODERATE[x.dtype.bits]
    n, rest = _moderate(x)
    quadrant, high, low = guarded(~moderate, _huge, x, otherwise=(bits_of(n), rest.high, rest.low))
    return quadrant, Double(high, low)


def _moderate(x: Term) -> tuple[Term, Double]:
    """By constants; of greater angles it makes some number.

    The differences are exact, with their rounding errors: ``x`` and each difference are multiples
    of the last place of what is subtracted next. The sum of what is low is never far from half a
    unit of what is high, but where that is next to nothing: and then it is a fourth of it.
    """
    whole = _WHOLE[x.dtype.bits]
    shifted = x * (1 / HALF_PI[0]) + whole
    n = shifted - whole
    first, second, third, last = PIECES[x.dtype.bits]
    rest = x - n * first
    high, low = _less(rest, n * second)
    high, lower = _less(high, n * third)
    return shifted, Double(high, (low + lower) - n * last)


def _less(a: Term, b: Term) -> tuple[Term, Term]:
    difference = a - b
    return difference, (a - difference) - b


def _huge(x: Term) -> tuple[Term, Term, Term]:
    """By integers: the product with 2/pi modulo 4, of which the first two bits are ``n``."""
    bits = bits_of(x)
    wide = x.dtype.bits == 64
    mantissa = 52 if wide else 23
    significand = convert((bits & ((1 << mantissa) - 1)) | (1 << mantissa), u64)
    exponent = convert(bits >> mantissa, u64)
    # 2 more than the exponent of the significand's last bit: what lies above makes whole turns.
    start = exponent - ((1023 + 52 if wide else 127 + 23) + 2 - _PAD)
    factor = _window(start, 6 if wide else 3)
    product = _multiplied(significand, factor, 2 if wide else 1)
    *rest, top = product
    n = (top + 0x20000000) >> 30
    above = ((top >> 29) & 1).differs(0)
    # A fraction above 1/2 is that less 1, whose size has the opposite bits but for the very last.
    flip = select(above, constant(0xFFFFFFFF, u64), constant(0, u64))
    words = [(top ^ flip) & 0x3FFFFFFF] + [word ^ flip for word in reversed(rest)]
    high, low = _fraction(x, words)
    angle = Double(high, low) * double(HALF_PI if wide else HALF_PI[0], x)
    sign = convert(select(above, constant(1, u64), constant(0, u64)), bits.dtype)
    sign = sign << (x.dtype.bits - 1)
    return (
        convert(n, bits.dtype),
        from_bits(bits_of(angle.high) ^ sign),
        from_bits(bits_of(angle.low) ^ sign),
    )


def _window(start: Term, words: int) -> list[Term]:
    """Words of 32 bits of 2/pi from a bit on, the last one first."""
    steps = (8, 4, 2, 1) if words > 3 else (2, 1)
    # One more than they fill, out of which bits are shifted in.
    count = (words + 1) // 2 + 1 + sum(steps)
    length = _PAD + TWO_OVER_PI.bit_length()
    found: list[Term] = [
        constant((TWO_OVER_PI << 64 * count >> (length - 64 * (k + 1) + 64 * count)) % 2**64, u64)
        for k in range(count)
    ]
    for step in steps:
        further = ((start >> 6) & step).differs(0)
        found = [select(further, found[k + step], found[k]) for k in range(len(found) - step)]
    shift = start & 63
    back = shift ^ 63
    shifted = [(one << shift) | ((other >> 1) >> back) for one, other in pairwise(found)]
    halves = [half for word in shifted for half in (word >> 32, word & 0xFFFFFFFF)]
    return halves[:words][::-1]


def _multiplied(significand: Term, factor: list[Term], rows: int) -> list[Term]:
    """The product of words of 32 bits, the last one first, modulo what the factor's words hold."""
    product = [constant(0, u64) for _ in factor]
    for row in range(rows):
        digit = (significand >> 32 * row) & 0xFFFFFFFF
        carry = constant(0, u64)
        for k in range(row, len(factor)):
            total = digit * factor[k - row] + product[k] + carry
            product[k], carry = total & 0xFFFFFFFF, total >> 32
    return product


def _fraction(x: Term, words: list[Term]) -> tuple[Term, Term]:
    """The fraction of which words, the first one of 30 bits, are the first bits; as two floats."""
    first = (words[0] << 32) | words[1]
    if x.dtype.bits == 32:
        step = 24
        chunks = [first >> 38, (first >> 14) & 0xFFFFFF]
        chunks.append(((first & 0x3FFF) << 10) | (words[2] >> 22))
        numbers = [as_float(convert(chunk, i32)) for chunk in chunks]
    else:
        step = 52
        chunks = [first >> 10, ((first & 0x3FF) << 42) | (words[2] << 10) | (words[3] >> 22)]
        chunks.append(((words[3] & 0x3FFFFF) << 30) | (words[4] >> 2))
        numbers = [as_float(convert(chunk, i64)) for chunk in chunks]
    one, two, three = (number * 2.0 ** (-step * (k + 1)) for k, number in enumerate(numbers))
    total = quick_sum(one, two)
    total = quick_sum(total.high, total.low + three)
    return total.high, total.low
