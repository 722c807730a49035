"""Elementary functions of the kernel language, as plain Python over NumPy: the bits of a kernel.

Integers count as f32, as in a kernel; Python numbers take the type of what they meet, and a Python
float that meets nothing is a double. f16 and bf16 are computed as f32
and rounded. How far each function is from the exact value at most is told in docs/arithmetic.md.
"""

from __future__ import annotations

from typing import Any

from tack.elementary.functions import FUNCTIONS, formula_of
from tack.model.dtypes import f32, f64

__all__ = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

assert set(__all__) == set(FUNCTIONS), "each function is a builtin"


def acos(x: Any) -> Any:
    """The angle from 0 to pi whose cosine is ``x``, in radians; NaN where ``abs(x) > 1``.

    >>> float(acos(1.0))
    0.0
    """
    return _apply("acos", x)


def asin(x: Any) -> Any:
    """The angle from -pi/2 to pi/2 whose sine is ``x``, in radians; NaN where ``abs(x) > 1``.

    Zeros keep their sign.

    >>> float(asin(-0.0))
    -0.0
    """
    return _apply("asin", x)


def atan(x: Any) -> Any:
    """The angle from -pi/2 to pi/2 whose tangent is ``x``, in radians; of infinities those two.

    Zeros keep their sign.

    >>> float(atan(1.0)) * 4
    3.141592653589793
    """
    return _apply("atan", x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point ``(x, y)``, from -pi to pi, in radians, as in C.

    It has the sign of ``y``, and for a zero ``y`` it is that zero or, where ``x`` has a sign, pi:
    of zeros as well. Infinities count as equally great.

    >>> float(atan2(0.0, -1.0))
    3.141592653589793
    """
    return _apply("atan2", y, x)


def cbrt(x: Any) -> Any:
    """The cube root of ``x``, of negative numbers too; exact for cubes.

    0, infinities and NaN are themselves.

    >>> float(cbrt(-27.0))
    -3.0
    """
    return _apply("cbrt", x)


def cos(x: Any) -> Any:
    """The cosine of an angle in radians, however great; NaN of infinities.

    >>> float(cos(0.0))
    1.0
    """
    return _apply("cos", x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine of ``x``.

    Infinite for infinities, and where it is too large for the type.

    >>> float(cosh(0.0))
    1.0
    """
    return _apply("cosh", x)


def erf(x: Any) -> Any:
    """The error function of ``x``: how much of a normal distribution is that near to 0.

    -1 and 1 for infinities; zeros keep their sign.

    >>> float(erf(0.0))
    0.0
    """
    return _apply("erf", x)


def exp(x: Any) -> Any:
    """E to the power of ``x``.

    0 for minus infinity, and infinite where it is too large for the type.

    >>> float(exp(0.0))
    1.0
    """
    return _apply("exp", x)


def exp2(x: Any) -> Any:
    """Two to the power of ``x``; exact for whole numbers.

    0 for minus infinity, and infinite where it is too large for the type.

    >>> float(exp2(10.0))
    1024.0
    """
    return _apply("exp2", x)


def expm1(x: Any) -> Any:
    """``exp(x) - 1``, which keeps its digits next to 0.

    -1 for minus infinity; zeros keep their sign.

    >>> float(expm1(0.0))
    0.0
    """
    return _apply("expm1", x)


def hypot(x: Any, y: Any) -> Any:
    """``sqrt(x * x + y * y)``, where the squares are neither too large nor too small.

    Infinite if one of the two is, even beside NaN.

    >>> float(hypot(3.0, 4.0))
    5.0
    """
    return _apply("hypot", x, y)


def log(x: Any) -> Any:
    """The natural logarithm of ``x``.

    Minus infinity for both zeros, NaN below.

    >>> float(log(1.0))
    0.0
    """
    return _apply("log", x)


def log1p(x: Any) -> Any:
    """``log(1 + x)``, which keeps its digits next to 0.

    Minus infinity for -1, NaN below; zeros keep their sign.

    >>> float(log1p(0.0))
    0.0
    """
    return _apply("log1p", x)


def log2(x: Any) -> Any:
    """The logarithm of ``x`` to base 2; exact for powers of two.

    Minus infinity for both zeros, NaN below.

    >>> float(log2(8.0))
    3.0
    """
    return _apply("log2", x)


def log10(x: Any) -> Any:
    """The logarithm of ``x`` to base 10; exact for powers of ten.

    Minus infinity for both zeros, NaN below.

    >>> float(log10(1000.0))
    3.0
    """
    return _apply("log10", x)


def pow(x: Any, y: Any) -> Any:  # noqa: A001 - it is the language's word, and Python's
    """``x`` to the power of ``y``.

    NaN of a negative ``x`` where ``y`` is not whole; 1 where ``y`` is 0 or ``x`` is 1, even beside
    NaN; the other edges as in C99, F.9.4.4.

    >>> float(pow(2.0, 10.0))
    1024.0
    """
    return _apply("pow", x, y)


def rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``, rounded but once.

    Infinite for zeros, with their sign; 0 for infinity; NaN below zero.

    >>> float(rsqrt(4.0))
    0.5
    """
    return _apply("rsqrt", x)


def sin(x: Any) -> Any:
    """The sine of an angle in radians, however great; NaN of infinities. Zeros keep their sign.

    >>> float(sin(1e22))
    -0.8522008497671888
    """
    return _apply("sin", x)


def sinh(x: Any) -> Any:
    """The hyperbolic sine of ``x``.

    Infinities and NaN are themselves; zeros keep their sign.

    >>> float(sinh(0.0))
    0.0
    """
    return _apply("sinh", x)


def tan(x: Any) -> Any:
    """The tangent of an angle in radians, however great; NaN of infinities. Zeros keep their sign.

    >>> float(tan(-0.0))
    -0.0
    """
    return _apply("tan", x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent of ``x``.

    -1 and 1 for infinities; zeros keep their sign.

    >>> float(tanh(0.0))
    0.0
    """
    return _apply("tanh", x)


def _apply(name: str, *args: Any) -> Any:
    import numpy as np

    from tack.elementary.evaluate import evaluate

    typed = [each.dtype for each in args if hasattr(each, "dtype")]
    floats = [dtype for dtype in typed if dtype.kind not in "biu"]
    if not floats:
        literal = not typed and any(isinstance(each, float) for each in args)
        floats = [np.dtype(np.float64 if literal else np.float32)]
    dtype = np.result_type(*floats)
    wide = f64 if dtype == np.float64 else f32
    numbers = [np.asarray(each).astype(f"f{wide.itemsize}")[()] for each in args]
    result = evaluate(formula_of(name, wide), *numbers)
    shaped = next((each for each in args if isinstance(each, np.ndarray)), None)
    if shaped is None:
        return dtype.type(result)
    return result.astype(dtype).view(type(shaped))
