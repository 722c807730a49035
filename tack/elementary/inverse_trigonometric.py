"""asin, acos, atan and atan2.

Near 0 they are polynomials. Arcsines above 1/2 are those of half the complement's chord,
``asin(x) = pi/2 - 2 * asin(sqrt((1 - x) / 2))``, and an arctangent above tan(pi/8) is that of an
angle turned back by pi/4; of both, the root or quotient is computed with its rounding error
(W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980).
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.precise import (
    Double,
    choose,
    double,
    polynomial,
    product,
    quick_sum,
    sum_of,
)
from tack.elementary.reduction import HALF_PI
from tack.elementary.term import (
    Number,
    Term,
    absolute,
    bits_of,
    constant,
    copysign,
    select,
    sqrt,
)
from tack.model.dtypes import bool_

__all__ = ["ARCSINE", "ARCTANGENT", "QUARTERS", "TAN_EIGHTH", "acos", "asin", "atan", "atan2"]

ARCSINE: Final = {
    32: (
        0.16666659712791443,
        0.07500521838665009,
        0.044513389468193054,
        0.03183887153863907,
        0.014318426139652729,
        0.03768421709537506,
    ),
    64: (
        0.1666666666666676,
        0.07499999999970867,
        0.04464285717457531,
        0.030381942708368238,
        0.02237221499893226,
        0.01735161138666008,
        0.013980832469905457,
        0.011398782873208224,
        0.010781137525526778,
        0.0037025191609087317,
        0.021718133658844403,
        -0.021015788440923288,
        0.03264001938036551,
    ),
}
"""``asin(x) = x + x**3 * polynomial(x * x)`` up to 1/2."""

ARCTANGENT: Final = {
    32: (
        -0.33333316445350647,
        0.19998526573181152,
        -0.14244338870048523,
        0.10598636418581009,
        -0.06088392436504364,
    ),
    64: (
        -0.3333333333333319,
        0.1999999999995218,
        -0.1428571428005473,
        0.11111110776408697,
        -0.0909089755227825,
        0.07692056439927944,
        -0.06663059166034768,
        0.05847545641889035,
        -0.05037672760315047,
        0.03802091455195605,
        -0.017857023289896714,
    ),
}
"""``atan(x) = x + x**3 * polynomial(x * x)`` up to tan(pi/8)."""

TAN_EIGHTH: Final = 0.41421356237309503
"""tan(pi/8), above which pi/4 is nearer than 0."""

QUARTERS: Final = {
    1: (0.7853981633974483, 3.061616997868383e-17),
    2: HALF_PI,
    3: (2.356194490192345, 9.184850993605148e-17),
    4: (3.141592653589793, 1.2246467991473532e-16),
}
"""Multiples of pi/4 as two doubles."""

_FLAT: Final = {32: 2.0**-30, 64: 2.0**-60}
"""Below it, a quotient is the angle itself."""

_RANGE: Final = {
    32: (2.0**-60, 2.0**60, 2.0**100, 2.0**-60),
    64: (2.0**-500, 2.0**500, 2.0**900, 2.0**-500),
}
"""The lengths that need no factor, and the factors of lesser and of greater ones."""


def asin(x: Term) -> Term:
    """The angle from -pi/2 to pi/2 whose sine is ``x``."""
    small, angle = _arcsine(absolute(x))
    right = _quarters(2, x)
    zero = constant(0.0, x)
    base = choose(small, Double(zero, zero), right)
    value = _turned(base, choose(small, angle, _times(angle, -2.0)))
    return _defined(absolute(x) <= 1.0, copysign(value, x))


def acos(x: Term) -> Term:
    """The angle from 0 to pi whose cosine is ``x``."""
    small, angle = _arcsine(absolute(x))
    negative, zero = x < 0.0, constant(0.0, x)
    far = choose(negative, _quarters(4, x), Double(zero, zero))
    base = choose(small, _quarters(2, x), far)
    factor = select(negative, constant(-2.0, x), 2.0)
    value = _turned(base, _times(angle, select(small, factor * -0.5, factor)))
    return _defined(absolute(x) <= 1.0, value)


def atan(x: Term) -> Term:
    """The angle from -pi/2 to pi/2 whose tangent is ``x``."""
    size, one = absolute(x), constant(1.0, x)
    steep = size > 1.0
    short, long = select(steep, one, size), select(steep, size, one)
    flat = short < long * _FLAT[x.dtype.bits]
    value = _angle(short, long, flat, steep, constant(False, bool_))
    return _defined(size <= math.inf, copysign(value, x))


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point ``(x, y)``, from -pi to pi."""
    wide, tall = absolute(x), absolute(y)
    steep = tall > wide
    short, long = select(steep, wide, tall), select(steep, tall, wide)
    # Of two zeros the quotient is to be 0, of two infinities 1, and of one infinity 0.
    infinite, one = long.equals(math.inf), constant(1.0, x)
    short = select(infinite, select(short.equals(math.inf), one, 0.0), short)
    long = select(infinite | long.equals(0.0), one, long)
    # Powers of two that keep what is computed of the quotient in range.
    small, great, grow, shrink = _RANGE[x.dtype.bits]
    scale = select(long > great, constant(shrink, x), select(long < small, constant(grow, x), 1.0))
    flat = short * scale < long * scale * _FLAT[x.dtype.bits]
    scale = select(flat, one, scale)
    back = (bits_of(x) >> (x.dtype.bits - 1)).differs(0)
    value = _angle(short * scale, long * scale, flat, steep, back)
    return _defined((wide <= math.inf) & (tall <= math.inf), copysign(value, y))


