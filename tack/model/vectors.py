"""Vector and matrix types: ``f32x3`` is a vector of 3, ``f32x2x3`` a matrix of 2 rows, 3 columns.

There is one for each scalar type and 2 to 4 components a side. Like the scalar types they are
classes, so that ``a: tack.f32x3`` is an annotation; calling one in plain Python gives a small NumPy
array that has the components of the language (`tack.model.vector_value`).
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from typing import Any, Final

from tack.model.dtypes import DTYPES, DType, numpy_name

__all__ = [
    "COMPONENTS",
    "VectorType",
    "as_words",
    "component_names",
    "components_of",
    "vector_type",
]

COMPONENTS: Final = "xyzw"
"""The names of a vector's components, in order."""


class VectorType(type):
    """A vector or matrix type: ``name``, ``dtype`` and ``shape``, of one or two extents."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    def __repr__(cls) -> str:
        return cls.name

    @property
    def count(cls) -> int:
        """The number of components."""
        return math.prod(cls.shape)

    def __call__(cls, *args: Any) -> Any:
        """The vector or matrix of ``args``: numbers, or smaller vectors, or one to convert.

        One number is repeated. ``TypeError`` where the components are not as many as the type has.

        >>> vector_type("i32x3")(1, 2, 3).zyx.tolist()
        [3, 2, 1]
        """
        from tack.model.vector_value import make

        return make(cls, args)


@functools.cache
def vector_type(name: str) -> VectorType | None:
    """The type called ``name``, such as ``f32x3`` or ``u8x2x2``, or None."""
    base, *extents = name.split("x")
    dtype = DTYPES.get(base)
    if dtype is None or len(extents) not in (1, 2) or not {*extents} <= {"2", "3", "4"}:
        return None
    shape = tuple(map(int, extents))
    made = VectorType(name, (), {"__doc__": f"A {as_words(shape)} of {dtype}."})
    made.name, made.dtype, made.shape = name, dtype, shape
    return made


def as_words(shape: tuple[int, ...]) -> str:
    """What has ``shape``, for messages: a vector of 3, a 2 by 3 matrix, a number."""
    if not shape:
        return "number"
    return f"vector of {shape[0]}" if len(shape) == 1 else f"{shape[0]} by {shape[1]} matrix"


def component_names(base: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """The IR names of the components of ``base``: `v.x`, or `m.r0c1` for row 0, column 1."""
    if len(shape) == 1:
        return tuple(f"{base}.{letter}" for letter in COMPONENTS[: shape[0]])
    places = itertools.product(*map(range, shape))
    return tuple(f"{base}.r{row}c{column}" for row, column in places)


def is_constant(value: object) -> bool:
    """Whether ``value`` is a vector that nobody can change: what `tack.constant` gives."""
    if components_of(value) is None:
        return False
    flags = value.flags  # type: ignore[attr-defined]
    return not flags.writeable and bool(flags.owndata)


def components_of(value: object) -> tuple[VectorType, list[int | float]] | None:
    """Type and numbers of what calling a `VectorType` gave; None for anything else."""
    made = sys.modules.get("tack.model.vector_value")
    if made is None or not isinstance(value, made.Vector):
        return None
    dtype = next(d for d in DTYPES.values() if numpy_name(d) == value.dtype.name)
    type_ = vector_type("x".join(map(str, (dtype, *value.shape))))
    return None if type_ is None else (type_, value.ravel().tolist())
