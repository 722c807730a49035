"""erf: a polynomial up to 7/8, and beyond it 1 less the small rest.

The rest is ``exp(-x * x)`` times a polynomial of ``(x - 2) / (x + 2)`` (J. L. Schonfelder,
"Chebyshev expansions for the error and related functions", Mathematics of Computation 32, 1978).
"""

from __future__ import annotations

from typing import Final

from tack.elementary.exponential import even_and_odd, reduced
from tack.elementary.parts import between, power_of_two
from tack.elementary.precise import polynomial, product, quick_sum
from tack.elementary.term import Term, absolute, constant, copysign, integer, select

__all__ = ["erf"]

NEAR_ZERO: Final = {
    32: (
        -0.33674049377441406,
        0.10330912470817566,
        -0.02498411387205124,
        0.004879685118794441,
        -0.0007480060448870063,
        6.598678737645969e-05,
    ),
    64: (
        -0.3367405013216957,
        0.10330978049301248,
        -0.02499244572783003,
        0.0049148088608491885,
        -0.0008109543558761752,
        0.00011509356639181801,
        -1.4321033582813306e-05,
        1.585886025557204e-06,
        -1.5814829352682564e-07,
        1.4297798907316494e-08,
        -1.145612470422129e-09,
        6.618799350934336e-11,
    ),
}
"""``erf(x) = x + x * (z - FIXED) * polynomial(z)``, ``z = x * x``. By ``tests/minimax.py``."""

TAIL: Final = {
    32: (
        0.25539568066596985,
        -0.42718589305877686,
        0.24165496230125427,
        -0.07900866866111755,
        0.00365462270565331,
        0.007124731782823801,
    ),
    64: (
        0.25539567631050575,
        -0.42718584741395926,
        0.24165819424244542,
        -0.0789785810155781,
        0.0037328924099118295,
        0.006997461757704188,
        -0.0008471435547373835,
        -0.000981979344637982,
        4.3555973289666105e-05,
        0.00017441578575705217,
        2.7701886064640775e-05,
        -2.7667628760901967e-05,
        -1.5623175472308487e-05,
        -2.4700088913655445e-06,
    ),
}
"""``erfc(x) = exp(-x * x) * polynomial((x - 2) / (x + 2))`` from 7/8 on. By the same."""

FIXED: Final = (0.3812255859375, 1.5062548881805339e-05)
"""The square of the number that is its own error function, in two parts of which one is short."""

ONE: Final = {32: 4.0, 64: 6.0}
"""erf of anything higher is 1."""


def erf(x: Term) -> Term:
    """The error function of x."""
    bits = x.dtype.bits
    size = between(absolute(x), 0.0, ONE[bits])
    square = product(size, size)
    z = square.high
    offset = (z - FIXED[0] - FIXED[1]) + square.low
    near = size + size * (offset * polynomial(NEAR_ZERO[bits], z))
    n, r = reduced(-z, -square.low)
    even, odd = even_and_odd(r)
    power = quick_sum(constant(1.0, x), r.high)
    factor = power_of_two(integer(n)) * polynomial(TAIL[bits], (size - 2.0) / (size + 2.0))
    rest = product(power.high, factor)
    total = quick_sum(constant(1.0, x), -rest.high)
    far = total.high + (total.low - (rest.low + (power.low + (even + odd)) * factor))
    return select(x.differs(x), x, copysign(select(size < 0.875, near, far), x))
