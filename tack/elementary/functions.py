"""The table of elementary functions: name -> how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tack.elementary.exponential import exp
from tack.elementary.inverse_trigonometric import acos, asin, atan, atan2
from tack.elementary.term import Formula, Term, trace
from tack.elementary.trigonometric import cos, sin, tan
from tack.model.dtypes import DType

__all__ = ["FUNCTIONS", "formula_of"]

FUNCTIONS: Final[dict[str, Callable[..., Term]]] = {
    "acos": acos,
    "asin": asin,
    "atan": atan,
    "atan2": atan2,
    "cos": cos,
    "exp": exp,
    "sin": sin,
    "tan": tan,
}
"""Builtin -> its function of terms of f32 or f64."""


def formula_of(name: str, dtype: DType) -> Formula:
    """The formula of a builtin for operands of f32 or f64."""
    function = FUNCTIONS[name]
    return trace(function, (dtype,) * function.__code__.co_argcount)
