"""f16 and bf16: every value, and every operation rounded once, by C and by LLVM at every level.

The references are NumPy's doubles, rounded to the type by `nearest` below, and exact fractions.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from generator import load_module
from harness import levels
from twins import Pair, Twins

import tack
from tack.errors import CompileError
from tack.model.dtypes import DTYPES, round_float

Array = np.ndarray[Any, Any]
FORMATS = {
    "f8e4m3": (4, -9, 448.0),
    "f8e5m2": (3, -16, 57344.0),
    "f16": (11, -24, 65504.0),
    "bf16": (8, -133, 2.0**128 - 2.0**120),
}
"""Precision, exponent of the least subnormal, greatest value."""
KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
STORED: dict[str, Any] = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
NUMPY = {
    "bool": np.bool_,
    **STORED,
    **KINDS,
    "f32": np.float32,
    "f64": np.float64,
    **{f"{k}{b}": np.dtype(f"{k}{b // 8}") for k in "iu" for b in (8, 16, 32, 64)},
}
INTEGERS = [name for name, dtype in DTYPES.items() if dtype.is_integer]

TEXT = """
import tack

@tack.kernel
def unary(x, out, asked):
    for i in range(x.shape[0]):
        out[0, i] = -x[i]
        out[1, i] = abs(x[i])
        out[2, i] = tack.floor(x[i])
        out[3, i] = tack.ceil(x[i])
        out[4, i] = tack.trunc(x[i])
        out[5, i] = round(x[i])
        out[6, i] = tack.sqrt(x[i])
        out[7, i] = tack.sign(x[i])
        out[8, i] = x[i]
        asked[0, i] = tack.isnan(x[i])
        asked[1, i] = tack.isinf(x[i])
        asked[2, i] = tack.isfinite(x[i])
        asked[3, i] = tack.bool_(x[i])
        asked[4, i] = not x[i]

@tack.kernel
def binary(x, y, out, asked):
    for i in range(x.shape[0]):
        out[0, i] = x[i] + y[i]
        out[1, i] = x[i] - y[i]
        out[2, i] = x[i] * y[i]
        out[3, i] = x[i] / y[i]
        out[4, i] = x[i] // y[i]
        out[5, i] = x[i] % y[i]
        out[6, i] = min(x[i], y[i])
        out[7, i] = max(x[i], y[i])
        out[8, i] = tack.copysign(x[i], y[i])
        out[9, i] = x[i] * y[i] + x[i] - 0.1
        out[10, i] = y[i] if x[i] < y[i] else x[i]
        asked[0, i] = x[i] < y[i]
        asked[1, i] = x[i] >= y[i]
        asked[2, i] = x[i] == y[i]
        asked[3, i] = x[i] != y[i]

@tack.kernel
def fused(x, y, z, out):
    for i in range(x.shape[0]):
        out[i] = tack.fma(x[i], y[i], z[i])

@tack.kernel
def to_f16(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.f16(x[i])

@tack.kernel
def to_bf16(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.bf16(x[i])

@tack.kernel
def from_narrow(x, {targets}):
    for i in range(x.shape[0]):
        value = x[i]
{casts}

@tack.kernel
def sums(x, out, a: tack.f16, b: tack.bf16):
    for i in range(1):
        total = a
        for k in range(x.shape[0]):
            if x[k] > 0:
                total += x[k]
        out[0] = total
        out[1] = a
        out[2] = b
        out[3] = a + b
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    names = [name for name in DTYPES if name != "bool"]
    text = TEXT.replace("{targets}", ", ".join(f"to_{name}" for name in names)).replace(
        "{casts}", "\n".join(f"        to_{name}[i] = tack.{name}(value)" for name in names)
    )
    return load_module(text, tmp_path_factory.mktemp("narrow"))


def everything(dtype: str) -> Array:
    """All values, which are 65536 or 256."""
    bits = np.dtype(f"u{DTYPES[dtype].itemsize}")
    return np.arange(1 << DTYPES[dtype].bits, dtype=bits).view(NUMPY[dtype])


def beyond(dtype: str) -> float:
    """What is too large for the type."""
    return math.nan if dtype == "f8e4m3" else math.inf


def nearest(values: Array, dtype: str) -> Array:
    """Doubles rounded to the type, to nearest with ties to even."""
    precision, least, greatest = FORMATS[dtype]
    with np.errstate(all="ignore"):
        quantum = np.maximum(np.frexp(values)[1] - precision, least)
        steps = np.rint(np.ldexp(values, -quantum))
        rounded = np.where(np.isfinite(values), np.ldexp(steps, quantum), values)
        rounded = np.where(np.abs(rounded) > greatest, beyond(dtype), rounded)
        return np.where(np.isnan(values), np.nan, np.copysign(rounded, values))


def exactly(value: Fraction, dtype: str) -> float:
    """A fraction rounded to the type."""
    precision, least, greatest = FORMATS[dtype]
    if value == 0:
        return 0.0
    exponent = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    if Fraction(2) ** exponent > abs(value):
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - precision + 1, least)
    rounded = round(value / quantum) * quantum
    size = math.inf if abs(rounded) > greatest else float(abs(rounded))
    return math.copysign(size, value)


def doubles(values: Array) -> Array:
    """The same numbers as doubles; NumPy would warn of signalling NaNs."""
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def alike(found: Array, expected: Array) -> Array:
    """Where the bits are the same, NaN's aside: as doubles, which hold all of these."""
    one, other = doubles(found), doubles(expected)
    return (one.view(np.uint64) == other.view(np.uint64)) | (np.isnan(one) & np.isnan(other))


def run(
    kernel: Any, signature: str, inputs: Sequence[Array], outputs: Sequence[Array], expected: Any
) -> None:
    """Compares what each way to run a kernel gives with what is expected."""
    pair = Pair(
        kernel,
        signature,
        lambda: [each.copy() for each in outputs],
        lambda memory: [*inputs, *memory],
    )
    for way, found in Twins([pair], levels()).runs(0):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            wrong = np.argwhere(~alike(one, other))
            if wrong.size:
                place = tuple(wrong[0])
                given = [each[place[-1]] for each in inputs]
                raise AssertionError(
                    f"{way}, output {number}{list(place)} of {given}: {one[place]}, not "
                    f"{other[place]} ({len(wrong)} differ)"
                )


@pytest.mark.parametrize("dtype", KINDS)
def test_every_value(module: ModuleType, dtype: str) -> None:
    x = everything(dtype)
    wide = doubles(x)
    with np.errstate(all="ignore"):
        results = [-wide, abs(wide), np.floor(wide), np.ceil(wide), np.trunc(wide), np.rint(wide)]
        results += [nearest(np.sqrt(wide), dtype), np.sign(wide), wide]
        results[7] = np.where(wide == 0, 0.0, results[7])
    asked = [np.isnan(wide), np.isinf(wide), np.isfinite(wide), wide != 0, wide == 0]
    outputs = [np.zeros((9, x.size), x.dtype), np.zeros((5, x.size), np.bool_)]
    run(
        module.unary,
        f"{dtype}[:], {dtype}[:, :], bool[:, :]",
        [x],
        outputs,
        [np.array(results), np.array(asked)],
    )


def some(dtype: str, count: int) -> Array:
    """Values of every size, and those at the edges."""
    bits = [0, 1, 2, 3, 0x3FF, 0x400, 0x401, 0x7F, 0x80, 0x81, 0x3C00, 0x3C01, 0x3F80, 0x3F81]
    bits += [0x7BFF, 0x7C00, 0x7C01, 0x7F7F, 0x7F80, 0x7FC0, 0x7FFF, 0x4000, 0x4200, 0x2E66]
    bits += range(37, 0x8000, 0x8000 // count)
    signed = np.array([*bits, *(each | 0x8000 for each in bits)], np.uint16)
    return signed.view(KINDS[dtype])


def floor_divided(a: Array, b: Array, dtype: str) -> Array:
    """CPython's float_floor_div, each operation rounded."""
    rest = np.fmod(a, b)
    quotient = nearest(nearest(a - rest, dtype) / b, dtype)
    off = (rest != 0) & ((b < 0) != (rest < 0))
    quotient = np.where(off, nearest(quotient - 1, dtype), quotient)
    floored = np.floor(quotient)
    up = nearest(quotient - floored, dtype) > 0.5
    floored = np.where(up, nearest(floored + 1, dtype), floored)
    result = np.where(quotient == 0, np.copysign(0.0, a / b), floored)
    return np.where(b == 0, a / b, result)


def remainders(a: Array, b: Array, dtype: str) -> Array:
    rest = np.fmod(a, b)
    signed = np.where((b < 0) != (rest < 0), nearest(rest + b, dtype), rest)
    return np.where(rest == 0, np.copysign(0.0, b), signed)


@pytest.mark.parametrize("dtype", KINDS)
def test_operations_on_two_values(module: ModuleType, dtype: str) -> None:
    values = some(dtype, 170)
    x, y = (np.ascontiguousarray(each.ravel()) for each in np.meshgrid(values, values))
    a, b = doubles(x), doubles(y)
    near = functools.partial(nearest, dtype=dtype)
    with np.errstate(all="ignore"):
        tenth = near(np.array(0.1))
        results = [near(a + b), near(a - b), near(a * b), near(a / b)]
        results += [floor_divided(a, b, dtype), remainders(a, b, dtype)]
        results += [np.where(np.isnan(a) | (b < a), b, a), np.where(np.isnan(a) | (a < b), b, a)]
        results += [np.copysign(a, b), near(near(near(a * b) + a) - tenth), np.where(a < b, b, a)]
    asked = [a < b, a >= b, a == b, a != b]
    outputs = [np.zeros((11, x.size), x.dtype), np.zeros((4, x.size), np.bool_)]
    run(
        module.binary,
        f"{dtype}[:], {dtype}[:], {dtype}[:, :], bool[:, :]",
        [x, y],
        outputs,
        [np.array(results), np.array(asked)],
    )


@pytest.mark.parametrize("dtype", KINDS)
def test_sums_and_products_are_rounded_from_the_exact_value(dtype: str) -> None:
    """What `nearest` of a double is compared with above: fractions round to the same."""
    rng = random.Random(5)
    values = [float(each) for each in everything(dtype) if math.isfinite(each)]
    operations: list[Callable[[Any, Any], Any]] = [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a / b if b else a,
    ]
    for _ in range(3000):
        a, b = rng.choice(values), rng.choice(values)
        for operation in operations:
            exact = exactly(operation(Fraction(a), Fraction(b)), dtype)
            assert abs(float(nearest(np.array(operation(a, b)), dtype))) == abs(exact), (a, b)
            assert abs(round_float(operation(a, b), DTYPES[dtype])) == abs(exact)


def fused_exactly(a: float, b: float, c: float, dtype: str) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c if not (math.isfinite(a) and math.isfinite(b)) else c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return exactly(exact, dtype) if exact else a * b + c


@pytest.mark.parametrize("dtype", KINDS)
def test_fma_rounds_once(module: ModuleType, dtype: str) -> None:
    rng = random.Random(3)
    values = some(dtype, 40)
    triples = [tuple(rng.choice(values) for _ in range(3)) for _ in range(20000)]
    # Products beside the middle of two neighbours, and the least numbers to decide for one of them.
    kind = KINDS[dtype]
    tiny, one = kind(2.0 ** FORMATS[dtype][1]), kind(1)
    for step, c in itertools.product(range(1, 40), (tiny, -tiny, tiny * 3, kind(0))):
        near = kind(1 + step * 2.0 ** (1 - FORMATS[dtype][0]))
        triples += [(near, near, c), (near, -near, c), (near, one, c), (near, near, -near)]
        triples += [(near, kind(2.0**-12), c), (kind(2.0**12) * near, near, c)]
    inputs = [np.array(column, kind) for column in zip(*triples, strict=True)]
    expected = [fused_exactly(*map(float, triple), dtype) for triple in triples]
    arrays = ", ".join([f"{dtype}[:]"] * 4)
    run(module.fused, arrays, inputs, [np.zeros(len(triples), kind)], [np.array(expected)])


def middles(dtype: str) -> Array:
    """Each value, the middle of it and the next, and the doubles beside these."""
    precision, _, greatest = FORMATS[dtype]
    values = doubles(everything(dtype))
    values = values[np.isfinite(values) & ~np.signbit(values)]
    next_one = greatest + 2.0 ** (math.frexp(greatest)[1] - precision)
    middle = (values + np.append(values[1:], next_one)) / 2
    found = np.concatenate([values, middle, [0.0, next_one, 1e300, 5e-324, np.inf, np.nan]])
    found = np.concatenate([found, np.nextafter(found, np.inf), np.nextafter(found, 0)])
    return np.concatenate([found, -found])


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("dtype", KINDS)
def test_a_cast_from_a_wider_float_rounds_once(module: ModuleType, dtype: str, source: str) -> None:
    exact = middles(dtype)
    with np.errstate(all="ignore"):
        x = exact.astype(NUMPY[source])
        if source == "f32":
            x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(9))])
    expected = nearest(doubles(x), dtype)
    kernel = getattr(module, f"to_{dtype}")
    run(kernel, f"{source}[:], {dtype}[:]", [x], [np.zeros(x.size, KINDS[dtype])], [expected])


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("dtype", KINDS)
def test_a_cast_from_an_integer_rounds_once(module: ModuleType, dtype: str, source: str) -> None:
    info = np.iinfo(NUMPY[source])
    near = [info.min, info.max, 0, 65504, 65519, 65520, 65536]
    for bits in range(info.bits):
        for fine in range(max(bits - 13, 0), bits):
            half = (1 << bits) + (1 << fine)
            near += [half, half + (1 << bits >> 3), half | ((1 << bits >> 7) | 1)]
    signed = {n for each in near for n in (each - 1, each, each + 1, -each, 1 - each, -each - 1)}
    kept = sorted(each for each in signed if info.min <= each <= info.max)
    x = np.array(kept, NUMPY[source])
    expected = np.array([exactly(Fraction(each), dtype) for each in kept])
    kernel = getattr(module, f"to_{dtype}")
    run(kernel, f"{source}[:], {dtype}[:]", [x], [np.zeros(x.size, KINDS[dtype])], [expected])


