"""Exact arithmetic on payloads: Python integers, and NumPy floats that round every operation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from .types import Dtype

__all__ = [
    "Float",
    "ceil",
    "convert",
    "count_bits",
    "fdiv",
    "float_floordiv",
    "float_mod",
    "float_type",
    "floor",
    "fma",
    "int_binary",
    "int_pow",
    "nearest",
    "pick",
    "round_fraction",
    "saturate",
    "sign",
    "sqrt",
    "trunc",
    "wrap",
]

Float = np.float16 | np.float32 | np.float64
Number = TypeVar("Number", int, float, np.float32, np.float64)
_FORMATS = {
    "f8e4m3": (4, -9, 8),
    "f8e5m2": (3, -16, 15),
    "f16": (11, -24, 15),
    "bf16": (8, -133, 127),
    "f32": (24, -149, 127),
    "f64": (53, -1074, 1023),
}
"""Precision, least exponent, greatest."""

_KINDS = {
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


def float_type(dtype: Dtype) -> Any:
    """The NumPy scalar that holds `dtype`; those of 8 bits are only converted.

    One operation of those of 16 bits rounds once.
    """
    return _KINDS[dtype.name]


def wrap(value: int, dtype: Dtype) -> int:
    """`value` modulo 2^N, in the range of the integer type."""
    return (value - dtype.low) % (1 << dtype.bits) + dtype.low


def round_fraction(value: Fraction, dtype: Dtype) -> Float:
    """The float nearest to a fraction that is not 0, ties to even, subnormals kept."""
    precision, least, greatest = _FORMATS[dtype.name]
    kind = float_type(dtype)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    quantum = max(exponent - precision + 1, least)
    steps = round(magnitude / Fraction(2) ** quantum)  # halves to even
    overflows = steps.bit_length() + quantum > greatest + 1
    result = math.inf if overflows else math.ldexp(steps, quantum)
    if dtype.name == "f8e4m3" and result > 448:  # the bits beyond are NaN
        result = math.nan
    return kind(-result if value < 0 else result)


def saturate(value: float, dtype: Dtype) -> int:
    """Float to integer: towards zero, saturating, NaN is 0."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return dtype.high if value > 0 else dtype.low
    return min(max(int(value), dtype.low), dtype.high)


def convert(value: int | float | Float, dtype: Dtype) -> int | bool | Float:
    """`value` cast to `dtype`: integers wrap, floats to integers saturate, floats round."""
    integral = isinstance(value, int)
    if dtype.kind == "bool":
        return bool(value != 0)
    if dtype.kind == "float":
        if integral:
            number = int(value)
            return round_fraction(Fraction(number), dtype) if number else float_type(dtype)(0.0)
        if dtype.bits <= 16 and math.isfinite(value) and value != 0:
            return round_fraction(Fraction(float(value)), dtype)
        with np.errstate(all="ignore"):
            return float_type(dtype)(value)
    return wrap(int(value), dtype) if integral else saturate(float(value), dtype)


def int_pow(base: int, exponent: int, dtype: Dtype) -> int:
    """`base ** exponent` modulo 2^N; a negative exponent gives 0, or 1 or -1 for bases 1 and -1."""
    if exponent >= 0:
        return wrap(pow(base, exponent, 1 << dtype.bits), dtype)
    if base == 1:
        return 1
    if base == -1:
        return -1 if exponent % 2 else 1
    return 0


def int_binary(op: str, a: int, b: int, dtype: Dtype) -> int:
    """An integer operation at `dtype`, whose hazards have the defined results."""
    match op:
        case "+":
            exact = a + b
        case "-":
            exact = a - b
        case "*":
            exact = a * b
        case "//":
            exact = a // b if b else 0
        case "%":
            exact = a % b if b else 0
        case "&":
            exact = a & b
        case "|":
            exact = a | b
        case "^":
            exact = a ^ b
        case "<<":
            exact = a << (b % dtype.bits)
        case ">>":
            exact = a >> (b % dtype.bits)
        case "**":
            exact = int_pow(a, b, dtype)
        case _:
            raise AssertionError(op)
    return wrap(exact, dtype)


