"""Scalar types: the one table of names, kinds and widths.

A scalar type is a class, so that ``a: tack.f32`` is an annotation that type checkers accept, and
its metaclass `DType` carries the facts that the compiler reads. Calling one in plain Python
converts as a kernel does: ``tack.u8(300)`` is ``numpy.uint8(44)``, ``tack.i8(1e9)`` is 127.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Final, Literal

from tack.model.record import Record

__all__ = [
    "DTYPES",
    "NARROW",
    "DType",
    "Narrow",
    "as_operand",
    "bf16",
    "bool_",
    "dtype_of_ml_dtypes",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "plain_number",
    "promote",
    "u8",
    "u16",
    "u32",
    "u64",
    "unsigned",
]

Kind = Literal["bool", "int", "uint", "float"]


class DType(type):
    """A scalar type: ``name``, ``kind``, ``bits``, and what follows from them."""

    kind: Kind
    bits: int
    name: str

    def __new__(
        mcs, class_name: str, bases: tuple[type, ...], namespace: dict[str, Any], **facts: Any
    ) -> DType:
        """Makes the class with its facts: ``kind`` and ``bits``."""
        cls = super().__new__(mcs, class_name, bases, namespace)
        cls.name = class_name.rstrip("_")
        cls.kind = facts.get("kind", "bool")
        cls.bits = facts.get("bits", 0)
        return cls

    def __init__(cls, *args: Any, **facts: Any) -> None:
        super().__init__(*args)

    def __repr__(cls) -> str:
        return cls.name

    @property
    def is_float(cls) -> bool:
        """Whether this is a floating-point type."""
        return cls.kind == "float"

    @property
    def is_narrow_float(cls) -> bool:
        """Whether this is a float of 8 or 16 bits, which is its bits in memory, else an f32."""
        return cls.kind == "float" and cls.bits <= 16

    @property
    def is_stored_float(cls) -> bool:
        """Whether this is a float of 8 bits, which is only stored: computed with, it is f32."""
        return cls.kind == "float" and cls.bits == 8

    @property
    def is_signed(cls) -> bool:
        """Whether this is a signed integer type."""
        return cls.kind == "int"

    @property
    def is_integer(cls) -> bool:
        """Whether this is an integer type (bool is not one)."""
        return cls.kind in ("int", "uint")

    @property
    def is_bool(cls) -> bool:
        """Whether this is ``bool``."""
        return cls.kind == "bool"

    @property
    def minimum(cls) -> int:
        """The least value of an integer type or bool."""
        return -(1 << (cls.bits - 1)) if cls.kind == "int" else 0

    @property
    def maximum(cls) -> int:
        """The greatest value of an integer type or bool."""
        if cls.kind == "bool":
            return 1
        return int((1 << (cls.bits - (cls.kind == "int"))) - 1)

    @property
    def itemsize(cls) -> int:
        """Bytes of one element in memory."""
        return max(1, cls.bits // 8)

    def holds(cls, value: int) -> bool:
        """Whether an integer type (or bool) can represent ``value``."""
        return cls.minimum <= value <= cls.maximum

    def wrap(cls, value: int) -> int:
        """``value`` modulo 2^bits, in the range of this integer type; bool: ``value != 0``."""
        if cls.kind == "bool":
            return int(value != 0)
        value &= (1 << cls.bits) - 1
        return value - (1 << cls.bits) if cls.kind == "int" and value > cls.maximum else value

    def convert(cls, value: int | float) -> int | float:
        """``value`` as a Python number of this type, by the rules of a cast in a kernel.

        Integers wrap; a float to an integer type saturates and NaN gives 0.
        """
        if cls.kind == "float":
            return round_float(float_of(value), cls)
        if cls.kind == "bool":
            return bool(value != 0)
        if isinstance(value, float):
            if math.isnan(value):
                return 0
            if math.isinf(value):
                return cls.maximum if value > 0 else cls.minimum
            return min(max(math.trunc(value), cls.minimum), cls.maximum)
        return cls.wrap(value)


class _Scalar(metaclass=DType, kind="bool", bits=0):
    """Base of the scalar types; calling one converts to the NumPy scalar of that type."""

    def __new__(cls, value: Any = 0) -> Any:
        import numpy as np

        if cls.name in _OF_ML_DTYPES:
            return _of_ml_dtypes(cls, value)
        scalar_type = np.bool_ if cls.kind == "bool" else getattr(np, numpy_name(cls))
        if cls.kind == "float":
            with np.errstate(over="ignore"):
                return scalar_type(value)
        return scalar_type(cls.convert(value.item() if isinstance(value, np.generic) else value))


# fmt: off
class bool_(_Scalar, kind="bool", bits=1): """Truth value; one byte, 0 or 1, in memory."""
class i8(_Scalar, kind="int", bits=8): """8-bit signed integer."""
class i16(_Scalar, kind="int", bits=16): """16-bit signed integer."""
class i32(_Scalar, kind="int", bits=32): """32-bit signed integer."""
class i64(_Scalar, kind="int", bits=64): """64-bit signed integer."""
class u8(_Scalar, kind="uint", bits=8): """8-bit unsigned integer."""
class u16(_Scalar, kind="uint", bits=16): """16-bit unsigned integer."""
class u32(_Scalar, kind="uint", bits=32): """32-bit unsigned integer."""
class u64(_Scalar, kind="uint", bits=64): """64-bit unsigned integer."""
class f8e4m3(_Scalar, kind="float", bits=8): """OCP's E4M3: to 448, and NaN; no infinity."""
class f8e5m2(_Scalar, kind="float", bits=8): """OCP's E5M2: the upper half of an f16."""
class f16(_Scalar, kind="float", bits=16): """IEEE 754 binary16."""
class bf16(_Scalar, kind="float", bits=16): """The upper half of an f32, bfloat16."""
class f32(_Scalar, kind="float", bits=32): """IEEE 754 binary32."""
class f64(_Scalar, kind="float", bits=64): """IEEE 754 binary64."""
# fmt: on

