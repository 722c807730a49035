"""Builtins of the kernel language that Python lacks, as plain Python over NumPy.

In a kernel they are recognised by identity; called from plain Python, as ``kernel.py_func`` does,
they compute the same thing.
"""

from __future__ import annotations

import builtins as python
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

from tack.model import formulas
from tack.model.dtypes import DType, numpy_name
from tack.model.vectors import VectorType

__all__ = [
    "ceil",
    "clamp",
    "clz",
    "copysign",
    "cross",
    "ctz",
    "determinant",
    "dot",
    "floor",
    "fma",
    "inverse",
    "isfinite",
    "isinf",
    "isnan",
    "length",
    "local_array",
    "local_array_like",
    "mix",
    "ndrange",
    "normalize",
    "popcount",
    "round",
    "sign",
    "sqrt",
    "step",
    "transpose",
    "trunc",
]


def ndrange(*extents: int) -> Iterator[tuple[int, ...]]:
    """A loop over 2 or 3 dimensions, parallel if it is outermost; the last index runs fastest.

    >>> list(ndrange(1, 2))
    [(0, 0), (0, 1)]
    """
    return itertools.product(*map(range, map(int, extents)))


def local_array(dtype: DType | VectorType, shape: int | tuple[int, ...]) -> Any:
    """An array of zeros that belongs to one iteration; its size is known while compiling.

    Of a vector type its elements are vectors, which in NumPy are further dimensions.

    >>> local_array(tack.f32, 2)
    array([0., 0.], dtype=float32)
    """
    import numpy as np

    if isinstance(dtype, DType):
        return np.zeros(shape, numpy_name(dtype))
    outer = shape if isinstance(shape, tuple) else (shape,)
    from tack.model.vector_value import Vector

    return np.zeros((*outer, *dtype.shape), numpy_name(dtype.dtype)).view(Vector)


def local_array_like(array: Any, dtype: DType | None = None) -> Any:
    """A local array with the shape of ``array``, and with its dtype unless another is given."""
    import numpy as np

    return np.zeros_like(array, None if dtype is None else numpy_name(dtype))


def _keep(name: str, x: Any) -> Any:
    import numpy as np

    if np.asarray(x).dtype.kind in "biu":
        return x
    return getattr(np, name)(x)


def floor(x: Any) -> Any:
    """The greatest whole number not above ``x``, in the type of ``x``."""
    return _keep("floor", x)


def ceil(x: Any) -> Any:
    """The least whole number not below ``x``, in the type of ``x``."""
    return _keep("ceil", x)


def trunc(x: Any) -> Any:
    """``x`` without its fraction, in the type of ``x``."""
    return _keep("trunc", x)


def round(x: Any) -> Any:  # noqa: A001 - it is the language's word, and Python's
    """The whole number nearest to ``x``, halves to the even one, in the type of ``x``."""
    return _keep("rint", x)


