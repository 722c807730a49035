"""Floats of 8 bits: stored as OCP's formats, computed with as f32, by C and by LLVM at every level.

The references are `nearest` of ``test_narrow_floats``, the tables of the formats as fractions, and
ml_dtypes, whose rules ours are: what is too large is NaN in E4M3 and an infinity in E5M2.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from generator import load_module
from test_narrow_floats import (
    FORMATS,
    KINDS,
    NUMPY,
    STORED,
    doubles,
    everything,
    middles,
    nearest,
    run,
)

import tack
from tack.errors import CompileError
from tack.model.dtypes import DTYPES, plain_number

Array = np.ndarray[Any, Any]
FLOATS = [*STORED, *KINDS, "f32", "f64"]

TEXT = """
import tack

@tack.kernel
def copy(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]

@tack.kernel
def unary(x, out, asked):
    for i in range(x.shape[0]):
        out[0, i] = -x[i]
        out[1, i] = abs(x[i])
        out[2, i] = tack.floor(x[i])
        out[3, i] = tack.sqrt(x[i])
        out[4, i] = tack.sign(x[i])
        out[5, i] = x[i] ** 2
        asked[0, i] = tack.isnan(x[i])
        asked[1, i] = tack.isinf(x[i])
        asked[2, i] = tack.bool_(x[i])
        asked[3, i] = not x[i]
        asked[4, i] = x[i] < 0.1

@tack.kernel
def binary(x, y, out, asked):
    for i in range(x.shape[0]):
        out[0, i] = x[i] + y[i]
        out[1, i] = x[i] * y[i]
        out[2, i] = x[i] / y[i]
        out[3, i] = min(x[i], y[i])
        out[4, i] = tack.fma(x[i], y[i], x[i])
        out[5, i] = x[i] * y[i] + 0.1
        asked[0, i] = x[i] < y[i]
        asked[1, i] = x[i] == y[i]

@tack.kernel
def kept(x, y, out):
    for i in range(x.shape[0]):
        value = x[i] if y[i] > x[i] else y[i]
        held = tack.local_array(tack.f8e4m3, 2)
        held[0] = value
        held[1] = 0.3
        exact: tack.f8e5m2 = 0.3
        out[0, i] = held[0]
        out[1, i] = held[1]
        out[2, i] = exact
        out[3, i] = tack.f8e5m2(x[i])

@tack.kernel
def scaled(x, s: tack.f8e4m3, t: tack.f8e5m2, out):
    for i in range(x.shape[0]):
        out[0, i] = s
        out[1, i] = t
        out[2, i] = x[i] * s + t

@tack.kernel
def vectors(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * 2.0

@tack.kernel
def whole(x, out):
    for i in range(x.shape[0]):
        out[i] = int(x[i])
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(TEXT, tmp_path_factory.mktemp("float8"))


def table(dtype: str) -> list[float]:
    """The values of all bits, by the text of the specification."""
    mantissa_bits, bias = (3, 7) if dtype == "f8e4m3" else (2, 15)
    found = []
    for bits in range(128):
        exponent, fraction = bits >> mantissa_bits, bits % (1 << mantissa_bits)
        value = math.ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits)
        if exponent == 0:
            value = math.ldexp(fraction, 1 - bias - mantissa_bits)
        if bits == 0x7F or (dtype == "f8e5m2" and bits > 0x7C):
            value = math.nan
        elif dtype == "f8e5m2" and bits == 0x7C:
            value = math.inf
        found.append(value)
    return found + [-each for each in found]


@pytest.mark.parametrize("dtype", STORED)
def test_the_reference_is_the_specification(dtype: str) -> None:
    np.testing.assert_array_equal(doubles(everything(dtype)), table(dtype))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("dtype", STORED)
def test_every_value_becomes_every_type(module: ModuleType, dtype: str, target: str) -> None:
    x = everything(dtype)
    wide = doubles(x)
    expected = nearest(wide, target) if target in FORMATS else wide
    run(module.copy, f"{dtype}[:], {target}[:]", [x], [np.zeros(x.size, NUMPY[target])], [expected])


