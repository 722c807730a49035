"""exp and its kind.

The argument is ``n * ln(2) + r`` where ``n`` is whole and ``abs(r) <= ln(2) / 2`` has twice the
precision (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980). Then
``exp(r) = 1 + r + even + odd`` with ``even = cosh(r) - 1`` and ``odd = sinh(r) - r``, of which the
first two are added without error (J.-M. Muller, "Elementary Functions", 3rd edition, 2016).
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.parts import between, power_of_two, scaled
from tack.elementary.precise import Double, double, polynomial, product, quick_sum, sum_of
from tack.elementary.term import Term, constant, copysign, integer, nearest, select

__all__ = [
    "LN2",
    "SPLIT_LN2",
    "at_most",
    "even_and_odd",
    "exp",
    "exp2",
    "expm1",
    "in_three",
    "raised",
    "reduced",
]

EVEN: Final = {
    32: (
        0.5,
        0.041666459292173386,
        0.0013935435563325882,
    ),
    64: (
        0.5,
        0.041666666666666685,
        0.0013888888888873283,
        2.4801587349190553e-05,
        2.755725184388848e-07,
        2.0921780729688434e-09,
    ),
}
"""``cosh(r) = 1 + z * polynomial(z)``, ``z = r * r``. By ``python tests/minimax.py``."""

ODD: Final = {
    32: (
        0.1666666716337204,
        0.008333188481628895,
        0.00019961838552262634,
    ),
    64: (
        0.16666666666666685,
        0.008333333333315722,
        0.00019841269899600593,
        2.7557231676806397e-06,
        2.5113138000604393e-08,
    ),
}
"""``sinh(r) = r + r * z * polynomial(z)``. By ``python tests/minimax.py``."""

LN2: Final = (0.6931471805599453, 2.3190468138462996e-17)

SPLIT_LN2: Final = {
    32: (0.693145751953125, 1.428606765330187e-06),
    64: (0.6931471805598903, 5.497923018708371e-14),
}
"""ln(2) in two parts, of which whole numbers up to twice the greatest exponent times the first are
exact."""

LOWEST: Final = {32: -105.0, 64: -746.0}
"""exp of anything lower is 0."""

HIGHEST: Final = {32: 89.0, 64: 710.0}
"""exp of anything higher is infinite."""


def exp(x: Term) -> Term:
    """E to the power of x."""
    bits = x.dtype.bits
    n, r = reduced(between(x, LOWEST[bits], HIGHEST[bits]))
    return select(x.differs(x), x, raised(n, r))


def exp2(x: Term) -> Term:
    """Two to the power of x."""
    least, greatest = (-151.0, 129.0) if x.dtype.bits == 32 else (-1076.0, 1025.0)
    safe = between(x, least, greatest)
    n = nearest(safe)
    return select(x.differs(x), x, raised(n, double(LN2, x) * (safe - n)))


def expm1(x: Term) -> Term:
    """E to the power of x, less 1, which keeps the digits next to 0."""
    bits = x.dtype.bits
    n, r = reduced(between(x, -20.0 if bits == 32 else -40.0, HIGHEST[bits]))
    half_square, even, odd = in_three(r)
    # Two to the power of -n, which is too small to be seen where n is large.
    one = sum_of(constant(1.0, x), -power_of_two(-integer(at_most(n, 60.0))))
    linear = sum_of(one.high, r.high)
    total = quick_sum(linear.high, half_square)
    value = total.high + (total.low + (linear.low + (one.low + (even + odd))))
    return select(x.differs(x), x, copysign(scaled(value, integer(n)), x))


def at_most(x: Term, greatest: float) -> Term:
    """``x``, or the greatest."""
    return select(x < greatest, x, greatest)


def reduced(x: Term, low: Term | None = None) -> tuple[Term, Double]:
    """``(n, r)`` where ``x + low = n * ln(2) + r`` and n is whole."""
    short, rest = SPLIT_LN2[x.dtype.bits]
    n = nearest(x * (1 / math.log(2)))
    below = n * -rest
    return n, quick_sum(x - n * short, below if low is None else below + low)


def raised(n: Term, r: Double) -> Term:
    """``exp(n * ln(2) + r)``."""
    even, odd = even_and_odd(r)
    total = quick_sum(constant(1.0, n), r.high)
    return scaled(total.high + (total.low + (even + odd)), integer(n))


def even_and_odd(r: Double) -> tuple[Term, Term]:
    """``cosh(r) - 1`` and ``sinh(r) - r.high``."""
    bits = r.high.dtype.bits
    z = r.high * r.high
    even = z * polynomial(EVEN[bits], z) + r.low * r.high
    odd = r.high * z * polynomial(ODD[bits], z) + r.low
    return even, odd


def in_three(r: Double) -> tuple[Term, Term, Term]:
    """`even_and_odd`, where the first, ``z / 2``, of the even terms stands alone.

    It is the greatest of those that are rounded, so that it is worth adding without error.
    """
    bits = r.high.dtype.bits
    square = product(r.high, r.high)
    z = square.high
    even = z * z * polynomial(EVEN[bits][1:], z) + r.low * r.high + 0.5 * square.low
    odd = r.high * z * polynomial(ODD[bits], z) + r.low
    return 0.5 * z, even, odd
