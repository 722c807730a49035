"""log and its kind.

The argument is ``m * 2**k`` with ``m`` from sqrt(1/2) to sqrt(2), and ``log(m) = 2 * atanh(s)``
where ``s = (m - 1) / (m + 1)`` has twice the precision; the powers of ``s`` above the first are
small (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980).
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.exponential import SPLIT_LN2, at_most
from tack.elementary.parts import apart, power_of_two
from tack.elementary.precise import Double, double, polynomial, quick_sum, sum_of
from tack.elementary.term import Term, absolute, as_float, constant, integer, select

__all__ = ["log", "log1p", "log2", "log10", "ratio"]

SERIES: Final = {
    32: (
        0.3333338797092438,
        0.19988788664340973,
        0.14935874938964844,
    ),
    64: (
        0.33333333333333676,
        0.1999999999970464,
        0.14285714371803024,
        0.11111099226784042,
        0.09091784897821761,
        0.0765696936231451,
        0.07398367760385349,
    ),
}
"""``atanh(s) = s + s * z * polynomial(z)``, ``z = s * s``. By ``python tests/minimax.py``."""

ONE_BY_LN2: Final = (1.4426950408889634, 2.0355273740931033e-17)
ONE_BY_LN10: Final = (0.4342944819032518, 1.098319650216765e-17)

SPLIT_LG2: Final = {
    32: (0.30103302001953125, -3.024355464731343e-06),
    64: (0.30102999566395283, 2.8363394551044964e-14),
}
"""log10(2) in two parts, of which whole numbers up to twice the greatest exponent times the first
are exact."""


def log(x: Term) -> Term:
    """The natural logarithm of x."""
    m, exponent = apart(x, centred=True)
    k = as_float(exponent)
    short, rest = SPLIT_LN2[x.dtype.bits]
    return _defined(x, _total(k * short, k * rest, _log(m)))


def log2(x: Term) -> Term:
    """The logarithm of x to base 2; of powers of two it is exact."""
    m, exponent = apart(x, centred=True)
    return _defined(x, _total(as_float(exponent), None, _log(m) * double(ONE_BY_LN2, x)))


def log10(x: Term) -> Term:
    """The logarithm of x to base 10; of powers of ten it is exact."""
    m, exponent = apart(x, centred=True)
    k = as_float(exponent)
    short, rest = SPLIT_LG2[x.dtype.bits]
    return _defined(x, _total(k * short, k * rest, _log(m) * double(ONE_BY_LN10, x)))


def log1p(x: Term) -> Term:
    """The natural logarithm of 1 + x, which keeps the digits next to 0."""
    bits = x.dtype.bits
    y = sum_of(constant(1.0, x), x)
    m, exponent = apart(y.high, centred=True)
    k = as_float(exponent)
    low = y.low * power_of_two(-integer(at_most(k, 100.0)))
    short, rest = SPLIT_LN2[bits]
    value = _total(k * short, k * rest, _log(m, low))
    tiny = absolute(x) < (2.0**-30 if bits == 32 else 2.0**-60)
    return select(tiny, x, _defined(y.high, value))


def ratio(m: Term, low: Term | None = None) -> Double:
    """``(m - 1) / (m + 1)`` of ``m + low``, where ``m`` is from sqrt(1/2) to sqrt(2)."""
    one = constant(1.0, m)
    above, below = quick_sum(one, m), Double(m - 1.0, constant(0.0, m))
    if low is not None:
        above, below = Double(above.high, above.low + low), quick_sum(m - 1.0, low)
    return below / above


def _log(m: Term, low: Term | None = None) -> Double:
    """The logarithm of a number from sqrt(1/2) to sqrt(2)."""
    s = ratio(m, low)
    z = s.high * s.high
    rest = s.low + s.high * z * polynomial(SERIES[m.dtype.bits], z)
    return quick_sum(s.high + s.high, rest + rest)


def _total(high: Term, low: Term | None, log_m: Double) -> Term:
    total = quick_sum(high, log_m.high)
    rest = total.low + log_m.low
    return total.high + (rest if low is None else rest + low)


def _defined(x: Term, value: Term) -> Term:
    """The value of a logarithm where that is finite, else what it is at the edges."""
    edge = select(x.equals(0.0), constant(-math.inf, x), constant(math.nan, x))
    return select(x > 0.0, select(x < math.inf, value, x), edge)