@pytest.mark.parametrize("dtype", STORED)
def test_a_copy_keeps_the_bits_of_numbers(module: ModuleType, dtype: str) -> None:
    x = everything(dtype)
    out = np.zeros_like(x)
    module.copy(x, out)
    numbers = ~np.isnan(doubles(x))
    assert np.array_equal(x.view(np.uint8)[numbers], out.view(np.uint8)[numbers])
    assert np.isnan(doubles(out)[~numbers]).all()


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("dtype", STORED)
def test_every_float_of_16_bits_is_rounded(module: ModuleType, dtype: str, source: str) -> None:
    x = everything(source)
    expected = nearest(doubles(x), dtype)
    run(module.copy, f"{source}[:], {dtype}[:]", [x], [np.zeros(x.size, STORED[dtype])], [expected])


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("dtype", STORED)
def test_wider_floats_are_rounded_once(module: ModuleType, dtype: str, source: str) -> None:
    """All boundaries and their neighbours, and a dense sample of bits."""
    with np.errstate(all="ignore"):
        near = middles(dtype).astype(NUMPY[source])
        near = np.concatenate([near, np.nextafter(near, NUMPY[source](0))])
        bits = np.random.default_rng(8).integers(0, 2**64, 200_000, np.uint64)
        shifted = bits >> np.uint64(64 - 8 * np.dtype(NUMPY[source]).itemsize)
        sample = shifted.astype(f"u{near.itemsize}").view(NUMPY[source])
        small = np.random.default_rng(9).normal(size=200_000) * np.exp2(
            np.arange(200_000) % 40 - 20
        )
        x = np.concatenate([near, sample, small.astype(NUMPY[source])])
    expected = nearest(doubles(x), dtype)
    run(module.copy, f"{source}[:], {dtype}[:]", [x], [np.zeros(x.size, STORED[dtype])], [expected])


