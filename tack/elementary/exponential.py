"""exp and its kind."""

from __future__ import annotations

import math

from tack.elementary.term import Term, constant, from_bits, integer, nearest, select

__all__ = ["exp"]


def exp(x: Term) -> Term:
    """E to the power of x (to be made exact)."""
    dtype = x.dtype
    safe = select((x < 88.0) & (x > -87.0), x, 0.0)
    n = nearest(safe * (1 / math.log(2)))
    r = safe - n * 0.693359375 - n * -2.12194440e-4
    y = constant(1 / 5040, x)
    for c in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        y = y * r + c
    bias, mantissa = (127, 23) if dtype.bits == 32 else (1023, 52)
    scale = from_bits((integer(n) + bias) << mantissa)
    return y * scale
