"""A generated program: its text, and the arguments to call it with."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from .scope import DTYPES_OF

__all__ = ["Argument", "Buffer", "Held", "Instance", "Numbers", "Program", "View", "numpy_dtype"]

_OF_ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
_NAMES = {"i": "int", "u": "uint", "f": "float"}


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of `bool` ... `f64`."""
    if dtype in _OF_ML_DTYPES:
        return np.dtype(_OF_ML_DTYPES[dtype])
    if dtype == "bool":
        return np.dtype(np.bool_)
    return np.dtype(f"{_NAMES[dtype[0]]}{dtype[1:]}")


@dataclass(frozen=True)
class Buffer:
    """Memory that arguments view: filled from `seed` with values of `dtype`, edges included."""

    dtype: str
    count: int
    seed: int

    def fill(self) -> np.ndarray[Any, Any]:
        """A fresh array with the same contents every time."""
        rng = random.Random(self.seed)
        kind = numpy_dtype(self.dtype)
        if self.dtype in DTYPES_OF["F"]:
            values = [_float(rng) for _ in range(self.count)]
            with np.errstate(over="ignore"):
                return np.array(values, np.float64).astype(kind)
        if self.dtype == "bool":
            return np.array([rng.random() < 0.5 for _ in range(self.count)], kind)
        info = np.iinfo(kind)
        values = [_integer(rng, int(info.min), int(info.max)) for _ in range(self.count)]
        return np.array(values, kind)


def _integer(rng: random.Random, low: int, high: int) -> int:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice([low, low + 1, high, high - 1, high // 2, 0, 1, max(-1, low)])
    if kind == 1:
        return rng.randint(low, high)
    return rng.randint(max(low, -9), 9)


_SPECIAL_FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    float("inf"),
    float("-inf"),
    float("nan"),
    2.0**-24,
    2.0**-14,
    65504.0,
    65520.0,
    3.39e38,
    1e-40,
    1e-45,
    5e-324,
    1e-310,
    3.4028234663852886e38,
    1.7976931348623157e308,
    2147483648.0,
    -9.3e18,
    1.9e19,
    0.5,
    2.5,
    16777217.0,
]


def _float(rng: random.Random) -> float:
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(_SPECIAL_FLOATS)
    if kind == 1:
        return rng.uniform(-1.0, 1.0) * 10.0 ** rng.randint(-20, 20)
    if kind == 2:
        return float(rng.randint(-8, 8))
    return rng.uniform(-8.0, 8.0)


@dataclass(frozen=True)
class View:
    """One array argument: part of a buffer, in elements of its own dtype.

    With ``strides``, in bytes, any view of it, which begins ``skew`` bytes after ``offset``.
    """

    buffer: int
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    skew: int = 0

    def of(self, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The view itself; C-contiguous and aligned unless it has strides."""
        kind = numpy_dtype(self.dtype)
        if self.strides is not None:
            start = self.offset * kind.itemsize + self.skew
            return np.ndarray(self.shape, kind, memory.view(np.uint8), start, self.strides)
        count = int(np.prod(self.shape, dtype=np.int64))
        flat = memory.view(kind)
        return flat[self.offset : self.offset + count].reshape(self.shape)


@dataclass(frozen=True)
class Held:
    """A function of the module that an object holds."""

    name: str


@dataclass(frozen=True)
class Instance:
    """An object of a class of the module, by the name of that, and its attributes."""

    cls: str
    attributes: tuple[tuple[str, Argument], ...]


Numbers = tuple[Any, ...]
"""The components of a vector, or the rows of a matrix."""
Argument = View | int | float | bool | Held | Numbers | Instance


def _views(argument: Argument) -> Iterator[View]:
    if isinstance(argument, View):
        yield argument
    elif isinstance(argument, Instance):
        for _, each in argument.attributes:
            yield from _views(each)


@dataclass(frozen=True)
class Program:
    """Module text with one `kernel`, and its arguments: views of buffers, numbers and objects."""

    source: str
    arguments: tuple[Argument, ...]
    buffers: tuple[Buffer, ...] = field(default=())

    @property
    def aliased(self) -> bool:
        """Whether two arguments share a buffer."""
        used = [each.buffer for argument in self.arguments for each in _views(argument)]
        return len(used) != len(set(used))

    def memory(self) -> list[np.ndarray[Any, Any]]:
        """Fresh buffers."""
        return [each.fill() for each in self.buffers]

    def bind(self, memory: list[np.ndarray[Any, Any]], kernel: Any) -> list[Any]:
        """The arguments of `kernel` over `memory`, in the order of the parameters."""
        names = kernel.py_func.__globals__

        def bound(argument: Argument) -> Any:
            if isinstance(argument, View):
                return argument.of(memory[argument.buffer])
            if isinstance(argument, Held):
                return names[argument.name]
            if not isinstance(argument, Instance):
                return argument
            made = names[argument.cls]()
            for name, each in argument.attributes:
                setattr(made, name, bound(each))
            return made

        return [bound(each) for each in self.arguments]

    def __str__(self) -> str:
        calls = ", ".join(repr(each) for each in self.arguments)
        return f"{self.source}\n# arguments: {calls}\n# buffers: {self.buffers}"
