"""rsqrt, cbrt and hypot: an approximation, and a last step by what it leaves, which is exact.

(W. Kahan, "Computing a Real Cube Root", 1991; J.-M. Muller et al., "Handbook of Floating-Point
Arithmetic", 2nd edition, 2018, on corrected roots.)
"""

from __future__ import annotations

import math
from typing import Final

from tack.elementary.parts import apart, power_of_two
from tack.elementary.precise import polynomial, product
from tack.elementary.term import (
    Term,
    absolute,
    bits_of,
    constant,
    copysign,
    from_bits,
    select,
    sqrt,
)

__all__ = ["cbrt", "hypot", "rsqrt"]

CUBE_ROOT: Final = (
    1.0000733137130737,
    0.33048683404922485,
    -0.0936477780342102,
    0.023100504651665688,
)
"""``cbrt(1 + z)`` from 1 to 2. By ``python tests/minimax.py``."""

HALF: Final = {32: 0xFFFFF000, 64: 0xFFFFFFFFF8000000}
"""The bits of a float of half as many digits, the square of which is exact."""


def rsqrt(x: Term) -> Term:
    """One divided by the square root of x."""
    m, exponent = apart(x, centred=False)
    odd = exponent & 1
    m = select(odd.equals(0), m, m + m)
    root = sqrt(m)
    near = 1.0 / root
    square = product(root, root)
    low = ((m - square.high) - square.low) * near * 0.5
    one = product(near, root)
    rest = ((1.0 - one.high) - one.low) - near * low
    value = (near + near * rest) * power_of_two(-((exponent - odd) >> 1))
    edge = select(x.equals(0.0), copysign(math.inf, x), constant(math.nan, x))
    return select(x > 0.0, select(x < math.inf, value, 0.0), edge)


def cbrt(x: Term) -> Term:
    """The cube root of x; of cubes it is exact."""
    size = absolute(x)
    fraction, exponent = apart(size, centred=False)
    # The exponent divided by 3, rounded down: 21846 / 2^16 is 1/3, and a little more.
    third = (((exponent + 3 * 512) * 21846) >> 16) - 512
    rest = exponent - third * 3
    m = fraction * power_of_two(rest)
    factor = select(
        rest.equals(0),
        constant(1.0, x),
        select(rest.equals(1), constant(2 ** (1 / 3), x), constant(4 ** (1 / 3), x)),
    )
    near = polynomial(CUBE_ROOT, fraction - 1.0) * factor
    if x.dtype.bits == 64:
        cube = near * near * near
        near = near + near * (m - cube) / (cube + cube + m)
    near = from_bits(bits_of(near) & HALF[x.dtype.bits])
    exact = product(near * near, near)
    left = (m - exact.high) - exact.low
    root = near + near * left / (exact.high + exact.high + m)
    value = copysign(root * power_of_two(third), x)
    return select((size > 0.0) & (size < math.inf), value, x)


def hypot(x: Term, y: Term) -> Term:
    """The square root of ``x * x + y * y``, computed where no square is too large or small."""
    a, b = absolute(x), absolute(y)
    a, b = select(a > b, a, b), select(a > b, b, a)
    bits = x.dtype.bits
    greatest = 126 if bits == 32 else 1022
    _, exponent = apart(a, centred=False)
    exponent = select(exponent > greatest, constant(greatest, exponent), exponent)
    exponent = select(exponent < -greatest, constant(-greatest, exponent), exponent)
    scale = power_of_two(-exponent)
    p, q = a * scale, b * scale
    total = product(p, p) + product(q, q)
    root = sqrt(total.high)
    square = product(root, root)
    left = ((total.high - square.high) - square.low) + total.low
    value = (root + left / (root + root)) * power_of_two(exponent)
    infinite = a.equals(math.inf) | b.equals(math.inf)
    unknown = x.differs(x) | y.differs(y)
    value = select(unknown, constant(math.nan, x), select(a.equals(0.0), a, value))
    return select(infinite, constant(math.inf, x), value)
