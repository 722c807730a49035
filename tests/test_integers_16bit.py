"""Every 16-bit integer beside edges of its type, and floats as integers, by C and LLVM.

What is expected is computed by NumPy in 64 bits, where none of it overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from generator import load_module
from harness import levels
from twins import Pair, Twins

Wide = np.ndarray[Any, np.dtype[np.int64]]


def _unless(void: Wide, value: Wide) -> Wide:
    return np.where(void, 0, value)


OPERATIONS: dict[str, Callable[[Wide, Wide], Wide]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a // b": lambda a, b: _unless(b == 0, np.floor_divide(a, np.where(b == 0, 1, b))),
    "a % b": lambda a, b: _unless(b == 0, np.remainder(a, np.where(b == 0, 1, b))),
    "a << b": lambda a, b: a << (b & 15),
    "a >> b": lambda a, b: a >> (b & 15),
    "a // -3": lambda a, _: a // -3,
    "a % -3": lambda a, _: a % -3,
    "a // 10": lambda a, _: a // 10,
    "a % 16": lambda a, _: a % 16,
    "-a": lambda a, _: -a,
    "abs(a)": lambda a, _: abs(a),
    "tack.i8(a)": lambda a, _: a.astype(np.int8).astype(np.int64),
    "tack.u8(a)": lambda a, _: a & 255,
    "tack.i32(a)": lambda a, _: a,
    "tack.u32(a)": lambda a, _: a & 0xFFFFFFFF,
    "int(a)": lambda a, _: a,
    "tack.u64(a)": lambda a, _: a,  # its bits, as i64
}
WIDER = ("tack.i8(a)", "tack.u8(a)", "tack.i32(a)", "tack.u32(a)", "int(a)", "tack.u64(a)")
"""Casts, whose own type shows; the others wrap at that of ``a``."""

LITERAL = {"u16": ("a // -3", "a % -3")}
"""What a type computes as i64, since it holds no such literal."""

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
_ROWS = "\n".join(f"        out[{at}, i] = tack.i64({op})" for at, op in enumerate(OPERATIONS))
_CASTS = "\n".join(f"        to_{name}[i] = tack.{name}(x[i])" for name in INTEGERS)

TEXT = f"""
import tack

@tack.kernel
def operations(x, y, out):
    for i in range(x.shape[0]):
        a, b = x[i], y[0]
{_ROWS}

@tack.kernel
def casts(x, {", ".join(f"to_{name}" for name in INTEGERS)}):
    for i in range(x.shape[0]):
{_CASTS}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(TEXT, tmp_path_factory.mktemp("sixteen"))


def kind(name: str) -> np.dtype[Any]:
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


def divisors(dtype: np.dtype[Any]) -> list[int]:
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, 10, 15, 16, 17, 255, 256, 641, 32767]
    both = {*near, *(-each for each in near), info.min, info.min + 1, info.max, info.max - 1}
    return sorted(each for each in both if info.min <= each <= info.max)


@pytest.mark.parametrize("name", ["i16", "u16"])
def test_every_value_beside_every_edge(name: str, module: ModuleType) -> None:
    dtype = kind(name)
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    pairs = [
        Pair(
            module.operations,
            f"{name}[:], {name}[:], i64[:, :]",
            lambda: [np.zeros((len(OPERATIONS), len(every)), np.int64)],
            lambda memory, b=b: [every, np.array([b], dtype), *memory],
        )
        for b in divisors(dtype)
    ]
    twins, a = Twins(pairs, levels()), every.astype(np.int64)
    for number, b in enumerate(divisors(dtype)):
        expected = [
            exact if op in (*WIDER, *LITERAL.get(name, ())) else exact.astype(dtype)
            for op, of in OPERATIONS.items()
            for exact in [of(a, np.full_like(a, b))]
        ]
        for way, (out,) in twins.runs(number):
            for op, row, wanted in zip(OPERATIONS, out, expected, strict=True):
                np.testing.assert_array_equal(row, wanted, f"{op} with b = {b}, by {way}")


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_floats_saturate_as_integers(name: str, module: ModuleType) -> None:
    """One float in 65,536 of f32, and as many of f64, with the neighbours of the limits."""
    dtype = kind(name)
    bits = np.arange(0, 1 << 32, 65_521, np.uint64) << (0 if name == "f32" else 32)
    limits = [
        float(each) for n in INTEGERS for each in (np.iinfo(kind(n)).max, np.iinfo(kind(n)).min)
    ]
    near = np.array([*limits, *(each + 1 for each in limits), -0.5, 0.5, -1.0], dtype)
    spread = [np.nextafter(near, dtype.type(to)) for to in (-np.inf, np.inf)]
    x = np.concatenate([bits.astype(f"u{dtype.itemsize}").view(dtype), near, *spread])
    pair = Pair(
        module.casts,
        ", ".join(f"{each}[:]" for each in (name, *INTEGERS)),
        lambda: [np.zeros(len(x), kind(each)) for each in INTEGERS],
        lambda memory: [x, *memory],
    )
    expected = [saturated(x, kind(each)) for each in INTEGERS]
    for way, memory in Twins([pair], levels()).runs(0):
        for each, found, wanted in zip(INTEGERS, memory, expected, strict=True):
            np.testing.assert_array_equal(found, wanted, f"{each}, by {way}")


def saturated(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """By Python's integers."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)

    def of(value: float) -> int:
        if value != value:
            return 0
        if value >= high:
            return high
        return low if value <= low else int(value)

    return np.array([of(each) for each in x.tolist()], dtype)