DTYPES: Final[dict[str, DType]] = {
    dtype.name: dtype
    for dtype in (
        *(bool_, i8, i16, i32, i64, u8, u16, u32, u64),
        *(f8e4m3, f8e5m2, f16, bf16, f32, f64),
    )
}
"""Every scalar type by its name."""

_NUMPY_NAMES: Final = {"i": "int", "u": "uint", "f": "float"}

_OF_ML_DTYPES: Final = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
"""Name of a type that NumPy lacks -> its name in the package ``ml_dtypes``."""


def numpy_name(dtype: DType) -> str:
    """The name of the NumPy dtype with the same values, such as ``"float32"``."""
    if dtype.name in _OF_ML_DTYPES:
        return _OF_ML_DTYPES[dtype.name]
    return "bool" if dtype.is_bool else _NUMPY_NAMES[dtype.name[0]] + dtype.name[1:]


def _of_ml_dtypes(dtype: DType, value: Any) -> Any:
    """A scalar of ``ml_dtypes``; the same value as ``numpy.float32`` where nobody imported that."""
    import numpy as np

    rounded = np.float32(dtype.convert(value.item() if isinstance(value, np.generic) else value))
    module = sys.modules.get("ml_dtypes")
    return rounded if module is None else getattr(module, numpy_name(dtype))(rounded)


def dtype_of_ml_dtypes(scalar_type: type) -> DType | None:
    """The type that a scalar type of ``ml_dtypes`` is; None for others, which no kernel takes."""
    if scalar_type.__module__ != "ml_dtypes":
        return None
    names = (name for name, theirs in _OF_ML_DTYPES.items() if theirs == scalar_type.__name__)
    return DTYPES.get(next(names, ""))


def float_of(value: int | float) -> float:
    """``float(value)``, with integers beyond the range of a double as infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_float(value: float, dtype: DType) -> float:
    """A double rounded to ``dtype`` (to nearest, ties to even), as a double."""
    if dtype.bits == 64:
        return value
    if dtype.is_narrow_float:
        return _round_narrow(value, NARROW[dtype.name])
    import ctypes

    return ctypes.c_float(value).value


class Narrow(Record):
    """How a float of 8 or 16 bits is laid out.

    ``precision`` counts the bits of its significand, ``least`` is the exponent of its least
    subnormal. What is rounded beyond ``greatest`` is ``beyond``.
    """

    precision: int
    least: int
    greatest: float
    beyond: float = math.inf


NARROW: Final = {
    "f8e4m3": Narrow(4, -9, 448.0, math.nan),
    "f8e5m2": Narrow(3, -16, 57344.0),
    "f16": Narrow(11, -24, 65504.0),
    "bf16": Narrow(8, -133, 2.0**128 - 2.0**120),
}
"""The layouts of narrow floats, by name.

Sources: IEEE 754-2019; "OCP 8-bit Floating Point Specification (OFP8)" 1.0, whose conversion
without saturation this is.
"""


def _round_narrow(value: float, layout: Narrow) -> float:
    if value == 0 or math.isnan(value):
        return value
    beyond = math.copysign(layout.beyond, value)
    if math.isinf(value):
        return beyond
    quantum = max(math.frexp(value)[1] - layout.precision, layout.least)
    try:
        steps = round(math.ldexp(value, -quantum))  # halves to even; exact before
    except OverflowError:
        return beyond
    if abs(value) >= 2 * layout.greatest:
        return beyond
    rounded = math.copysign(math.ldexp(steps, quantum), value)
    return rounded if abs(rounded) <= layout.greatest else beyond


def unsigned(dtype: DType) -> DType:
    """The unsigned integer type as wide as an integer type."""
    return DTYPES[f"u{dtype.bits}"]


def as_operand(dtype: DType) -> DType:
    """The type that ``dtype`` is computed with: f32 for a float of 8 bits."""
    return f32 if dtype.is_stored_float else dtype


def promote(left: DType, right: DType) -> DType | None:
    """The narrowest type that holds both ranges; None where signed meets u64.

    An integer with a float gives that float; f16 with bf16 gives f32; bool gives the other type.
    A float of 8 bits counts as f32 beside any other type.
    """
    if left is right:
        return left
    left, right = as_operand(left), as_operand(right)
    if left is right or right.is_bool:
        return left
    if left.is_bool:
        return right
    if left.is_float or right.is_float:
        candidates = [dtype for dtype in (left, right) if dtype.is_float]
        if all(dtype.is_narrow_float for dtype in candidates) and len(candidates) == 2:
            return f32
        return max(candidates, key=lambda dtype: dtype.bits)
    if left.kind == right.kind:
        return max(left, right, key=lambda dtype: dtype.bits)
    signed, unsigned = (left, right) if left.kind == "int" else (right, left)
    bits = max(signed.bits, 2 * unsigned.bits)
    return DTYPES.get(f"i{bits}")


def plain_number(value: object) -> bool | int | float | None:
    """The Python number that a scalar of NumPy, or of our types of ml_dtypes, holds, or None.

    Other packages' scalars are none, further small numbers of `ml_dtypes` among them.

    >>> plain_number(True), plain_number("1")
    (True, None)
    """
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        if isinstance(value, numpy.bool_):
            return bool(value)
        if isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64):
            return int(value)
        if isinstance(value, numpy.floating) or dtype_of_ml_dtypes(type(value)) is not None:
            return float(value)
        return None
    return value if isinstance(value, bool | int | float) else None
