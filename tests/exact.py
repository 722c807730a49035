"""Exact arithmetic: elementary functions to any precision (mpmath), and rounding of fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

import mpmath
import numpy as np
from mpmath import mp, mpf

from tack.ir.operations import ELEMENTARY

__all__ = ["EXACT", "FORMATS", "error", "near_quarter_turns", "nearest"]

EXACT: Final[dict[str, Callable[..., Any]]] = {
    name: {
        "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        "exp2": lambda x: mpf(2) ** x,
        "log2": lambda x: mpmath.log(x, 2),
        "pow": mpmath.power,
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    }.get(name)
    or getattr(mpmath, name)
    for name in ELEMENTARY
}
"""Function -> the same of mpmath."""

PRECISION: Final = 1300
"""Bits that leave enough of the greatest f64 less its multiples of pi/2."""


def error(name: str, result: Any, *args: Any) -> float:
    """How far a finite result is from the exact value, in units in the last place of that."""
    info = np.finfo(result.dtype)
    with mp.workprec(PRECISION):
        exact = EXACT[name](*(mpf(float(each)) for each in args))
        exponent = mpmath.frexp(exact)[1] - 1 if exact else info.minexp
        unit = mpf(2) ** (min(max(exponent, info.minexp), info.maxexp - 1) - info.nmant)
        return float(abs(mpf(float(result)) - exact) / unit)


def near_quarter_turns(dtype: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Of the floats of each exponent one that is nearest to a multiple of pi/2.

    It is a denominator of a convergent of ``2/pi`` times a power of two (J.-M. Muller, "Elementary
    Functions", 2016, chapter 11).
    """
    info = np.finfo(dtype)
    with mp.workprec(PRECISION):
        found = [
            _nearest(exponent, info.nmant + 1) * mpf(2) ** exponent
            for exponent in range(-info.nmant, info.maxexp - info.nmant)
        ]
    return np.array([float(each) for each in found], dtype)


def _nearest(exponent: int, bits: int) -> int:
    *_, best = _denominators(mpf(2) ** exponent * 2 / mp.pi, 1 << bits)
    return best


def _denominators(x: Any, limit: int) -> Iterator[int]:
    before, now = 1, 0
    while True:
        whole = int(mpmath.floor(x))
        before, now = now, whole * now + before
        if now >= limit:
            return
        yield now
        x = 1 / (x - whole)


FORMATS: Final = {"f16": (11, 16), "bf16": (8, 128), "f32": (24, 128), "f64": (53, 1024)}
"""Float type -> the bits of its significand, and the exponent that its numbers stay below."""


def nearest(exact: Fraction, dtype: str) -> float:
    """The float nearest to a fraction, ties to even; infinity beyond the range. (0 is 0.0.)"""
    digits, limit = FORMATS[dtype]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent += size >= Fraction(2) ** (exponent + 1)
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, 2 - limit) - digits + 1)
    value = round(size / unit) * unit  # of a fraction, ties to even
    result = math.inf if value >= Fraction(2) ** limit else float(value)
    return math.copysign(result, -1 if exact < 0 else 1)
