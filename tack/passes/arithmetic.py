"""The arithmetic of constants: each operation with the defined result of its type.

Values are Python numbers as `IRConstant` holds them: bool, an int in range, a float that its type
represents. A narrower float rounds the double result of + - * / and sqrt; double rounding is
harmless there, since a double has more than twice its precision (Figueroa, "When is double rounding
innocuous?", 1995).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final

from tack.model.dtypes import DType, float_of, round_float

__all__ = [
    "COMPARE",
    "call",
    "convert",
    "exact",
    "float_divide",
    "float_floor_divide",
    "float_remainder",
    "integer_power",
    "operate",
    "pick",
    "round_integer",
]

Number = float
"""A Python bool, int or float (which type checkers call float)."""

COMPARE: Final[dict[str, Callable[[Number, Number], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def float_divide(a: float, b: float) -> float:
    """IEEE division of doubles."""
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def fmod(a: float, b: float) -> float:
    """C's fmod; exact, so that it serves f32 too."""
    if math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


def float_remainder(a: float, b: float, dtype: DType) -> float:
    """``a % b`` as CPython's ``float_rem`` does it, each operation rounded to ``dtype``."""
    mod = fmod(a, b)
    if mod == 0:
        return math.copysign(0.0, b)
    return round_float(mod + b, dtype) if (b < 0) != (mod < 0) else mod


def float_floor_divide(a: float, b: float, dtype: DType) -> float:
    """``a // b`` as CPython's ``float_floor_div`` does it; by zero what ``a / b`` is."""
    if b == 0:
        return float_divide(a, b)
    mod = fmod(a, b)
    quotient = round_float(float_divide(round_float(a - mod, dtype), b), dtype)
    if mod != 0 and (b < 0) != (mod < 0):
        quotient = round_float(quotient - 1.0, dtype)
    if quotient == 0:
        return math.copysign(0.0, a) * math.copysign(1.0, b)
    if not math.isfinite(quotient):
        return quotient
    floored = float(math.floor(quotient))
    if round_float(quotient - floored, dtype) > 0.5:
        floored = round_float(floored + 1.0, dtype)
    return floored


def integer_power(base: int, exponent: int, dtype: DType) -> int:
    """``base ** exponent`` modulo 2^bits; negative exponents as spec'd: 0, or 1 or -1."""
    if exponent >= 0:
        return dtype.wrap(pow(base, exponent, 1 << dtype.bits))
    return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)


_INTEGER: Final[dict[str, Callable[[int, int, DType], int]]] = {
    "+": lambda a, b, dtype: a + b,
    "-": lambda a, b, dtype: a - b,
    "*": lambda a, b, dtype: a * b,
    "//": lambda a, b, dtype: a // b if b else 0,
    "%": lambda a, b, dtype: a % b if b else 0,
    "&": lambda a, b, dtype: a & b,
    "|": lambda a, b, dtype: a | b,
    "^": lambda a, b, dtype: a ^ b,
    "<<": lambda a, b, dtype: a << (b % dtype.bits),
    ">>": lambda a, b, dtype: a >> (b % dtype.bits),
    "**": integer_power,
}

_FLOAT: Final[dict[str, Callable[[float, float, DType], float]]] = {
    "+": lambda a, b, dtype: a + b,
    "-": lambda a, b, dtype: a - b,
    "*": lambda a, b, dtype: a * b,
    "/": lambda a, b, dtype: float_divide(a, b),
    "//": float_floor_divide,
    "%": float_remainder,
    "**": lambda a, b, dtype: a * a,  # of floats it is a square
}


def operate(op: str, a: Number, b: Number, dtype: DType) -> Number:
    """``a op b`` at ``dtype``, an operator of `PYTHON_BINARY` that the type has."""
    if dtype.is_float:
        return round_float(_FLOAT[op](a, b, dtype), dtype)
    result = dtype.wrap(_INTEGER[op](int(a), int(b), dtype))
    return bool(result) if dtype.is_bool else result


_EXACT_LIMIT: Final = 4096
"""Bits beyond which literals are not multiplied out; far above what any type holds."""

_EXACT: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "**": operator.pow,
}


def exact(op: str, a: int, b: int) -> int:
    """``a op b`` of integer literals as Python does it.

    ``ValueError`` with a sentence where Python would raise or the result is of no use.
    """
    if op in ("//", "%") and b == 0:
        raise ValueError(f"{a} {op} 0 divides a literal by zero")
    if op in ("<<", ">>") and b < 0:
        raise ValueError(f"{a} {op} {b} shifts a literal by a negative count")
    if (op == "<<" and b > _EXACT_LIMIT) or (
        op == "**" and a not in (-1, 0, 1) and b * a.bit_length() > _EXACT_LIMIT
    ):
        raise ValueError(f"{a} {op} {b} fits no type")
    return int(_EXACT[op](a, b))


def pick(name: str, a: Number, b: Number) -> Number:
    """``min`` or ``max``: the first of equals (of -0.0 and 0.0 too), a number rather than NaN."""
    if math.isnan(a):
        return b
    return b if (b < a if name == "min" else a < b) else a


def _rounded(function: Callable[[float], int]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        if not math.isfinite(value):
            return value
        return math.copysign(float(function(value)), value)

    return apply


_UNARY_FLOAT: Final[dict[str, Callable[[float], float]]] = {
    "abs": math.fabs,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "trunc": _rounded(math.trunc),
    "round": _rounded(round),
    "sqrt": lambda a: a if a == 0 else math.sqrt(a) if a > 0 else math.nan,
}


def call(name: str, args: Sequence[Number], dtype: DType) -> Number | None:
    """A builtin of constants at ``dtype``; None where constants are not folded (fma)."""
    if name in ("min", "max"):
        return pick(name, args[0], args[1])
    if dtype.is_float and name in _UNARY_FLOAT:
        return round_float(_UNARY_FLOAT[name](args[0]), dtype)
    if name == "abs":
        return dtype.wrap(abs(int(args[0])))
    return None


def convert(value: Number, dtype: DType) -> Number:
    """A cast of a constant; an integer is rounded to a float once, at any size."""
    if dtype.is_float and type(value) is not float:
        return round_integer(int(value), dtype)
    return dtype.convert(value)


_KEPT_BITS: Final = 40
"""More bits than f32 has, fewer than a double: what lies below only decides ties."""


def round_integer(value: int, dtype: DType) -> float:
    """The float of ``dtype`` nearest to an integer, ties to even, infinity beyond its range.

    For floats narrower than f64 the low bits of a long integer are gathered into one, so that going
    through a double does not round twice.
    """
    shift = value.bit_length() - _KEPT_BITS
    if dtype.bits == 64 or shift <= 0:
        return round_float(float_of(value), dtype)
    magnitude = abs(value)
    kept = (magnitude >> shift << 1) | (magnitude & ((1 << shift) - 1) != 0)
    rounded = round_float(_scaled(kept, shift - 1), dtype)
    return -rounded if value < 0 else rounded


def _scaled(mantissa: int, exponent: int) -> float:
    """``mantissa * 2 ** exponent``, infinity beyond the range of a double."""
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf
