"""sin, cos, tan and their inverses: special values, accuracy, the same bits wherever they run."""

from __future__ import annotations

import hashlib
import math
from types import ModuleType
from typing import Any

import exact
import ml_dtypes
import numpy as np
import pytest
from generator import load_module
from harness import differences, levels
from mpmath import mp, mpf
from twins import Pair, Twins

import tack
from tack.ir.operations import ELEMENTARY

KINDS = {"f32": np.float32, "f64": np.float64}
NAMES = ("acos", "asin", "atan", "atan2", "cos", "sin", "tan")

TEXT = """
import tack

@tack.kernel
def each(x, y, out):
    for i in range(x.shape[0]):
        out[0, i] = tack.acos(x[i])
        out[1, i] = tack.asin(x[i])
        out[2, i] = tack.atan(x[i])
        out[3, i] = tack.atan2(x[i], y[i])
        out[4, i] = tack.cos(x[i])
        out[5, i] = tack.sin(x[i])
        out[6, i] = tack.tan(x[i])

@tack.kernel
def vectors(x: tack.Array[tack.f32x3], out: tack.Array[tack.f32x3]):
    for i in range(x.shape[0]):
        v = tack.sin(x[i])
        out[i] = tack.atan2(v, tack.f32x3(0.5)) + tack.atan2(x[i], 2.0)

@tack.device_class
class Wave:
    def __init__(self, speed):
        self.speed = speed

    @tack.func
    def at(self, t):
        return tack.sin(t * self.speed)

@tack.kernel
def waves(wave, x, out):
    for i in range(x.shape[0]):
        out[i] = wave.at(x[i])

@tack.kernel
def integers(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.cos(x[i])
"""

INF, NAN, PI = math.inf, math.nan, math.pi

# Function -> arguments and result; pi and its parts are rounded to the type.
SPECIAL: dict[str, list[tuple[float, ...]]] = {
    "acos": [
        (1.0, 0.0),
        (-1.0, PI),
        (0.0, PI / 2),
        (-0.0, PI / 2),
        (0.5, 1.0471975511965979),
        (1.5, NAN),
        (-2.0, NAN),
        (INF, NAN),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "asin": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (1.0, PI / 2),
        (-1.0, -PI / 2),
        (1.5, NAN),
        (-2.0, NAN),
        (INF, NAN),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "atan": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (1.0, PI / 4),
        (-1.0, -PI / 4),
        (INF, PI / 2),
        (-INF, -PI / 2),
        (NAN, NAN),
        (1e30, PI / 2),
        (-1e38, -PI / 2),
    ],
    "atan2": [
        (0.0, -0.0, PI),
        (-0.0, -0.0, -PI),
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0),
        (0.0, -3.0, PI),
        (-0.0, -3.0, -PI),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (2.0, 0.0, PI / 2),
        (2.0, -0.0, PI / 2),
        (-2.0, 0.0, -PI / 2),
        (-2.0, -0.0, -PI / 2),
        (2.0, -INF, PI),
        (-2.0, -INF, -PI),
        (2.0, INF, 0.0),
        (-2.0, INF, -0.0),
        (INF, 2.0, PI / 2),
        (-INF, 2.0, -PI / 2),
        (INF, -2.0, PI / 2),
        (-INF, -2.0, -PI / 2),
        (INF, INF, PI / 4),
        (-INF, INF, -PI / 4),
        (INF, -INF, 3 * PI / 4),
        (-INF, -INF, -3 * PI / 4),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (NAN, INF, NAN),
        (INF, NAN, NAN),
        (NAN, 0.0, NAN),
        (1.0, 1.0, PI / 4),
        (1.0, -1.0, 3 * PI / 4),
        (-1.0, -1.0, -3 * PI / 4),
    ],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-30, 1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
}

