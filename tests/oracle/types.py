"""Static types of the oracle: dtypes, weak literals, arrays, results; and how they promote.

Written from the language page alone. Where it is silent the choice is stated here:

* `bool` counts as the narrowest integer. Where both operands of `+ - * // % ** << >>` or the
  operand of unary `-` and `+` are bool, they are i64 first, which is Python's meaning of
  `True + True`. `~` of a bool is refused, as Python is about to.
  So are the operands of `min` and `max`, which promote as arithmetic does, of several two at a
  time from left to right. `& | ^` and the
  conditional expression on two bools give a bool, as in Python.
* A weak integer that meets bool is i64.
* A weak integer carries the least and greatest literal it may hold. It takes the type that it
  meets if that holds both; otherwise it counts as i64, and one that i64 cannot hold is refused.
* Integer literals combine among themselves exactly, as in Python (`200 + 100` is the literal 300);
  dividing one by zero is refused. Arithmetic that reads a weak local is done in i64, has no known
  range (`low` and `high` are `None`) and takes what it meets. Weak floats are computed in f64.
* `/` of two weak numbers is a weak float. `sqrt` of integers is f32, as their quotient is.
* A local that is assigned only literals stays weak. Reading it is no literal: a local that ends
  weak through copies of such locals, or arithmetic on them, is i64 or the default float.
* Statements that cannot be reached change no types.
* A conditional expression is a literal if both branches are, with the range of both. Functions are
  inlined: a parameter that its function does not assign stands for its argument, and a call for
  what is returned, weak or not; a parameter that is assigned is a local that the call sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from types import FunctionType
from typing import TypeVar

__all__ = [
    "BF16",
    "BOOL",
    "DTYPES",
    "F8E4M3",
    "F8E5M2",
    "F16",
    "F32",
    "F64",
    "I8",
    "I16",
    "I32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "ArrayType",
    "Dtype",
    "OracleRefused",
    "TemplateType",
    "Type",
    "VectorType",
    "WeakFloat",
    "WeakInt",
    "computed",
    "default_float",
    "floats_default_to",
    "is_float",
    "is_integer",
    "is_weak",
    "join",
    "loaded",
    "promote",
    "promote_all",
    "settled",
]


class OracleRefused(Exception):
    """The language page refuses this program or these arguments."""


@dataclass(frozen=True, slots=True)
class Dtype:
    """One scalar type: `kind` is "bool", "signed", "unsigned" or "float"."""

    name: str
    kind: str
    bits: int

    @property
    def low(self) -> int:
        """The least integer that the type holds (integers and bool only)."""
        return -(1 << (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def high(self) -> int:
        """The greatest integer that the type holds (integers and bool only)."""
        return (1 << (self.bits - (self.kind == "signed"))) - 1

    def holds(self, low: int, high: int) -> bool:
        """Whether every integer from `low` to `high` is a value of this integer type."""
        return self.low <= low and high <= self.high

    def __str__(self) -> str:
        return self.name


BOOL = Dtype("bool", "bool", 1)
I8, I16, I32, I64 = (Dtype(f"i{bits}", "signed", bits) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (Dtype(f"u{bits}", "unsigned", bits) for bits in (8, 16, 32, 64))
F8E4M3, F8E5M2 = Dtype("f8e4m3", "float", 8), Dtype("f8e5m2", "float", 8)
F16, BF16 = Dtype("f16", "float", 16), Dtype("bf16", "float", 16)
F32, F64 = Dtype("f32", "float", 32), Dtype("f64", "float", 64)
DTYPES = {
    t.name: t
    for t in (
        *(BOOL, I8, I16, I32, I64, U8, U16, U32, U64),
        *(F8E4M3, F8E5M2, F16, BF16, F32, F64),
    )
}

_SIGNED = (I8, I16, I32, I64)

_DEFAULT_FLOAT: ContextVar[Dtype] = ContextVar("_DEFAULT_FLOAT", default=F32)


def default_float() -> Dtype:
    """What a float that meets no other type is: f64 if any array parameter is f64, else f32."""
    return _DEFAULT_FLOAT.get()


@contextmanager
def floats_default_to(dtype: Dtype) -> Iterator[None]:
    """Says what `default_float` is, inside the block alone."""
    token = _DEFAULT_FLOAT.set(dtype)
    try:
        yield
    finally:
        _DEFAULT_FLOAT.reset(token)


@dataclass(frozen=True, slots=True)
class WeakInt:
    """An integer that has no type yet. `literal` tells a literal from what was read or computed."""

    low: int | None
    high: int | None
    literal: bool = False

    def __str__(self) -> str:
        return f"weak int [{self.low}, {self.high}]{' literal' if self.literal else ''}"


@dataclass(frozen=True, slots=True)
class WeakFloat:
    """A float that has no type yet."""

    literal: bool = False

    def __str__(self) -> str:
        return f"weak float{' literal' if self.literal else ''}"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array parameter."""

    dtype: Dtype
    rank: int
    element: tuple[int, ...] = ()
    """The shape of the vectors that are its elements."""
    strided: bool = False

    def __str__(self) -> str:
        name = "x".join(map(str, (self.dtype, *self.element)))
        dims = ", ".join(":" * self.rank) or "()"
        return f"{name}[{dims}{'; strided' * self.strided}]"


