"""sinh, cosh and tanh, of both exponentials at once.

With ``x = n * ln(2) + r`` and ``t = 2^(-2n)``, twice of sinh and cosh are ``2^n`` times
``exp(r) - t * exp(-r)`` and ``exp(r) + t * exp(-r)``. The even and the odd part of both are the
same polynomials, and what is great in them is added without error.
"""

from __future__ import annotations

from typing import Final

from tack.elementary.exponential import at_most, in_three, reduced
from tack.elementary.parts import between, power_of_two, scaled
from tack.elementary.precise import Double, quick_sum
from tack.elementary.term import Term, absolute, constant, copysign, integer, select

__all__ = ["cosh", "sinh", "tanh"]

HIGHEST: Final = {32: 90.0, 64: 711.0}
"""sinh and cosh of anything higher are infinite."""

ONE: Final = {32: 10.0, 64: 22.0}
"""tanh of anything higher is 1."""

TINY: Final = {32: 2.0**-13, 64: 2.0**-28}
"""tanh of anything lower is itself."""


def sinh(x: Term) -> Term:
    """The hyperbolic sine of x."""
    n, value, _ = _both(absolute(x), HIGHEST[x.dtype.bits])
    result = scaled(value.value, integer(n) - 1)
    return select(x.differs(x), x, copysign(result, x))


def cosh(x: Term) -> Term:
    """The hyperbolic cosine of x."""
    n, _, value = _both(absolute(x), HIGHEST[x.dtype.bits])
    return select(x.differs(x), x, scaled(value.value, integer(n) - 1))


def tanh(x: Term) -> Term:
    """The hyperbolic tangent of x."""
    bits, size = x.dtype.bits, absolute(x)
    _, sine, cosine = _both(size, ONE[bits])
    usual = copysign((sine / cosine).value, x)
    return select(size > TINY[bits], usual, x)


def _both(x: Term, highest: float) -> tuple[Term, Double, Double]:
    """``(n, s, c)`` where sinh and cosh of x, not below 0, are ``s`` and ``c`` times 2^(n-1)."""
    n, r = reduced(between(x, 0.0, highest))
    half_square, even, odd = in_three(r)
    root = power_of_two(-integer(at_most(n, 40.0)))
    t = root * root

    def total(t: Term) -> Double:
        """``exp(r) + t * exp(-r)``."""
        one = constant(1.0, x)
        plain, linear = quick_sum(one, t), quick_sum(r.high, -(t * r.high))
        square = quick_sum(half_square, t * half_square)
        first = quick_sum(plain.high, linear.high)
        second = quick_sum(first.high, square.high)
        small = (one + t) * even + (one - t) * odd
        low = first.low + second.low + (plain.low + linear.low + square.low)
        return quick_sum(second.high, low + small)

    return n, total(-t), total(t)
