"""Elementary functions of the kernel language, as plain Python over NumPy: the bits of a kernel.

Integers count as f32, as in a kernel; a Python float is a double. f16 and bf16 are computed as f32
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
    "cos",
    "exp",
    "sin",
    "tan",
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


def cos(x: Any) -> Any:
    """The cosine of an angle in radians, however great; NaN of infinities.

    >>> float(cos(0.0))
    1.0
    """
    return _apply("cos", x)


def exp(x: Any) -> Any:
    """E to the power of ``x``, in the type of the float ``x``.

    >>> float(exp(0.0))
    1.0
    """
    return _apply("exp", x)


def sin(x: Any) -> Any:
    """The sine of an angle in radians, however great; NaN of infinities. Zeros keep their sign.

    >>> float(sin(1e22))
    -0.8522008497671888
    """
    return _apply("sin", x)


def tan(x: Any) -> Any:
    """The tangent of an angle in radians, however great; NaN of infinities. Zeros keep their sign.

    >>> float(tan(-0.0))
    -0.0
    """
    return _apply("tan", x)


def _apply(name: str, *args: Any) -> Any:
    import numpy as np

    from tack.elementary.evaluate import evaluate

    dtype = np.result_type(*(each if hasattr(each, "dtype") else type(each) for each in args))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float32)
    wide = f64 if dtype == np.float64 else f32
    numbers = [np.asarray(each).astype(f"f{wide.itemsize}")[()] for each in args]
    result = evaluate(formula_of(name, wide), *numbers)
    shaped = next((each for each in args if isinstance(each, np.ndarray)), None)
    if shaped is None:
        return dtype.type(result)
    return result.astype(dtype).view(type(shaped))
