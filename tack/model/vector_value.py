"""Vectors and matrices in plain Python: NumPy arrays with components and swizzles.

Operators are NumPy's, componentwise, but for the order of sums in ``@``. A view of an array whose
last axis are components (``points.view(Vector)``) gives vectors where it is indexed, so that a
kernel's function runs on it as the kernel would.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tack.model.dtypes import numpy_name
from tack.model.formulas import product
from tack.model.vectors import COMPONENTS, VectorType, as_words

__all__ = ["Vector", "make"]


class Vector(np.ndarray[Any, Any]):
    """An array whose last axis has the components ``x y z w``.

    >>> np.arange(3).view(Vector).zx.tolist()
    [2, 0]
    """

    def __getattr__(self, name: str) -> Any:
        return self[..., self._picked(name)]

    def __setattr__(self, name: str, value: Any) -> None:
        if name and set(name) <= set(COMPONENTS):
            self[..., self._picked(name)] = value
        else:
            super().__setattr__(name, value)

    def __matmul__(self, other: Any) -> Any:
        """The product of matrices and vectors, each sum from left to right."""
        if not isinstance(other, Vector) or not self.ndim or self.shape[-1] != other.shape[0]:
            raise TypeError(f"'@' is the product of matrices and vectors, not of {other!r}")
        rows: Any = self if self.ndim == 2 else [self]
        columns: Any = other if other.ndim == 2 else other[:, np.newaxis]
        result: Any = np.array(product(rows, columns))
        return result.reshape(self.shape[:-1] + other.shape[1:]).view(Vector)[()]

    def _picked(self, name: str) -> int | list[int]:
        width = self.shape[-1] if self.ndim else 0
        if not name or not set(name) <= set(COMPONENTS[:width]):
            raise AttributeError(f"a vector of {width} has no component {name!r}")
        picked = [COMPONENTS.index(letter) for letter in name]
        return picked if len(picked) > 1 else picked[0]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results without an axis are numbers."""
        return array[()] if array.ndim == 0 else array.view(type(self))


def _out_of_place() -> None:
    """``v += w`` makes a new vector, as in a kernel: vectors are values."""
    names = "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul"
    for name in names.split():
        setattr(Vector, f"__i{name}__", getattr(np.ndarray, f"__{name}__"))


_out_of_place()


def make(type_: VectorType, args: tuple[Any, ...]) -> Vector:
    """The value that ``type_(*args)`` is in plain Python."""
    parts = [np.asarray(arg) for arg in args]
    dtype = np.dtype(numpy_name(type_.dtype))
    flat = [each for part in parts for each in part.ravel().tolist()]
    only = parts[0].shape if len(parts) == 1 else None
    if only == ():
        flat *= type_.count
    if len(flat) != type_.count or (only is not None and len(only) == 2 and only != type_.shape):
        given = f"a {as_words(only)}" if only else f"{len(flat)} components"
        raise TypeError(f"{type_.name} has {type_.count} components, and is given {given}")
    values = [type_.dtype(each) for each in flat]
    return np.array(values, dtype).reshape(type_.shape).view(Vector)
