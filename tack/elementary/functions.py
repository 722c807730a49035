"""The table of elementary functions: name -> how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tack.elementary.exponential import exp
from tack.elementary.term import Formula, Term, trace
from tack.model.dtypes import DType

__all__ = ["FUNCTIONS", "formula_of"]

FUNCTIONS: Final[dict[str, Callable[..., Term]]] = {
    "exp": exp,
}
"""Builtin -> its function of terms of f32 or f64."""


def formula_of(name: str, dtype: DType) -> Formula:
    """The formula of a builtin for operands of f32 or f64."""
    function = FUNCTIONS[name]
    return trace(function, (dtype,) * function.__code__.co_argcount)