@pytest.mark.parametrize("dtype", STORED)
def test_rounding_is_that_of_ml_dtypes(dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = middles(dtype).astype(np.float32)
        theirs = doubles(x.astype(STORED[dtype]))
    np.testing.assert_array_equal(nearest(doubles(x), dtype), theirs)
    converted = [DTYPES[dtype].convert(float(each)) for each in x]
    np.testing.assert_array_equal(np.array(converted), theirs)


@pytest.mark.parametrize("dtype", STORED)
def test_integers_are_rounded(module: ModuleType, dtype: str) -> None:
    small = [*range(-70000, 70000, 7), 2**24 + 1, 2**62 + 1, -(2**63)]
    x = np.array(small, np.int64)
    expected = nearest(doubles(x), dtype)
    run(module.copy, f"i64[:], {dtype}[:]", [x], [np.zeros(x.size, STORED[dtype])], [expected])


@pytest.mark.parametrize("dtype", STORED)
def test_operations_are_those_of_f32(module: ModuleType, dtype: str) -> None:
    x = everything(dtype)
    single = x.astype(np.float32)
    with np.errstate(all="ignore"):
        results = [-single, abs(single), np.floor(single), np.sqrt(single)]
        results += [np.where(single == 0, np.float32(0), np.sign(single)), single * single]
        asked = [np.isnan(single), np.isinf(single), single != 0, single == 0]
        asked += [single < np.float32(0.1)]
    outputs = [np.zeros((6, x.size), np.float32), np.zeros((5, x.size), np.bool_)]
    signature = f"{dtype}[:], f32[:, :], bool[:, :]"
    run(module.unary, signature, [x], outputs, [np.array(results), np.array(asked)])


@pytest.mark.parametrize("other", [*FLOATS, "i32"])
@pytest.mark.parametrize("dtype", STORED)
def test_beside_any_type_a_value_counts_as_f32(module: ModuleType, dtype: str, other: str) -> None:
    x = np.tile(everything(dtype), 16)
    y = np.arange(x.size, dtype=np.uint16).astype(np.int16).astype(np.float32)
    with np.errstate(all="ignore"):
        y = (y if other == "i32" else y / 32).astype(NUMPY[other])
    kind = np.float64 if other == "f64" else np.float32
    a, b, tenth = x.astype(kind), y.astype(kind), kind(0.1)
    with np.errstate(all="ignore"):
        results = [a + b, a * b, a / b, np.where(np.isnan(a) | (b < a), b, a)]
        exact = a.astype(np.longdouble) * b + a
        results += [exact.astype(kind), a * b + tenth]
    outputs = [np.zeros((6, x.size), kind), np.zeros((2, x.size), np.bool_)]
    wide = "f64" if other == "f64" else "f32"
    signature = f"{dtype}[:], {other}[:], {wide}[:, :], bool[:, :]"
    run(module.binary, signature, [x, y], outputs, [np.array(results), np.array([a < b, a == b])])


def test_what_is_only_moved_keeps_its_type(module: ModuleType) -> None:
    x = everything("f8e4m3")
    y = np.roll(x, 77)
    a, b = doubles(x), doubles(y)
    with np.errstate(all="ignore"):
        value = np.where(b > a, a, b)
    near = [nearest(np.full(256, 0.3), each) for each in STORED]
    expected = np.array([value, *near, nearest(a, "f8e5m2")])
    signature = "f8e4m3[:], f8e4m3[:], f32[:, :]"
    run(module.kept, signature, [x, y], [np.zeros((4, 256), np.float32)], [expected])


def test_scalars_are_rounded_at_the_call(module: ModuleType) -> None:
    x = np.array([1.0, -2.0, 0.5], np.float32)
    values = [0.3, 464.0, 464.1, 57344.0, 61439.9, 61440.0, 1e9, -1e9, math.inf, math.nan, 3, True]
    values += [2.0**-10, 2.0**-9 * 1.5, 2.0**-17, 2.0**-16 * 1.5, np.float32(0.7)]
    values += [ml_dtypes.float8_e5m2(0.3), ml_dtypes.float8_e4m3fn(0.3), ml_dtypes.bfloat16(0.3)]
    for given in values:
        out = np.zeros((3, 3), np.float32)
        module.scaled(x, given, given, out)
        s, t = (nearest(np.array([float(given)]), each)[0] for each in STORED)
        expected = [np.full(3, s), np.full(3, t), x * np.float32(s) + np.float32(t)]
        np.testing.assert_array_equal(out, np.array(expected, np.float32))


def test_scalars_of_ml_dtypes_are_the_numbers_that_they_hold() -> None:
    assert plain_number(ml_dtypes.float8_e4m3fn(0.3)) == 0.3125
    assert plain_number(ml_dtypes.float8_e5m2(-3.0)) == -3.0
    assert plain_number(ml_dtypes.float8_e4m3fnuz(1.0)) is None


@pytest.mark.parametrize("dtype", STORED)
def test_vectors_of_them(module: ModuleType, dtype: str) -> None:
    x = everything(dtype).reshape(64, 4)
    out = np.zeros_like(x)
    run(
        module.vectors,
        f"{dtype}x4[:], {dtype}x4[:]",
        [x],
        [out],
        [nearest(doubles(x) * 2, dtype)],
    )
    made = getattr(tack, f"{dtype}x2")(0.3, 1e9)
    assert made.dtype == STORED[dtype]
    np.testing.assert_array_equal(doubles(made), nearest(np.array([0.3, 1e9]), dtype))


def test_whole_numbers_saturate(module: ModuleType) -> None:
    x = everything("f8e5m2")
    out = np.zeros(256, np.int64)
    module.whole(x, out)
    wide = doubles(x)
    expected = [
        0 if math.isnan(v) else max(min(v, 2.0**63), -(2.0**63)) if math.isinf(v) else int(v)
        for v in wide.tolist()
    ]
    assert out.tolist() == [min(int(each), 2**63 - 1) for each in expected]


def test_plain_python_gives_the_scalars_of_ml_dtypes() -> None:
    assert isinstance(tack.f8e4m3(0.3), ml_dtypes.float8_e4m3fn)
    assert isinstance(tack.f8e5m2(0.3), ml_dtypes.float8_e5m2)
    assert float(tack.f8e4m3(464.0)) == 448.0
    assert math.isnan(float(tack.f8e4m3(465)))
    assert float(tack.f8e5m2(61439.0)) == 57344.0
    assert float(tack.f8e5m2(-61440)) == -math.inf


def test_without_ml_dtypes_it_is_an_f32(tmp_path: Path) -> None:
    code = (
        "import sys; import tack; import numpy as np; value = tack.f8e4m3(0.3)\n"
        "assert 'ml_dtypes' not in sys.modules\n"
        "assert type(value) is np.float32 and value == 0.3125"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_atomics_and_other_kinds_are_refused() -> None:
    @tack.kernel
    def count(x):
        for i in range(x.shape[0]):
            tack.atomic_add(x, i, 1.0)

    with pytest.raises(CompileError, match="atomic_add has no f8e4m3 elements; it has"):
        count(np.zeros(3, ml_dtypes.float8_e4m3fn))

    @tack.kernel
    def double(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 2

    known = r"has dtype float8_e4m3fnuz; a kernel takes .*float8_e4m3fn, float8_e5m2"
    with pytest.raises(TypeError, match=known):
        double(np.zeros(3, ml_dtypes.float8_e4m3fnuz))


def test_a_constant_beyond_the_range_is_refused() -> None:
    assert tack.constant(448, tack.f8e4m3) == 448
    assert math.isnan(tack.constant(math.nan, tack.f8e4m3))
    for value, dtype in ((1000, tack.f8e4m3), (math.inf, tack.f8e4m3), (1e6, tack.f8e5m2)):
        with pytest.raises(OverflowError, match="is beyond the range of f8e"):
            tack.constant(value, dtype)