def sqrt(x: Any) -> Any:
    """The correctly rounded square root; NaN below zero, -0.0 for -0.0."""
    import numpy as np

    if np.asarray(x).dtype.kind in "biu":
        x = x.astype(np.float32) if isinstance(x, np.ndarray) else np.float32(x)
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` with one rounding, in the promoted type of the three."""
    from fractions import Fraction

    import numpy as np

    vector = next((each for each in (a, b, c) if isinstance(each, np.ndarray)), None)
    if vector is not None:
        typed = (each for each in (a, b, c) if isinstance(each, np.ndarray | np.generic))
        dtype = np.result_type(*(each.dtype for each in typed))
        x, y, z = (
            np.broadcast_to(np.asarray(each, dtype), vector.shape).ravel() for each in (a, b, c)
        )
        parts = [fma(*row) for row in zip(x, y, z, strict=True)]
        return np.array(parts).reshape(vector.shape).view(type(vector))
    result = np.result_type(*(x if isinstance(x, np.generic) else type(x) for x in (a, b, c)))
    values = [float(x) for x in (a, b, c)]
    if not all(map(np.isfinite, values)) or values[0] * values[1] == 0 or result == np.float16:
        return result.type(values[0] * values[1] + values[2])
    exact = Fraction(values[0]) * Fraction(values[1]) + Fraction(values[2])
    if exact == 0:
        return result.type(values[0] * values[1] + values[2])
    return result.type(_round(exact, 24 if result == np.float32 else 53))


def dot(a: Any, b: Any) -> Any:
    """The sum of the products of two vectors' components, from left to right."""
    return formulas.dot(_vector("dot", a), _vector("dot", b))


def cross(a: Any, b: Any) -> Any:
    """The cross product of two vectors of 3."""
    return _made(formulas.cross(_vector("cross", a, 3), _vector("cross", b, 3)))


def length(v: Any) -> Any:
    """``sqrt(dot(v, v))``."""
    return sqrt(dot(v, v))


def normalize(v: Any) -> Any:
    """``v / length(v)``; NaN where the length is 0."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        return _vector("normalize", v) / length(v)


def transpose(m: Any) -> Any:
    """The matrix whose rows are the columns of ``m``."""
    return _made(formulas.transpose(_matrix("transpose", m)))


def determinant(m: Any) -> Any:
    """The determinant of a square matrix, expanded along its first row."""
    return formulas.determinant(_matrix("determinant", m, square=True))


def inverse(m: Any) -> Any:
    """The adjugate of a square matrix divided by its determinant."""
    import numpy as np

    rows = _matrix("inverse", m, square=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _made(formulas.inverse(rows, formulas.determinant(rows)))


def _vector(name: str, value: Any, count: int | None = None) -> Any:
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if len(shape) != 1 or (count is not None and shape != (count,)):
        raise TypeError(f"{name} takes vectors{f' of {count}' if count else ''}, not {value!r}")
    return value


def _matrix(name: str, value: Any, *, square: bool = False) -> Any:
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if len(shape) != 2 or (square and shape[0] != shape[1]):
        kind = "square matrix" if square else "matrix"
        raise TypeError(f"{name} takes a {kind}, not {value!r}")
    return value


def _made(parts: Any) -> Any:
    """The vector or matrix of these numbers."""
    import numpy as np

    from tack.model.vector_value import Vector

    return np.array(parts).view(Vector)


def _round(value: Fraction, precision: int) -> float:
    """``value`` rounded once to ``precision`` bits and the matching exponents, ties to even."""
    from fractions import Fraction

    least = -149 if precision == 24 else -1074
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    try:
        return float(python.round(value / unit) * unit)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def copysign(x: Any, y: Any) -> Any:
    """``x`` with the sign of ``y``, in the promoted type of the two floats."""
    import numpy as np

    return np.copysign(x, y)


def isnan(x: Any) -> Any:
    """Whether the float ``x`` is NaN."""
    import numpy as np

    return bool(np.isnan(x))


def isinf(x: Any) -> Any:
    """Whether the float ``x`` is one of the infinities."""
    import numpy as np

    return bool(np.isinf(x))


def isfinite(x: Any) -> Any:
    """Whether the float ``x`` is neither NaN nor an infinity."""
    import numpy as np

    return bool(np.isfinite(x))


def clamp(x: Any, low: Any, high: Any) -> Any:
    """``min(max(x, low), high)``: so NaN becomes ``low``.

    >>> clamp(300, 0, 255)
    255
    """
    at_least = low if math.isnan(x) or x < low else x
    return high if math.isnan(at_least) or high < at_least else at_least


def sign(x: Any) -> Any:
    """1, 0 or -1 in the type of ``x``; 0.0 for both zeros, and NaN for NaN."""
    import numpy as np

    return np.sign(x)


def step(edge: Any, x: Any) -> Any:
    """0 where ``x < edge``, else 1 (for NaN too), in the promoted type.

    >>> float(step(0.5, 0.75))
    1.0
    """
    import numpy as np

    return np.result_type(edge, x).type(not x < edge)


def mix(a: Any, b: Any, t: Any) -> Any:
    """``a * (1 - t) + b * t``: ``a`` for 0 and ``b`` for 1, in the promoted type.

    >>> mix(2.0, 4.0, 0.5)
    3.0
    """
    return a * (1 - t) + b * t


def popcount(x: Any) -> Any:
    """How many bits of the integer ``x`` are 1, in the type of ``x``; a Python int has 64 bits."""
    return _counted(x, lambda bits, width: bits.bit_count())


def clz(x: Any) -> Any:
    """How many bits above the highest 1 are 0, in the type of ``x``; the width for 0."""
    return _counted(x, lambda bits, width: width - bits.bit_length())


def ctz(x: Any) -> Any:
    """How many bits below the lowest 1 are 0, in the type of ``x``; the width for 0."""
    return _counted(x, lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width)


def _counted(x: Any, count: Callable[[int, int], int]) -> Any:
    import numpy as np

    kind = x.dtype if isinstance(x, np.integer) else np.dtype(np.int64)
    width = 8 * kind.itemsize
    result = count(int(x) & ((1 << width) - 1), width)
    return kind.type(result) if isinstance(x, np.integer) else result
