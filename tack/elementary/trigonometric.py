"""sin, cos and tan.

The angle is reduced to at most pi/4 (`reduction`) with its rounding error, near which sine and
cosine are polynomials; which of the two, and its sign, the quadrant says. The sign of the angle is
put aside first, so that functions are odd or even to the last bit.
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.precise import Double, choose, polynomial, quick_sum
from tack.elementary.reduction import reduced
from tack.elementary.term import Term, absolute, bits_of, from_bits, select

__all__ = ["COSINE", "SINE", "cos", "sin", "tan", "wave"]

SINE: Final = {
    32: (
        -0.1666666716337204,
        0.008333379402756691,
        -0.00019853064441122115,
        2.8325764560577227e-06,
    ),
    64: (
        -0.1666666666666663,
        0.00833333333332184,
        -0.00019841269829382348,
        2.7557313569011338e-06,
        -2.505074339919029e-08,
        1.5896198527460402e-10,
    ),
}
"""``sin(x) = x + x**3 * polynomial(x * x)`` up to pi/4."""

COSINE: Final = {
    32: (
        0.04166664555668831,
        -0.0013887309469282627,
        2.4432354621239938e-05,
    ),
    64: (
        0.041666666666666595,
        -0.0013888888888873342,
        2.480158728900191e-05,
        -2.755731421692359e-07,
        2.0875705370526194e-09,
        -1.1358747403602064e-11,
    ),
}
"""``cos(x) = 1 - x**2 / 2 + x**4 * polynomial(x * x)`` up to pi/4."""

_UPPER_HALF: Final = {32: 0xFFFFF000, 64: 0xFFFFFFFFF8000000}
"""The bits of a float that leave half of its precision, so that its square is exact."""


def sin(x: Term) -> Term:
    """The sine of an angle in radians; NaN of infinities."""
    n, angle = reduced(absolute(x))
    value = wave(n, angle) ^ (bits_of(x) & _sign_bit(x))
    return _finite(x, from_bits(value))


def cos(x: Term) -> Term:
    """The cosine of an angle in radians; NaN of infinities."""
    n, angle = reduced(absolute(x))
    return _finite(x, from_bits(wave(n + 1, angle)))


def tan(x: Term) -> Term:
    """The tangent of an angle in radians; NaN of infinities."""
    n, angle = reduced(absolute(x))
    odd = (n & 1).differs(0)
    cosine = _cosine(angle)
    cosine = quick_sum(cosine.high, cosine.low)
    # The errors of both add up: of the sine's, those of the sum and of the square are taken out.
    tail, low = _sine_tail(angle)
    half, rest = _half_square(angle.high)
    missing = (half - angle.high * angle.high * 0.5) + rest
    sine = quick_sum(angle.high, tail)
    sine = quick_sum(sine.high, sine.low + (low - angle.high * missing * (1 / 3)))
    ratio = choose(odd, cosine, sine) / choose(odd, sine, cosine)
    flipped = ((n & 1) << (x.dtype.bits - 1)) ^ (bits_of(x) & _sign_bit(x))
    return _finite(x, from_bits(bits_of(ratio.value) ^ flipped))


def _sign_bit(x: Term) -> int:
    return 1 << (x.dtype.bits - 1)


def _finite(x: Term, value: Term) -> Term:
    """The value, but NaN where ``x`` is infinite or NaN."""
    return select(absolute(x) < math.inf, value, math.nan)


def wave(n: Term, angle: Double) -> Term:
    """The bits of the sine of an angle in a quadrant, which the last two bits of ``n`` say."""
    tail, low = _sine_tail(angle)
    sine = angle.high + (tail + low)
    value = select((n & 1).differs(0), _cosine(angle).value, sine)
    return bits_of(value) ^ ((n & 2) << (n.dtype.bits - 2))


def _sine_tail(angle: Double) -> tuple[Term, Term]:
    """What is to be added to the upper half of the angle: much, and little."""
    x = angle.high
    square = x * x
    tail = x * (square * polynomial(SINE[x.dtype.bits], square))
    return tail, angle.low - angle.low * (square * 0.5)


def _half_square(x: Term) -> tuple[Term, Term]:
    """Half the square of a float, as the exact one of its upper half and what is left, rounded."""
    upper = from_bits(bits_of(x) & _UPPER_HALF[x.dtype.bits])
    return upper * upper * 0.5, (x + upper) * (x - upper) * 0.5


def _cosine(angle: Double) -> Double:
    """1 less half the square, which is as great as 0.3, and what is to be added to it."""
    x = angle.high
    square = x * x
    half, rest = _half_square(x)
    tail = square * square * polynomial(COSINE[x.dtype.bits], square)
    top = 1.0 - half
    lost = (1.0 - top) - half
    return Double(top, ((tail - x * angle.low) - rest) + lost)