@pytest.mark.parametrize("dtype", KINDS)
def test_every_value_casts_to_every_type(module: ModuleType, dtype: str) -> None:
    x = everything(dtype)
    wide = doubles(x)
    names = [name for name in DTYPES if name != "bool"]
    expected: list[Array] = []
    for name in names:
        if DTYPES[name].is_float:
            expected.append(nearest(wide, name) if name in FORMATS else wide)
            continue
        low, high = DTYPES[name].minimum, DTYPES[name].maximum
        whole = [0 if math.isnan(v) else v if math.isinf(v) else int(v) for v in wide.tolist()]
        limited = [low if v <= low else high if v >= high else int(v) for v in whole]
        expected.append(np.array(limited, NUMPY[name]))
    outputs = [np.zeros(x.size, NUMPY[name]) for name in names]
    signature = ", ".join(f"{name}[:]" for name in (dtype, *names))
    run(module.from_narrow, signature, [x], outputs, expected)


def test_scalars_of_both_types_and_sums(module: ModuleType) -> None:
    x = np.full(3000, 1.0, np.float16)
    out = np.zeros(4, np.float32)
    module.sums(x, out, 0.1, 0.3)
    tenth, third = round_float(0.1, tack.f16), round_float(0.3, tack.bf16)
    # 2048 + 1 is 2048: the sum is held in f16.
    assert out.tolist() == [2048.0, tenth, third, np.float32(tenth) + np.float32(third)]
    for value in (1e-9, 65519.9, 65520.0, math.inf, -1e-40, 2.0**-133 * 1.5, 3.4e38, 7):
        module.sums(x, out, value, value)
        kept = [round_float(float(value), dtype) for dtype in (tack.f16, tack.bf16)]
        assert out[1:3].tolist() == kept


