"""pow: ``exp(y * log(x))`` with a logarithm of more than twice the precision of the exponent.

The logarithm of the greatest results is some 2^10, so that it needs ten bits more than the result
has, and a few to spare: the first terms of its series have twice the precision (J.-M. Muller,
"Elementary Functions", 3rd edition, 2016, on powers; special values are those of C99, F.9.4.4).
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.exponential import HIGHEST, LOWEST, SPLIT_LN2, raised, reduced
from tack.elementary.logarithm import ratio
from tack.elementary.parts import apart, between
from tack.elementary.precise import Double, double, polynomial, quick_sum
from tack.elementary.term import Term, absolute, as_float, constant, copysign, floor, select

__all__ = ["pow"]

SERIES: Final = {
    32: (
        0.20000076293945312,
        0.14273545145988464,
        0.11709815263748169,
    ),
    64: (
        0.14285714285716586,
        0.11111111110003948,
        0.09090909303084535,
        0.0769228642026064,
        0.06667882809993411,
        0.058424935255077595,
        0.05955727554084807,
    ),
}
"""What follows LEADING in ``atanh(s) = s + s * z * (LEADING... + polynomial(z))``, ``z = s * s``.
By ``python tests/minimax.py``."""

LEADING: Final = {
    32: ((1 / 3, 0.0),),
    64: ((0.3333333333333333, 1.850371707708594e-17), (0.2, -1.1102230246251566e-17)),
}

GREATEST: Final = {32: 2.0**32, 64: 2.0**64}
"""An exponent as great makes any base but 1 nothing or infinite."""


def pow(x: Term, y: Term) -> Term:  # noqa: A001 - it is the language's word, and Python's
    """X to the power of y."""
    bits = x.dtype.bits
    base, infinity = absolute(x), constant(math.inf, x)
    exponent = between(y, -GREATEST[bits], GREATEST[bits])
    product = _log(base) * exponent
    low, high = LOWEST[bits], HIGHEST[bits]
    inside = (product.high > low) & (product.high < high)
    n, r = reduced(between(product.high, low, high), select(inside, product.low, 0.0))
    value = raised(n, r)

    unbounded = base.equals(0.0) | base.equals(infinity)
    grows = base.equals(infinity) ^ (y < 0.0)
    value = select(unbounded, select(grows, infinity, constant(0.0, x)), value)

    whole = floor(y).equals(y)
    odd = whole & floor(y * 0.5).differs(y * 0.5)
    value = select(odd, copysign(value, x), value)
    undefined = (x < 0.0) & ~whole & base.differs(infinity)
    unknown = x.differs(x) | y.differs(y)
    value = select(undefined | unknown, constant(math.nan, x), value)
    return select(x.equals(1.0) | y.equals(0.0), constant(1.0, x), value)


def _log(x: Term) -> Double:
    """The logarithm of a positive finite number."""
    bits = x.dtype.bits
    m, exponent = apart(x, centred=True)
    s = ratio(m)
    z = s * s
    last, *middle = (double(each, x) for each in reversed(LEADING[bits]))
    total = last + z.high * polynomial(SERIES[bits], z.high)
    for each in middle:
        total = total * z + each
    log_m = s + s * (total * z)
    k = as_float(exponent)
    short, rest = SPLIT_LN2[bits]
    return quick_sum(k * short, k * rest) + Double(log_m.high * 2.0, log_m.low * 2.0)
