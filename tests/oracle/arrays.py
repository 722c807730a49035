"""NumPy arrays as kernels see them: loads give shim values, stores convert by the store rule."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from . import numbers, rules
from .types import BOOL, DTYPES, I64, ArrayType, Dtype, OracleRefused, VectorType, is_integer
from .values import Value, call_builtin, cast, is_known, lift
from .vectors import Vector

__all__ = [
    "Access",
    "Array",
    "OutOfBounds",
    "array_dtype",
    "atomic",
    "checked_index",
    "numpy_dtype",
]

Access = Callable[[str, int, int], None]
"""Told of every access: "load" or "store", the address, the number of bytes."""

_OF_ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
_NUMPY = {"b": "bool", "i": "i", "u": "u", "f": "f"}


class OutOfBounds(Exception):
    """The program under test left an array: a mistake of the program, not of the shim."""


def array_dtype(array: np.ndarray[Any, Any]) -> Dtype:
    """The dtype of an array's elements."""
    for name, kind in _OF_ML_DTYPES.items():
        if array.dtype == kind:
            return DTYPES[name]
    kind = _NUMPY.get(array.dtype.kind)
    name = "bool" if kind == "bool" else f"{kind}{array.dtype.itemsize * 8}"
    if name not in DTYPES or not array.dtype.isnative:
        raise OracleRefused(f"an array of {array.dtype}")
    return DTYPES[name]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype for the elements of an array."""
    if name == "bool":
        return np.dtype(bool)
    if name in _OF_ML_DTYPES:
        return np.dtype(_OF_ML_DTYPES[name])
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


class _Shape(tuple[Value, ...]):
    """`x.shape`: indexed by literals or unpacked, gives i64."""

    __slots__ = ()

    def __getitem__(self, axis: Any) -> Any:
        return super().__getitem__(int(lift(axis).payload))


class _Flat:
    """`x.flat`: one index over all elements in C order, however they lie."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def position(self, index: Any) -> tuple[int, ...]:
        """The indices of the element at a flat index."""
        at = checked_index(index, math.prod(self.array.extents))
        return tuple(int(each) for each in np.unravel_index(at, self.array.extents))

    def __getitem__(self, index: Any) -> Any:
        return self.array[self.position(index)]

    def __setitem__(self, index: Any, operand: Any) -> None:
        self.array[self.position(index)] = operand


def checked_index(index: Any, extent: int) -> int:
    """An index as an integer; refused or out of bounds as the language page says."""
    value = lift(index)
    if not is_integer(value.type) or value.type == BOOL:
        raise OracleRefused(f"an index of type {value.type}")
    if is_known(value.type) and value.payload < 0:
        raise OracleRefused("a negative literal index")
    at = numbers.convert(value.payload, I64)
    if not 0 <= at < extent:
        raise OutOfBounds(f"index {at} of {extent}")
    return int(at)


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
            element.dtype != array_dtype(data) or rank < 0 or data.shape[rank:] != inner
        ):
            raise OracleRefused(f"an array of {data.dtype}, {data.shape} for {element}")
        plain = data.flags.c_contiguous and data.flags.aligned
        self.type = ArrayType(array_dtype(data), rank, inner, strided=not plain)
        self.extents = data.shape[:rank]
        self.shape = _Shape(Value(I64, extent) for extent in self.extents)
        self.size = Value(I64, math.prod(self.extents))
        self.ndim = Value(I64, rank)
        self.flat = _Flat(self)
        self._access = access
        self._address = data.__array_interface__["data"][0]

    def _position(self, index: Any, kind: str) -> tuple[int, ...]:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != self.type.rank:
            raise OracleRefused(f"{len(indices)} indices on an array of rank {self.type.rank}")
        position = [checked_index(*each) for each in zip(indices, self.extents, strict=True)]
        if self._access is not None:
            offset = sum(at * step for at, step in zip(position, self.data.strides, strict=False))
            size = self.data.itemsize * math.prod(self.type.element)
            self._access(kind, self._address + offset, size)
        return tuple(position)

    def touch(self, index: Any) -> None:
        """Notes that an element is changed."""
        self._position(index, "store")

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


_CHANGES: dict[str, Callable[[Value, Value], Value]] = {
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": lambda old, value: call_builtin("min", old, value),
    "max": lambda old, value: call_builtin("max", old, value),
    "exchange": lambda old, value: value,
}


def atomic(op: str, array: Array | _Flat, index: Any, *operands: Any) -> Value:
    """Change an element and give what it was; with one iteration at a time nothing is between."""
    if isinstance(array, _Flat):
        array, index = array.array, array.position(index)
    dtype, inner = array.type.dtype, len(array.type.element)
    values = [cast(dtype, each) for each in operands]
    if inner:  # a component of a vector
        array.touch(index[:-inner])
        array = Array(array.data)
    old = array[index]
    if op == "cas":
        expected, value = values
        kind = array.data.dtype.type
        alike = kind(old.payload).tobytes() == kind(expected.payload).tobytes()
        if dtype.kind == "float" and dtype.bits == 16:
            alike |= math.isnan(old.payload) and math.isnan(expected.payload)
        array[index] = value if alike else old
    else:
        array[index] = cast(dtype, _CHANGES[op](old, values[0]))
    return old
