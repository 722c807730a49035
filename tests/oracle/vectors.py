"""Vectors and small matrices of the shim: shim values in a row, operators by component.

A matrix is kept row by row. Sums run from left to right; a determinant goes along the first row; an
inverse is the adjugate divided by the determinant.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import rules
from .types import (
    BOOL,
    DTYPES,
    I64,
    OracleRefused,
    Scalar,
    Type,
    VectorType,
    WeakInt,
)
from .values import Value, call_builtin, cast, lift

__all__ = [
    "FUNCTIONS",
    "NAMES",
    "Vector",
    "call",
    "component_type",
    "function_type",
    "literal_index",
    "of_numpy",
    "picked",
    "product_type",
    "static",
]

NAMES = {
    f"{dtype}x{'x'.join(map(str, shape))}": VectorType(DTYPES[dtype], shape)
    for dtype in DTYPES
    for shape in [
        *((n,) for n in (2, 3, 4)),
        *itertools.product((2, 3, 4), repeat=2),
    ]
}
"""Every vector and matrix type by its name."""
FUNCTIONS = ("dot", "cross", "length", "normalize", "transpose", "determinant", "inverse")
Sink = Callable[[int, Value], None]


class OutOfRange(Exception):
    """A run-time index left a vector: a mistake of the program under test."""


def picked(name: str, shape: tuple[int, ...]) -> list[int]:
    """The positions that `.x` or `.zy` names."""
    letters = "xyzw"[: shape[0]] if len(shape) == 1 else ""
    if not re.fullmatch(f"[{letters or '!'}]{{1,4}}", name):
        raise OracleRefused(f"no component {name}")
    return [letters.index(each) for each in name]


class Vector:
    """Components with a shape. `sink`, if there is one, is told what components are set to."""

    def __init__(
        self,
        dtype: Scalar,
        shape: tuple[int, ...],
        parts: Sequence[Value],
        sink: Sink | None = None,
    ) -> None:
        self.__dict__.update(dtype=dtype, shape=shape, parts=list(parts), sink=sink)

    @property
    def type(self) -> VectorType:
        """The static type."""
        return VectorType(self.__dict__["dtype"], self.__dict__["shape"])

    def __iter__(self) -> Any:
        return iter([self[Value(I64, k)] for k in range(self.shape[0])])

    def __bool__(self) -> bool:
        raise OracleRefused("a vector has no truth value")

    __hash__ = None  # type: ignore[assignment]

    def _set(self, at: int, value: Any) -> None:
        given = lift(value)
        if self.sink is not None:
            rules.store(given.type, self.dtype)
            self.sink(at, given)
        self.parts[at] = cast(self.dtype, given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        at = picked(name, self.shape)
        if len(at) == 1:
            return self.parts[at[0]]
        return Vector(self.dtype, (len(at),), [self.parts[k] for k in at])

    def __setattr__(self, name: str, value: Any) -> None:
        at = picked(name, self.shape)
        given = list(value.parts) if isinstance(value, Vector) else [value]
        for k, each in zip(at, given, strict=True):
            self._set(k, each)

    def _places(self, index: Any) -> tuple[tuple[int, ...], range]:
        indices = index if isinstance(index, tuple) else (index,)
        shape, first, count = self.shape, 0, len(self.parts)
        for each in indices:
            at = int(lift(each).payload)
            if not 0 <= at < shape[0]:
                raise OutOfRange(f"component {at} of {shape}")
            count //= shape[0]
            shape, first = shape[1:], first + at * count
        return shape, range(first, first + count)

    def __getitem__(self, index: Any) -> Any:
        shape, places = self._places(index)
        if not shape:
            return self.parts[places[0]]
        parts = [self.parts[k] for k in places]
        return Vector(self.dtype, shape, parts, lambda k, each: self._set(places[k], each))

    def __setitem__(self, index: Any, value: Any) -> None:
        _, places = self._places(index)
        given = list(value.parts) if isinstance(value, Vector) else [value]
        for k, each in zip(places, given, strict=True):
            self._set(k, each)

    def __matmul__(self, other: Any) -> Any:
        rows = _rows(self) if len(self.shape) == 2 else [self.parts]
        columns = _columns(other) if len(other.shape) == 2 else [other.parts]
        parts = [_dot(row, column) for row in rows for column in columns]
        return _of(self.shape[:-1] + other.shape[1:], parts)


def _of(shape: tuple[int, ...], parts: Sequence[Value]) -> Any:
    """Computed components as a vector; one without a shape is a number."""
    return Vector(parts[0].type, shape, parts) if shape else parts[0]


def _by_component(function: Callable[..., Any], *operands: Any) -> Any:
    shape = next(each.shape for each in operands if isinstance(each, Vector))
    columns = [
        each.parts if isinstance(each, Vector) else [lift(each)] * math.prod(shape)
        for each in operands
    ]
    return _of(shape, [function(*row) for row in zip(*columns, strict=True)])


def _operators() -> None:
    names = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor"
    for name in names.split():
        function, special = getattr(operator, name), name.rstrip("_")
        setattr(Vector, f"__{special}__", lambda a, b, f=function: _by_component(f, a, b))
        setattr(Vector, f"__r{special}__", lambda a, b, f=function: _by_component(f, b, a))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        function = getattr(operator, name)
        setattr(Vector, f"__{name}__", lambda a, b, f=function: _by_component(f, a, b))
    for name in ("neg", "pos", "invert"):
        function = getattr(operator, name)
        setattr(Vector, f"__{name}__", lambda a, f=function: _by_component(f, a))


_operators()


def _rows(m: Vector) -> list[list[Value]]:
    width = m.shape[1]
    return [list(m.parts[k : k + width]) for k in range(0, len(m.parts), width)]


def _columns(m: Vector) -> list[list[Value]]:
    return [list(column) for column in zip(*_rows(m), strict=True)]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    products = [x * y for x, y in zip(a, b, strict=True)]
    return list(itertools.accumulate(products))[-1]


def _without(m: list[list[Value]], row: int, column: int) -> list[list[Value]]:
    return [each[:column] + each[column + 1 :] for k, each in enumerate(m) if k != row]


def _determinant(m: list[list[Any]]) -> Any:
    if len(m) == 2:
        (a, b), (c, d) = m
        return a * d - b * c
    terms = [each * _determinant(_without(m, 0, k)) for k, each in enumerate(m[0])]
    total = terms[0]
    for k, term in enumerate(terms[1:], 1):
        total = (total + term) if k % 2 == 0 else (total - term)
    return total


def _inverse(m: list[list[Any]]) -> list[Any]:
    whole, size = _determinant(m), len(m)
    result = []
    for i, j in itertools.product(range(size), repeat=2):
        rest = _without(m, j, i)
        cofactor = rest[0][0] if size == 2 else _determinant(rest)
        result.append((-cofactor if (i + j) % 2 else cofactor) / whole)
    return result


def named(name: str, arguments: Sequence[Any]) -> Any:
    """One of `FUNCTIONS` of shim vectors."""
    first, last = arguments[0], arguments[-1]
    match name:
        case "dot":
            return _dot(first.parts, last.parts)
        case "length":
            return call_builtin("sqrt", _dot(first.parts, first.parts))
        case "normalize":
            return first / named("length", [first])
        case "cross":
            (a, b, c), (d, e, f) = first.parts, last.parts
            return _of((3,), [b * f - c * e, c * d - a * f, a * e - b * d])
        case "transpose":
            return _of(first.shape[::-1], [each for row in _columns(first) for each in row])
        case "determinant":
            return _determinant(_rows(first))
    return _of(first.shape, _inverse(_rows(first)))


def call(name: str, *arguments: Any) -> Any:
    """A builtin, a constructor or a function, of numbers and vectors."""
    if name in NAMES:
        t = NAMES[name]
        flat = [
            v for each in arguments for v in (each.parts if isinstance(each, Vector) else [each])
        ]
        flat = flat * t.count if len(flat) == 1 else flat
        return Vector(t.dtype, t.shape, [cast(t.dtype, each) for each in flat])
    if name in FUNCTIONS:
        return named(name, arguments)
    if name in ("any", "all"):
        function = any if name == "any" else all
        return Value(BOOL, function(bool(each) for each in arguments[0].parts))
    if name == "len":
        return Value(
            WeakInt(arguments[0].shape[0], arguments[0].shape[0], True), arguments[0].shape[0]
        )
    if not any(isinstance(each, Vector) for each in arguments):
        return call_builtin(name, *arguments)
    if name in ("min", "max") and len(arguments) > 2:
        return call(name, call(name, *arguments[:-1]), arguments[-1])
    return _by_component(lambda *row: call_builtin(name, *row), *arguments)


def of_numpy(array: np.ndarray[Any, Any]) -> Vector:
    """A default that `tack.f32x3(...)` made."""
    kinds = {"b": "bool", "i": "i", "u": "u", "f": "f"}
    kind = kinds[array.dtype.kind]
    dtype = DTYPES[kind if kind == "bool" else f"{kind}{array.dtype.itemsize * 8}"]
    return Vector(dtype, array.shape, [cast(dtype, each) for each in array.ravel().tolist()])


# Static types.


def _scalars(t: Type) -> tuple[Scalar, tuple[int, ...]]:
    if isinstance(t, VectorType):
        return t.dtype, t.shape
    if isinstance(t, tuple) or hasattr(t, "rank"):
        raise OracleRefused(f"{t} is no value")
    return t, ()


def static(rule: Callable[..., Any], types: Sequence[Type]) -> Type:
    """The type of an operation by component, from the `rule` of its scalars."""
    both = [_scalars(each) for each in types]
    shapes = {shape for _, shape in both if shape}
    if len(shapes) > 1:
        raise OracleRefused(f"sizes differ: {shapes}")
    result = rule(*(scalar for scalar, _ in both))
    return VectorType(result, shapes.pop()) if shapes else result


def component_type(t: VectorType, indices: int) -> Type:
    """The type behind so many indices."""
    if indices > len(t.shape):
        raise OracleRefused("too many indices")
    shape = t.shape[indices:]
    return VectorType(t.dtype, shape) if shape else t.dtype


def product_type(a: Type, b: Type, operate: Callable[[str, Any, Any], Any]) -> Type:
    """The type of `a @ b`."""
    if not isinstance(a, VectorType) or not isinstance(b, VectorType) or a.shape[-1] != b.shape[0]:
        raise OracleRefused(f"{a} @ {b}")
    shape = a.shape[:-1] + b.shape[1:]
    t = _dot_type(a.dtype, b.dtype, operate)
    return VectorType(t, shape) if shape else t


def _dot_type(a: Scalar, b: Scalar, operate: Callable[[str, Any, Any], Any]) -> Any:
    product = operate("*", a, b)
    return operate("+", product, product)


def function_type(
    name: str, types: Sequence[Type], operate: Callable[[str, Any, Any], Any]
) -> Type:
    """The type of a constructor, of one of `FUNCTIONS`, or of any, all and len."""
    if name in NAMES:
        counts = [math.prod(_scalars(each)[1]) for each in types]
        alone = types[0] if len(types) == 1 else None
        fits = sum(counts) == NAMES[name].count or (alone is not None and not _scalars(alone)[1])
        matrix = isinstance(alone, VectorType) and len(alone.shape) == 2
        if not fits or (matrix and alone.shape != NAMES[name].shape):
            raise OracleRefused(f"{name} of {types}")
        return NAMES[name]
    if not types or not all(isinstance(each, VectorType) for each in types):
        raise OracleRefused(f"{name} of {types}")
    first, last = types[0], types[-1]
    assert isinstance(first, VectorType)
    assert isinstance(last, VectorType)
    if name in ("any", "all", "len"):
        if len(types) != 1:
            raise OracleRefused(f"{name} of {types}")
        return BOOL if name != "len" else WeakInt(first.shape[0], first.shape[0], True)
    rank = 2 if name in ("transpose", "determinant", "inverse") else 1
    arity = 2 if name in ("dot", "cross") else 1
    square = name in ("determinant", "inverse")
    if (
        len(types) != arity
        or first.shape != last.shape
        or len(first.shape) != rank
        or (square and len(set(first.shape)) > 1)
        or (name == "cross" and first.shape != (3,))
    ):
        raise OracleRefused(f"{name} of {types}")
    t = _dot_type(first.dtype, last.dtype, operate)
    root = rules.builtin("sqrt", [t])[0]
    match name:
        case "dot" | "determinant":
            return t
        case "length":
            return root
        case "normalize":
            return VectorType(operate("/", first.dtype, root), first.shape)
        case "transpose":
            return VectorType(first.dtype, first.shape[::-1])
        case "cross":
            return VectorType(t, first.shape)
    return VectorType(operate("/", first.dtype if first.shape == (2, 2) else t, t), first.shape)


def literal_index(at: int, t: VectorType) -> None:
    """Refuse a literal index that the vector has not."""
    if not 0 <= at < t.shape[0]:
        raise OracleRefused(f"index {at} of {t}")