def _defined(condition: Term, value: Term) -> Term:
    return select(condition, value, math.nan)


def _times(angle: Double, power: Number) -> Double:
    """A product with a power of two, which is exact."""
    return Double(angle.high * power, angle.low * power)


def _quarters(count: int, like: Term) -> Double:
    """So many times pi/4: 1, 2, 3 or 4."""
    return double(QUARTERS[count] if like.dtype.bits == 64 else QUARTERS[count][0], like)


def _turned(base: Double, angle: Double) -> Term:
    """``base + angle``, rounded once or nearly so; ``base`` is 0 or greater."""
    total = quick_sum(base.high, angle.high)
    return total.high + (total.low + (base.low + angle.low))


def _arcsine(x: Term) -> tuple[Term, Double]:
    """Whether ``x`` is at most 1/2; its arcsine, or else that of ``sqrt((1 - x) / 2)``."""
    small = x <= 0.5
    rest = (1.0 - x) * 0.5
    root = sqrt(rest)
    back = product(root, root)
    lost = ((rest - back.high) - back.low) / select(root > 0.0, root + root, 1.0)
    high, low = select(small, x, root), select(small, 0.0, lost)
    square = select(small, x * x, rest)
    tail = high * (square * polynomial(ARCSINE[x.dtype.bits], square))
    return small, quick_sum(high, tail + (low + low * (square * 0.5)))


def _angle(short: Term, long: Term, flat: Term, steep: Term, back: Term) -> Term:
    """The angle from 0 to pi whose tangent, or cotangent where ``steep``, is ``short / long``.

    That is at most 1; where ``flat``, it is an angle to the last bit, and may be subnormal, so that
    its rounding error cannot be told. ``back``: the angle is mirrored at pi/2.
    """
    zero = constant(0.0, short)
    turned = short > long * TAN_EIGHTH
    above = choose(turned, sum_of(short, -long), Double(short, zero))
    below = choose(turned, sum_of(short, long), Double(long, zero))
    ratio = above.high / below.high
    whole = product(ratio, below.high)
    rest = (above.high - whole.high) - whole.low + (above.low - ratio * below.low)
    lost = select(flat, 0.0, rest / below.high)
    square = ratio * ratio
    tail = ratio * (square * polynomial(ARCTANGENT[short.dtype.bits], square))
    angle = quick_sum(ratio, tail + (lost - lost * square))
    eighths = choose(back, _quarters(3, short), _quarters(1, short))
    halves = choose(back, _quarters(4, short), Double(zero, zero))
    base = choose(turned, eighths, choose(steep, _quarters(2, short), halves))
    return _turned(base, choose(steep ^ back, -angle, angle))