@dataclass(frozen=True, slots=True)
class TemplateType:
    """An object of a device class: its attributes and methods, and its numbers as they are written.

    Each method comes with whether it is static.
    """

    name: str
    members: tuple[tuple[str, Type], ...]
    constants: tuple[tuple[str, str], ...]
    functions: tuple[tuple[str, FunctionType], ...]
    methods: tuple[tuple[str, FunctionType, bool], ...]

    def __str__(self) -> str:
        fixed = dict(self.constants)
        passed = [f"{name}: {each}" for name, each in self.members if name not in fixed]
        fixed |= {name: f"@{f.__module__}:{f.__qualname__}" for name, f in self.functions}
        return (
            f"{self.name}({', '.join([*passed, *(f'{n}={t}' for n, t in sorted(fixed.items()))])})"
        )


Scalar = Dtype | WeakInt | WeakFloat


@dataclass(frozen=True, slots=True)
class VectorType:
    """A vector, or a matrix, whose components have one type."""

    dtype: Scalar
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of components."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return "x".join(map(str, (self.dtype, *self.shape)))


Type = Dtype | WeakInt | WeakFloat | ArrayType | TemplateType | VectorType | tuple["Type", ...]
"""A tuple is the type of several results."""
T = TypeVar("T", bound=Type)


def is_weak(t: Type) -> bool:
    """Whether `t` still waits for a type."""
    return isinstance(t, WeakInt | WeakFloat)


def is_float(t: Type) -> bool:
    """Whether `t` is floating, weak floats included."""
    return isinstance(t, WeakFloat) or (isinstance(t, Dtype) and t.kind == "float")


def is_integer(t: Type) -> bool:
    """Whether `t` is an integer, weak integers and bool included."""
    return isinstance(t, WeakInt) or (isinstance(t, Dtype) and t.kind != "float")


def loaded(t: T) -> T:
    """The type of reading a local or a result of type `t`: no longer a literal itself."""
    if isinstance(t, tuple):
        return tuple(loaded(each) for each in t)  # type: ignore[return-value]
    if isinstance(t, WeakInt):
        return WeakInt(t.low, t.high)  # type: ignore[return-value]
    return WeakFloat() if isinstance(t, WeakFloat) else t  # type: ignore[return-value]


def settled(t: Type) -> Type:
    """What a local that ended as `t` is: literals stay weak, other weak ones get a type."""
    if isinstance(t, tuple):
        return tuple(settled(each) for each in t)
    if isinstance(t, WeakInt) and not t.literal:
        return I64
    if isinstance(t, WeakFloat) and not t.literal:
        return default_float()
    return t


def computed(t: Dtype) -> Dtype:
    """What an operand of type `t` is computed as, and what it is beside any other type."""
    return F32 if t in (F8E4M3, F8E5M2) else t


def _strong(a: Dtype, b: Dtype) -> Dtype:
    if a == b:
        return a
    a, b = computed(a), computed(b)
    if "float" in (a.kind, b.kind):
        floats = [t for t in (a, b) if t.kind == "float"]
        if {F16, BF16} == set(floats):
            return F32
        return max(floats, key=lambda t: t.bits)
    if "bool" in (a.kind, b.kind):
        return b if a.kind == "bool" else a
    if a.kind == b.kind:
        return max(a, b, key=lambda t: t.bits)
    for t in _SIGNED:
        if t.holds(min(a.low, b.low), max(a.high, b.high)):
            return t
    raise OracleRefused(f"{a} with {b} has no common type: cast one")


def _weak_int(weak: WeakInt, other: Dtype) -> Dtype:
    if other.kind == "float":
        return computed(other)
    if weak.low is None or weak.high is None:
        return I64 if other.kind == "bool" else other
    if other.kind != "bool" and other.holds(weak.low, weak.high):
        return other
    if not I64.holds(weak.low, weak.high):
        raise OracleRefused(f"no type for a literal from {weak.low} to {weak.high} with {other}")
    return _strong(I64, other)


def promote(a: Type, b: Type) -> Scalar:
    """The narrowest type that holds both; refuses signed with u64 and whatever is no scalar."""
    if isinstance(a, Dtype) and isinstance(b, Dtype):
        return _strong(a, b)
    if isinstance(a, WeakInt) and isinstance(b, WeakInt):
        literal = a.literal and b.literal
        if a.low is None or b.low is None or a.high is None or b.high is None:
            return WeakInt(None, None, literal)
        return WeakInt(min(a.low, b.low), max(a.high, b.high), literal)
    if isinstance(a, WeakInt | WeakFloat) and isinstance(b, WeakInt | WeakFloat):
        return WeakFloat(a.literal and b.literal)
    for weak, other in ((a, b), (b, a)):
        if isinstance(other, Dtype):
            if isinstance(weak, WeakInt):
                return _weak_int(weak, other)
            if isinstance(weak, WeakFloat):
                return computed(other) if other.kind == "float" else default_float()
    raise OracleRefused(f"{a} with {b}: not both scalars")


def promote_all(types: Iterable[Type]) -> Scalar:
    """`promote` from left to right."""
    return reduce(promote, types)  # type: ignore[return-value]


def join(a: Type | None, b: Type | None) -> Type | None:
    """The type of a local that is assigned an `a` and a `b`; `None` is one without a type yet."""
    if a is None or b is None or a == b:
        return a if b is None else b
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        pairs = zip(a, b, strict=True)
        return tuple(join(x, y) for x, y in pairs)  # type: ignore[return-value,misc]
    if isinstance(a, VectorType) and isinstance(b, VectorType) and a.shape == b.shape:
        return VectorType(promote(a.dtype, b.dtype), a.shape)
    return promote(a, b)
