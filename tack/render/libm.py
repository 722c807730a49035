"""The functions of C's library that ``fp="fast"`` calls on CPUs.

Those alone that gain by it. A formula of tack's own is vectorized with the loop around it and a
call is not, so that `exp` by way of the library takes three times as long; what is listed here has
formulas with long ways through them (``pow``, angles), or long polynomials of doubles.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LIBRARY"]

_OF: Final = {
    "cos": ("f32", "f64"),
    "erf": ("f64",),
    "log2": ("f64",),
    "pow": ("f32", "f64"),
    "sin": ("f32", "f64"),
    "tan": ("f64",),
}

LIBRARY: Final = {
    (function, dtype): function + ("f" if dtype == "f32" else "")
    for function, dtypes in _OF.items()
    for dtype in dtypes
}
"""(elementary function, dtype name) -> the function of C."""
