"""NumPy arrays as kernels see them: loads give shim values, stores convert by the store rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers, rules
from .types import DTYPES, I64, ArrayType, Dtype, OracleRefused, VectorType, is_integer
from .values import Value, is_known, lift
from .vectors import Vector

__all__ = ["Access", "Array", "OutOfBounds", "array_dtype"]

Access = Callable[[str, int, int], None]
"""Told of every access: "load" or "store", the address, the number of bytes."""

_NUMPY = {"b": "bool", "i": "i", "u": "u", "f": "f"}


class OutOfBounds(Exception):
    """The program under test left an array: a mistake of the program, not of the shim."""


def array_dtype(array: np.ndarray[Any, Any]) -> Dtype:
    """The dtype of an array's elements."""
    kind = _NUMPY.get(array.dtype.kind)
    name = "bool" if kind == "bool" else f"{kind}{array.dtype.itemsize * 8}"
    if name not in DTYPES or not array.dtype.isnative:
        raise OracleRefused(f"an array of {array.dtype}")
    return DTYPES[name]


class _Shape(tuple[Value, ...]):
    """`x.shape`: indexed by literals or unpacked, gives i64."""

    __slots__ = ()

    def __getitem__(self, axis: Any) -> Any:
        return super().__getitem__(int(lift(axis).payload))


class Array:
    """One array argument. `type` is its static type."""

    def __init__(
        self,
        data: np.ndarray[Any, Any],
        access: Access | None = None,
        element: VectorType | None = None,
    ) -> None:
        self.data = data
        inner = () if element is None else element.shape
        rank = data.ndim - len(inner)
        if element is not None and (
            element.dtype != array_dtype(data) or rank < 1 or data.shape[rank:] != inner
        ):
            raise OracleRefused(f"an array of {data.dtype}, {data.shape} for {element}")
        self.type = ArrayType(array_dtype(data), rank, inner)
        self.shape = _Shape(Value(I64, extent) for extent in data.shape[:rank])
        self._access = access
        self._address = data.__array_interface__["data"][0]

    def _position(self, index: Any, kind: str) -> tuple[int, ...]:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != self.type.rank:
            raise OracleRefused(f"{len(indices)} indices on an array of rank {self.type.rank}")
        position = []
        for each, extent in zip(indices, self.data.shape, strict=False):
            value = lift(each)
            if not is_integer(value.type):
                raise OracleRefused(f"an index of type {value.type}")
            if is_known(value.type) and value.payload < 0:
                raise OracleRefused("a negative literal index")
            at = numbers.convert(value.payload, I64)
            if not 0 <= at < extent:
                raise OutOfBounds(f"index {at} of {extent}")
            position.append(int(at))
        if self._access is not None:
            offset = sum(at * step for at, step in zip(position, self.data.strides, strict=False))
            size = self.data.itemsize * math.prod(self.type.element)
            self._access(kind, self._address + offset, size)
        return tuple(position)

    def __getitem__(self, index: Any) -> Any:
        position = self._position(index, "load")
        if not self.type.element:
            return self._load(position)
        inner = list(np.ndindex(*self.type.element))

        def sink(at: int, value: Value) -> None:
            self._position(index, "store")
            self._store((*position, *inner[at]), value)

        parts = [self._load((*position, *each)) for each in inner]
        return Vector(self.type.dtype, self.type.element, parts, sink)

    def __setitem__(self, index: Any, operand: Any) -> None:
        position = self._position(index, "store")
        if not isinstance(operand, Vector):
            self._store(position, lift(operand))
            return
        for each, value in zip(np.ndindex(*self.type.element), operand.parts, strict=True):
            self._store((*position, *each), value)

    def _load(self, position: tuple[int, ...]) -> Value:
        element, dtype = self.data[position], self.type.dtype
        return Value(dtype, element if dtype.kind == "float" else element.item())

    def _store(self, position: tuple[int, ...], value: Value) -> None:
        rules.store(value.type, self.type.dtype)
        self.data[position] = numbers.convert(value.payload, self.type.dtype)
