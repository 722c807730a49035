"""Scalars become the bytes of their slot, or are refused, as the language page says."""

from __future__ import annotations

import enum
import fractions
import math
import numbers
import struct
from decimal import Decimal
from typing import Any

import native
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import DTYPES, array, make, numpy_dtype, scalar

INTEGERS = {
    f"{sign}{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if sign == "i" else (0, 2**bits - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}


def one(a):
    pass


def two(a, b):
    pass


class Whole(int):
    def __index__(self) -> int:
        return 99

    __int__ = __index__


class Real(float):
    def __float__(self) -> float:
        return 99.0


class Choice(enum.IntEnum):
    YES = 1


NUMPY_TYPES = sorted(
    {t for t in np.sctypeDict.values() if issubclass(t, np.integer | np.floating)}
    - {np.timedelta64},
    key=str,
)
ODD: list[Any] = [
    np.bool_(True),
    Whole(5),
    Real(0.5),
    Choice.YES,
    fractions.Fraction(1, 3),
    *(kind(3) for kind in NUMPY_TYPES),
]
NO_NUMBERS: list[Any] = [None, "1", 1j, np.complex64(1), Decimal(1), np.array(1.0), [1]]
NO_NUMBERS += [np.timedelta64(1, "s"), np.datetime64(1, "s")]


def plain(value: Any) -> bool | int | float | None:
    """The Python number that an argument holds, by the rules of the language page."""
    if isinstance(value, np.timedelta64):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, float):
        return float.__pos__(value)
    if isinstance(value, np.floating | fractions.Fraction):
        return float(value)
    return None


def expected(dtype: str, annotated: bool, value: Any, f64_array: bool) -> bytes | None:
    """The bytes of the slot, or None for a miss."""
    number = plain(value)
    if number is None:
        return None
    if dtype == "bool":
        return bytes([number]) if isinstance(number, bool) else None
    if dtype in INTEGERS:
        if isinstance(number, float) or not (annotated or dtype == "i64"):
            return None
        if isinstance(number, bool) and not annotated:
            return None
        low, high = INTEGERS[dtype]
        return struct.pack(DTYPES[dtype], number) if low <= number <= high else None
    if not annotated and (not isinstance(number, float) or (dtype == "f64") != f64_array):
        return None
    try:
        number = float(number)
    except OverflowError:
        return None
    with np.errstate(over="ignore"):
        return np.float32(number).tobytes() if dtype == "f32" else struct.pack("d", number)


def check_scalar(dtype: str, annotated: bool, value: Any, array_dtype: str) -> None:
    record = make([scalar(dtype, annotated), array(array_dtype)])
    called = native.kernel(two, record, annotated=(annotated, False))
    x = np.zeros(1, numpy_dtype(array_dtype))
    wanted = expected(dtype, annotated, value, array_dtype == "f64")
    spy = native.spied()
    for _ in range(2):
        spy.clear(slots=1)
        if wanted is None:
            with pytest.raises(LookupError):
                called(value, x)
            assert spy.calls == 0
        else:
            called(value, x)
            assert struct.pack("Q", spy.slots(1)[0])[: len(wanted)] == wanted


EDGES = sorted({0, 1, -1} | {e + d for pair in INTEGERS.values() for e in pair for d in (-1, 0, 1)})
EDGES += [2**29, 2**30, 2**30 - 1, -(2**30), 2**31, 2**60, 2**61, 10**400, -(10**400)]
FLOATS = [0.0, -0.0, 1.5, math.inf, -math.inf, 1e300, 5e-324, 3.4028235677973366e38, 1e-46, 0.1]


@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
def test_scalars_at_the_edges(dtype: str, annotated: bool) -> None:
    for value in [*EDGES, *FLOATS, True, False, *ODD, *NO_NUMBERS]:
        for array_dtype in ("f32", "f64"):
            check_scalar(dtype, annotated, value, array_dtype)


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False),
    st.booleans(),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.floats(width=16, allow_nan=False).map(np.float16),
    st.fractions(),
)


@settings(deadline=None)
@given(st.sampled_from(["bool", *DTYPES]), st.booleans(), NUMBERS, st.sampled_from(["f32", "f64"]))
def test_scalars_of_every_size(dtype: str, annotated: bool, value: Any, array_dtype: str) -> None:
    check_scalar(dtype, annotated, value, array_dtype)


def test_nan_stays_nan() -> None:
    for dtype in ("f32", "f64"):
        called = native.kernel(two, make([scalar(dtype), array(dtype)]))
        native.spied().clear(slots=1)
        called(math.nan, np.zeros(1, numpy_dtype(dtype)))
        (value,) = struct.unpack_from(DTYPES[dtype], struct.pack("Q", native.spied().slots(1)[0]))
        assert math.isnan(value)


class Interrupted:
    """A real number whose conversion fails for a reason of its own."""

    def __float__(self) -> float:
        raise KeyboardInterrupt


def test_what_a_conversion_raises_is_not_swallowed() -> None:
    numbers.Real.register(Interrupted)
    called = native.kernel(one, make([scalar("f32", True)]), annotated=(True,))
    with pytest.raises(KeyboardInterrupt):
        called(Interrupted())
