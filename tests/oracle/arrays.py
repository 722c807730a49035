"""NumPy arrays as kernels see them: loads give shim values, stores convert by the store rule."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from . import numbers, rules
from .types import DTYPES, I64, ArrayType, Dtype, OracleRefused, is_integer
from .values import Value, call_builtin, cast, is_known, lift

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

_NUMPY = {"b": "bool", "i": "i", "u": "u", "f": "f"}


class OutOfBounds(Exception):
    """The program under test left an array: a mistake of the program, not of the shim."""


def array_dtype(array: np.ndarray[Any, Any]) -> Dtype:
    """The dtype of an array's elements."""
    if array.dtype == ml_dtypes.bfloat16:
        return DTYPES["bf16"]
    kind = _NUMPY.get(array.dtype.kind)
    name = "bool" if kind == "bool" else f"{kind}{array.dtype.itemsize * 8}"
    if name not in DTYPES or not array.dtype.isnative:
        raise OracleRefused(f"an array of {array.dtype}")
    return DTYPES[name]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype for the elements of an array."""
    if name == "bool":
        return np.dtype(bool)
    if name == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


class _Shape(tuple[Value, ...]):
    """`x.shape`: indexed by literals or unpacked, gives i64."""

    __slots__ = ()

    def __getitem__(self, axis: Any) -> Any:
        return super().__getitem__(int(lift(axis).payload))


class _Flat:
    """`x.flat`: one index over all elements in C order, however they lie."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def _position(self, index: Any) -> tuple[int, ...]:
        at = checked_index(index, self._array.data.size)
        return tuple(int(each) for each in np.unravel_index(at, self._array.data.shape))

    def __getitem__(self, index: Any) -> Value:
        return self._array[self._position(index)]

    def __setitem__(self, index: Any, operand: Any) -> None:
        self._array[self._position(index)] = operand


def checked_index(index: Any, extent: int) -> int:
    """An index as an integer; refused or out of bounds as the language page says."""
    value = lift(index)
    if not is_integer(value.type):
        raise OracleRefused(f"an index of type {value.type}")
    if is_known(value.type) and value.payload < 0:
        raise OracleRefused("a negative literal index")
    at = numbers.convert(value.payload, I64)
    if not 0 <= at < extent:
        raise OutOfBounds(f"index {at} of {extent}")
    return int(at)


class Array:
    """One array argument. `type` is its static type."""

    def __init__(self, data: np.ndarray[Any, Any], access: Access | None = None) -> None:
        self.data = data
        plain = data.flags.c_contiguous and data.flags.aligned
        self.type = ArrayType(array_dtype(data), data.ndim, strided=not plain)
        self.shape = _Shape(Value(I64, extent) for extent in data.shape)
        self.size = Value(I64, data.size)
        self.ndim = Value(I64, data.ndim)
        self.flat = _Flat(self)
        self._access = access
        self._address = data.__array_interface__["data"][0]

    def _position(self, index: Any, kind: str) -> tuple[int, ...]:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != self.type.rank:
            raise OracleRefused(f"{len(indices)} indices on an array of rank {self.type.rank}")
        extents = self.data.shape
        position = [checked_index(*each) for each in zip(indices, extents, strict=True)]
        if self._access is not None:
            offset = sum(at * step for at, step in zip(position, self.data.strides, strict=True))
            self._access(kind, self._address + offset, self.data.itemsize)
        return tuple(position)

    def __getitem__(self, index: Any) -> Value:
        element = self.data[self._position(index, "load")]
        dtype = self.type.dtype
        return Value(dtype, element if dtype.kind == "float" else element.item())

    def __setitem__(self, index: Any, operand: Any) -> None:
        value = lift(operand)
        rules.store(value.type, self.type.dtype)
        self.data[self._position(index, "store")] = numbers.convert(value.payload, self.type.dtype)


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


def atomic(op: str, array: Array, index: Any, *operands: Any) -> Value:
    """Change an element and give what it was; with one iteration at a time nothing is between."""
    dtype = array.type.dtype
    values = [cast(dtype, each) for each in operands]
    old = array[index]
    if op == "cas":
        expected, value = values
        kind = array.data.dtype.type
        alike = kind(old.payload).tobytes() == kind(expected.payload).tobytes()
        array[index] = value if alike else old
    else:
        array[index] = cast(dtype, _CHANGES[op](old, values[0]))
    return old
