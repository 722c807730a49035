"""The numeric builtins of the kernel language in a module of their own, as ``tack.math.floor(x)``.

They are the same functions as ``tack.floor`` and its kind, for code that wants its mathematics by
one name, as it has it from Python's ``math``.
"""

from __future__ import annotations

from tack.lang.builtins import (
    ceil,
    clamp,
    clz,
    copysign,
    ctz,
    floor,
    fma,
    isfinite,
    isinf,
    isnan,
    mix,
    popcount,
    round,  # noqa: A004 - it is the language's word, and Python's
    sign,
    sqrt,
    step,
    trunc,
)
from tack.lang.elementary import acos, asin, atan, atan2, cos, exp, sin, tan

__all__ = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "ceil",
    "clamp",
    "clz",
    "copysign",
    "cos",
    "ctz",
    "exp",
    "floor",
    "fma",
    "isfinite",
    "isinf",
    "isnan",
    "mix",
    "popcount",
    "round",
    "sign",
    "sin",
    "sqrt",
    "step",
    "tan",
    "trunc",
]