def test_bfloat16_scalars_count_as_the_number_they_hold(module: ModuleType) -> None:
    out = np.zeros(4, np.float32)
    x = np.zeros(1, np.float16)
    for _ in range(3):  # a miss, and warm calls
        module.sums(x, out, np.float16(0.5), ml_dtypes.bfloat16(1.5))
        assert out[1:3].tolist() == [0.5, 1.5]


def test_plain_python_rounds_as_a_kernel_does() -> None:
    assert tack.f16(2049) == 2048
    assert type(tack.f16(1)) is np.float16
    assert tack.bf16(257) == 256
    assert type(tack.bf16(1)) is ml_dtypes.bfloat16


def test_arrays_of_other_two_byte_types_are_no_bfloat16(module: ModuleType) -> None:
    with pytest.raises(TypeError, match="dtype"):
        module.to_f16(np.zeros(2, "V2"), np.zeros(2, np.float16))


def test_tack_does_not_import_ml_dtypes(tmp_path: Path) -> None:
    program = """
import sys, numpy as np, tack

@tack.kernel
def kernel(x, out, a: tack.bf16):
    for i in range(x.shape[0]):
        out[i] = x[i] * a

out = np.zeros(2, np.float32)
kernel(np.ones(2, np.float16), out, 2.0)
assert out.tolist() == [2, 2]
assert type(tack.bf16(1.001)) is np.float32 and tack.bf16(1.001) == 1
assert "ml_dtypes" not in sys.modules
"""
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    subprocess.run([sys.executable, path], check=True)


def test_a_float_into_bits_is_refused_as_any_float_is(module: ModuleType) -> None:
    with pytest.raises((CompileError, RuntimeError), match="is i32 and this is"):
        module.fused(*[np.zeros(1, np.float16)] * 3, np.zeros(1, np.int32))
