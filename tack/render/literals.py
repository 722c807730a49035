"""Literals of the C family: text that reads back as the very same value.

>>> from tack.model.dtypes import f32, f64, i32
>>> decimal(0.1, f64), decimal(f32.convert(0.1), f32), decimal(1e30, f64)
('0.1', '0.1', '1e+30')
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from tack.model.dtypes import DType

__all__ = ["PRINTED", "decimal", "quoted"]

PRINTED: Final = {
    "i64": ("%lld", "long long"),
    "u64": ("%llu", "unsigned long long"),
    "f32": ("%.9g", "double"),
    "f64": ("%.17g", "double"),
}
"""Dtype of a printed value -> its conversion, with as many digits as tell a float from every other,
and the type in C that it takes."""

_F32_DIGITS = 9
_F32_FRACTION_BITS = 23
_F32_LEAST_EXPONENT = -149

_REMEMBERED = 4096
"""How many texts are kept: the formulas of elementary functions have the same numbers each time."""


_ESCAPED: Final = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\", "?": "\\?"}
"""Character -> how C spells it in a text; two question marks begin a trigraph."""


def quoted(text: str) -> str:
    r"""``text`` as a literal of C, in UTF-8.

    >>> print(quoted('100 % of "ä"'))
    "100 % of \"\303\244\""
    """
    return '"' + "".join(_ESCAPED.get(each) or _spelled(each) for each in text) + '"'


def _spelled(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())


@lru_cache(maxsize=_REMEMBERED)
def decimal(value: float, dtype: DType) -> str:
    """A short decimal form of a finite, non-negative float that rounds to it, without suffix."""
    if dtype.bits == 64:
        return repr(value)
    candidates = (f"{value:.{digits}g}" for digits in range(1, _F32_DIGITS + 1))
    text = next(text for text in candidates if _rounds_to_f32(Fraction(text), value))
    return text if "." in text or "e" in text else f"{text}.0"


def _rounds_to_f32(exact: Fraction, value: float) -> bool:
    """Whether ``exact`` is so near to ``value`` that rounding to binary32 gives it.

    In exact arithmetic: a compiler rounds the decimal once, while going through a double would
    round it twice. The bound is that of the side where the floats lie closer.
    """
    if value == 0:
        return exact == 0
    exponent = math.frexp(value)[1] - 1
    half_step = max(exponent - _F32_FRACTION_BITS - 2, _F32_LEAST_EXPONENT - 1)
    return abs(exact - Fraction(value)) < Fraction(2) ** half_step