ODD = ("asin", "atan", "sin", "tan")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(TEXT, tmp_path_factory.mktemp("trigonometry"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", KINDS)
def test_special_values_are_those_of_annex_f(name: str, dtype: str) -> None:
    for *args, expected in SPECIAL[name]:
        found = getattr(tack, name)(*map(KINDS[dtype], args))
        assert type(found) is KINDS[dtype]
        assert not differences([np.array([expected], KINDS[dtype])], [np.array([found])]), args


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("dtype", KINDS)
def test_the_least_numbers_are_their_own_results(name: str, dtype: str) -> None:
    info = np.finfo(KINDS[dtype])
    x = np.array([info.smallest_subnormal, info.tiny, info.tiny / 3, info.tiny * 5], KINDS[dtype])
    x = np.concatenate([x, -x])
    np.testing.assert_array_equal(getattr(tack, name)(x), x)


def test_small_quotients_are_rounded_once() -> None:
    for kind in KINDS.values():
        least = np.finfo(kind).smallest_subnormal
        for y, x in [(least, 1), (least * 3, 2), (least * 5, 4), (least, 3), (least * 7, 1e30)]:
            expected = kind(y) / kind(x)
            assert tack.atan2(kind(y), kind(x)) == expected
            assert tack.atan2(-kind(y), kind(x)) == -expected


def _samples(name: str, kind: Any, count: int) -> list[np.ndarray[Any, Any]]:
    """Arguments of every size where the function has results."""
    random, info = np.random.default_rng(len(name)), np.finfo(kind)
    sides = random.choice([-1.0, 1.0], (2, count))
    if name in ("acos", "asin"):
        near = 1 - 2.0 ** random.uniform(-info.nmant - 1, 0, count)
        x = np.concatenate([random.uniform(-1, 1, count), near * sides[0]])
        return [np.concatenate([x, 2.0 ** random.uniform(info.minexp, 0, count)]).astype(kind)]
    sizes = 2.0 ** random.uniform(info.minexp - 10, info.maxexp - 1, (2, count)) * sides
    modest = random.uniform(-9, 9, (2, count))
    turns = np.arange(1, count) * (PI / 2)
    if name == "atan2":
        near = sizes[1] * random.uniform(0.1, 0.9, count)
        y, x = [sizes[0], modest[0], near], [sizes[1], modest[1], sizes[1]]
        return [np.concatenate(each).astype(kind) for each in (y, x)]
    return [np.concatenate([sizes[0], modest[0], turns, turns / 2]).astype(kind)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", KINDS)
def test_results_are_within_a_unit_of_the_exact_ones(name: str, dtype: str) -> None:
    args = _samples(name, KINDS[dtype], 150)
    result = getattr(tack, name)(*args)
    assert np.isfinite(result).all()
    worst = max(exact.error(name, *each) for each in zip(result, *args, strict=True))
    assert worst < 0.85


@pytest.mark.parametrize("name", ["cos", "sin", "tan"])
@pytest.mark.parametrize("dtype", KINDS)
def test_angles_nearest_to_multiples_of_quarter_turns(name: str, dtype: str) -> None:
    x = exact.near_quarter_turns(KINDS[dtype])
    result = getattr(tack, name)(x)
    assert max(exact.error(name, y, each) for y, each in zip(result, x, strict=True)) < 0.85


def test_the_search_finds_the_nearest_of_all() -> None:
    nearest = {}
    with mp.workprec(exact.PRECISION):
        for dtype, kind in KINDS.items():
            found = []
            for x in exact.near_quarter_turns(kind):
                turns = mpf(float(x)) * 2 / mp.pi
                rest = abs(turns - mp.nint(turns)) * mp.pi / 2
                found.append((float(mp.log(rest, 2)), float(x)))
            nearest[dtype] = min(found)
    assert nearest["f32"][1] == 16367173 * 2.0**72
    assert -29.3 < nearest["f32"][0] < -29.2
    assert nearest["f64"][1] == 6381956970095103 * 2.0**797
    assert -60.9 < nearest["f64"][0] < -60.8


def _bits_of_every_kind(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Floats of every size, the same everywhere: a sequence of integers, and edges."""
    width = np.dtype(KINDS[dtype]).itemsize
    number = np.arange(1, 6001, dtype=np.uint64)
    spread = number * np.uint64(0x9E3779B97F4A7C15)  # wraps
    x = (spread >> np.uint64(64 - 8 * width)).astype(f"u{width}").view(KINDS[dtype])
    modest = ((number % np.uint64(4001)).astype(np.float64) - 2000) / 1024
    edges = np.array([row[0] for rows in SPECIAL.values() for row in rows])
    x = np.concatenate([x, modest.astype(KINDS[dtype]), modest.astype(KINDS[dtype]) * 1000])
    x = np.concatenate([x, edges.astype(KINDS[dtype]), exact.near_quarter_turns(KINDS[dtype])])
    return x, np.roll(x, 7)


HASHES = {"f32": "2fae7b305ed7a1e0", "f64": "e8818310866d5d53"}
"""Of all bits of all results: a change of a formula changes them, on purpose."""


@pytest.mark.parametrize("dtype", KINDS)
def test_one_hash_in_plain_python_and_by_every_compiler_at_every_level(
    dtype: str, module: ModuleType
) -> None:
    x, y = _bits_of_every_kind(dtype)
    plain = np.zeros((len(NAMES), len(x)), KINDS[dtype])
    for row, name in enumerate(NAMES):
        plain[row] = getattr(tack, name)(*(x, y)[: ELEMENTARY[name]])
    signature = f"{dtype}[:], {dtype}[:], {dtype}[:, :]"
    pair = Pair(module.each, signature, lambda: [plain * 0], lambda memory: [x, y, *memory])
    assert _hash(plain) == HASHES[dtype]
    for way, (found,) in Twins([pair], levels()).runs(0):
        assert not differences([plain], [found]), way
        assert _hash(found) == HASHES[dtype], way


def _hash(values: np.ndarray[Any, Any]) -> str:
    one_nan = np.where(np.isnan(values), values.dtype.type(math.nan), values)
    return hashlib.sha256(one_nan.astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_computed_as_f32_and_rounded(kind: Any, module: ModuleType) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    y = np.roll(x, 999)
    expected = np.zeros((len(NAMES), len(x)), kind)
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float32), y.astype(np.float32)]
        for row, name in enumerate(NAMES):
            function, count = getattr(tack, name), ELEMENTARY[name]
            expected[row] = function(*wide[:count]).astype(kind)
            plain = function(*(x, y)[:count])
            assert plain.dtype == kind
            np.testing.assert_array_equal(
                plain.astype(np.float32), expected[row].astype(np.float32)
            )
    dtype = "f16" if kind is np.float16 else "bf16"
    signature = f"{dtype}[:], {dtype}[:], {dtype}[:, :]"
    zeros = np.zeros_like(expected)
    pair = Pair(module.each, signature, lambda: [zeros.copy()], lambda memory: [x, y, *memory])
    for way, (found,) in Twins([pair], levels()[-1:]).runs(0):
        one, other = (each.view(np.uint16) for each in (expected, found))
        both_nan = np.isnan(expected.astype(np.float32)) & np.isnan(found.astype(np.float32))
        assert ((one == other) | both_nan).all(), way


def test_vectors_are_taken_by_component(module: ModuleType) -> None:
    x = np.linspace(-40, 40, 30, dtype=np.float32).reshape(10, 3)
    out = np.zeros_like(x)
    module.vectors(x, out)
    first = tack.atan2(tack.sin(x), np.full_like(x, 0.5))
    np.testing.assert_array_equal(out, first + tack.atan2(x, np.full_like(x, 2)))


def test_methods_of_templates_may_use_them(module: ModuleType) -> None:
    x = np.linspace(-4, 4, 33)
    out = np.zeros_like(x)
    module.waves(module.Wave(1.5), x, out)
    np.testing.assert_array_equal(out, tack.sin(x * 1.5))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_])
def test_integers_count_as_f32(kind: Any, module: ModuleType) -> None:
    x = np.array([0, 1, 2, 100]).astype(kind)
    expected = tack.cos(x.astype(np.float32))
    assert expected.dtype == np.float32
    plain = tack.cos(x)
    assert plain.dtype == np.float32
    np.testing.assert_array_equal(plain, expected)
    out = np.zeros(4)
    module.integers(x, out)
    np.testing.assert_array_equal(out, expected.astype(np.float64))


def test_plain_python_keeps_the_type_of_its_argument() -> None:
    assert type(tack.sin(1.0)) is np.float64
    assert type(tack.sin(np.float32(1))) is np.float32
    assert type(tack.sin(3)) is np.float32
    assert tack.sin(np.zeros((2, 3), np.float32)).shape == (2, 3)
    assert tack.atan2(1.0, np.float64(1)) == PI / 4