def fdiv(a: Float, b: Float) -> Float:
    """`a / b`; by zero a signed infinity or NaN."""
    with np.errstate(all="ignore"):
        return a / b


def float_mod(a: Float, b: Float) -> Float:
    """CPython's `float_rem`, at the type of the operands; `a % 0` is NaN."""
    with np.errstate(all="ignore"):
        mod = np.fmod(a, b)
        if mod == 0:
            return np.copysign(type(a)(0), b)  # type: ignore[no-any-return]
        return mod + b if (b < 0) != (mod < 0) else mod  # type: ignore[no-any-return]


def float_floordiv(a: Float, b: Float) -> Float:
    """CPython's `float_floor_div`, at the type of the operands; `a // 0` is that of `a / 0`."""
    if b == 0:
        return fdiv(a, b)
    one, half = type(a)(1), type(a)(0.5)
    with np.errstate(all="ignore"):
        mod = np.fmod(a, b)
        div = (a - mod) / b
        if mod != 0 and (b < 0) != (mod < 0):
            div = div - one
        if div == 0:
            return np.copysign(type(a)(0), a / b)  # type: ignore[no-any-return]
        floored = np.floor(div)
        return floored + one if div - floored > half else floored  # type: ignore[no-any-return]


def floor(a: Float) -> Float:
    """The integer at or below, as a float."""
    return np.floor(a)  # type: ignore[no-any-return]


def ceil(a: Float) -> Float:
    """The integer at or above, as a float."""
    return np.ceil(a)  # type: ignore[no-any-return]


def trunc(a: Float) -> Float:
    """The integer towards zero, as a float."""
    return np.trunc(a)  # type: ignore[no-any-return]


def sqrt(a: Float) -> Float:
    """The correctly rounded root; NaN for negatives, -0.0 for -0.0."""
    with np.errstate(all="ignore"):
        return np.sqrt(a)  # type: ignore[no-any-return]


def fma(a: Float, b: Float, c: Float, dtype: Dtype) -> Float:
    """`a * b + c` rounded once."""
    with np.errstate(all="ignore"):
        loose = a * b + c
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
            # An infinity decides alone; a product that only overflowed must not meet c = -inf.
            return c if np.isfinite(a) and np.isfinite(b) else loose
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        product_is_zero = a == 0 or b == 0
        return loose if product_is_zero else float_type(dtype)(0.0)
    return round_fraction(exact, dtype)


def pick(op: str, a: Number, b: Number) -> Number:
    """`min` or `max` of two: the first of equals, and a number rather than NaN."""
    if math.isnan(a):
        return b
    if math.isnan(b):
        return a
    return min(a, b) if op == "min" else max(a, b)  # Python's take the first of equals


def nearest(a: Float) -> Float:
    """The nearest integer, halves to the even one, as a float; zeros keep the sign of `a`."""
    value = float(a)
    if not math.isfinite(value) or abs(value) >= 2**52:
        return a
    return type(a)(math.copysign(round(value), value))


def sign(a: Number) -> Number:
    """1, 0 or -1; 0 without a sign for zeros, NaN for NaN."""
    if a == 0 or math.isnan(a):
        return type(a)(0) if a == 0 else a
    return type(a)(1 if a > 0 else -1)


def count_bits(name: str, value: int, dtype: Dtype) -> int:
    """popcount, clz or ctz of the bits that `value` has at `dtype`."""
    text = format(value % (1 << dtype.bits), f"0{dtype.bits}b")
    if name == "popcount":
        return text.count("1")
    trimmed = text.lstrip("0") if name == "clz" else text.rstrip("0")
    return len(text) - len(trimmed)
