"""The table of elementary functions: name -> how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tack.elementary.error_function import erf
from tack.elementary.exponential import exp, exp2, expm1
from tack.elementary.hyperbolic import cosh, sinh, tanh
from tack.elementary.inverse_trigonometric import acos, asin, atan, atan2
from tack.elementary.logarithm import log, log1p, log2, log10
from tack.elementary.power import pow as power
from tack.elementary.roots import cbrt, hypot, rsqrt
from tack.elementary.term import Formula, Term, trace
from tack.elementary.trigonometric import cos, sin, tan
from tack.model.dtypes import DType

__all__ = ["FUNCTIONS", "formula_of"]

FUNCTIONS: Final[dict[str, Callable[..., Term]]] = {
    "acos": acos,
    "asin": asin,
    "atan": atan,
    "atan2": atan2,
    "cbrt": cbrt,
    "cos": cos,
    "cosh": cosh,
    "erf": erf,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "hypot": hypot,
    "log": log,
    "log10": log10,
    "log1p": log1p,
    "log2": log2,
    "pow": power,
    "rsqrt": rsqrt,
    "sin": sin,
    "sinh": sinh,
    "tan": tan,
    "tanh": tanh,
}
"""Builtin -> its function of terms of f32 or f64."""


def formula_of(name: str, dtype: DType) -> Formula:
    """The formula of a builtin for operands of f32 or f64."""
    function = FUNCTIONS[name]
    return trace(function, (dtype,) * function.__code__.co_argcount)
