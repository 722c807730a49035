"""The builtins of the language: by every name, in plain Python too, and at the edges of floats."""

from __future__ import annotations

import itertools
import math
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module
from harness import differences, levels
from twins import Pair, Twins

import tack
import tack.math
from tack.compile import generate
from tack.errors import CompileError
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

EDGES = [
    *(0.0, 0.5, 1.0, 1.5, 2.5, 0.49999997, 0.49999999999999994, 8388607.5, 4503599627370495.5),
    *(1e-45, 5e-324, 1e-38, 3e38, 1e308, 16777217.0, math.inf, math.nan),
]
FLOATS = [*EDGES, *(-each for each in EDGES)]

TEXT = """
import tack
import tack.math as named

@tack.kernel
def floats(x, y, z, out, asked):
    for i in range(x.shape[0]):
        out[0, i] = round(x[i])
        out[1, i] = named.copysign(x[i], y[i])
        out[2, i] = tack.clamp(x[i], y[i], z[i])
        out[3, i] = tack.sign(x[i])
        out[4, i] = tack.math.step(x[i], y[i])
        out[5, i] = tack.mix(x[i], y[i], z[i])
        out[6, i] = tack.mix(0.0, y[i], 0.25)
        out[7, i] = tack.round(2.5) + tack.clamp(x[i], -1, 1)
        asked[0, i] = tack.isnan(x[i])
        asked[1, i] = tack.isinf(x[i])
        asked[2, i] = tack.isfinite(x[i])

@tack.kernel
def integers(x, y, out):
    for i in range(x.shape[0]):
        out[0, i] = tack.popcount(x[i])
        out[1, i] = tack.clz(x[i])
        out[2, i] = tack.ctz(x[i])
        out[3, i] = tack.sign(x[i])
        out[4, i] = tack.clamp(x[i], y[i], 100)
        out[5, i] = tack.step(x[i], y[i])
        out[6, i] = round(x[i])
        out[7, i] = tack.popcount(x[i] & y[i]) + tack.clz(x[i] ^ y[i])

@tack.kernel
def refused(x, out):
    for i in range(x.shape[0]):
        out[i] = {expression}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    text = TEXT.replace("{expression}", "x[i]")
    return load_module(text, tmp_path_factory.mktemp("builtins"))


def agree(kernel: Any, signature: str, inputs: list[Any], outputs: list[Any]) -> None:
    """C and LLVM at every level give what the oracle does."""
    expected = [each.copy() for each in outputs]
    oracle.run(kernel, [*inputs, *expected])
    pair = Pair(
        kernel,
        signature,
        lambda: [each.copy() for each in outputs],
        lambda memory: [*inputs, *memory],
    )
    for way, found in Twins([pair], levels()).runs(0):
        assert not differences(expected, found), way


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_builtins_of_floats_at_the_edges(module: ModuleType, dtype: str) -> None:
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    with np.errstate(over="ignore"):
        triples = np.array(list(itertools.product(FLOATS, repeat=3))).astype(kind)
    inputs = [np.ascontiguousarray(column) for column in triples[::7].T]
    count = len(inputs[0])
    outputs = [np.zeros((8, count), kind), np.zeros((3, count), np.bool_)]
    arrays = ", ".join([f"{dtype}[:]"] * 3)
    agree(module.floats, f"{arrays}, {dtype}[:, :], bool[:, :]", inputs, outputs)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_builtins_of_integers_at_the_edges(module: ModuleType, dtype: str) -> None:
    kind = np.dtype(f"{dtype[0]}{int(dtype[1:]) // 8}")
    info = np.iinfo(kind)
    near = [info.min, info.max, *range(-3, 4), *(1 << k for k in range(info.bits))]
    values = sorted({each for n in near for each in (n - 1, n, n + 1)})
    kept = [each for each in values if info.min <= each <= info.max]
    pairs = np.array(list(itertools.product(kept, kept[::3])), kind)
    inputs = [np.ascontiguousarray(column) for column in pairs.T]
    outputs = [np.zeros((8, len(pairs)), kind)]
    agree(module.integers, f"{dtype}[:], {dtype}[:], {dtype}[:, :]", inputs, outputs)


def test_plain_python_computes_the_same() -> None:
    x = np.float32(-2.5)
    assert tack.round(x) == -2
    assert type(tack.round(x)) is np.float32
    assert tack.round(3) == 3
    assert math.copysign(1, tack.round(np.float32(-0.25))) == -1
    assert tack.copysign(x, 1.0) == 2.5
    assert tack.clamp(math.nan, 0.0, 1.0) == 0.0
    assert [tack.clamp(n, 0, 5) for n in (-1, 3, 9)] == [0, 3, 5]
    assert tack.sign(x) == -1
    assert tack.step(1, 2) == 1
    assert tack.mix(2.0, 4.0, 0.25) == 2.5
    assert (tack.isnan(math.nan), tack.isinf(x), tack.isfinite(x)) == (True, False, True)
    assert (tack.popcount(np.int8(-1)), tack.clz(np.uint16(1)), tack.ctz(np.int32(0))) == (
        8,
        15,
        32,
    )
    assert (tack.popcount(-1), tack.clz(0), tack.ctz(8)) == (64, 64, 3)


def test_the_module_of_mathematics_has_the_same_functions() -> None:
    assert set(tack.math.__all__) < set(tack.__all__)
    for name in tack.math.__all__:
        assert getattr(tack.math, name) is getattr(tack, name)


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("tack.popcount(x[i] * 1.5)", "popcount takes integers, not an f64; cast it"),
        ("tack.isnan(x[i])", "isnan takes floats, not an i32: every integer is finite"),
        ("tack.copysign(x[i], 2)", "copysign takes floats, not an i32; cast one"),
        ("tack.mix(x[i], 1, 2)", "mix takes floats, not an i32; cast one"),
        ("tack.clamp(x[i], 1)", "clamp takes 3 values, not 2"),
        ("round(x[i], 1)", "round takes 1 value, not 2"),
        ("tack.mix(1.0, 2.0, t=0.5)", "takes no keyword arguments"),
    ],
)
def test_what_has_no_meaning_is_refused(
    expression: str, advice: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = TEXT.replace("{expression}", expression)
    kernel = load_module(text, tmp_path_factory.mktemp("refused")).refused
    target = Target("cpu", "x86-64-v2")
    variant = Variant(kernel.definition, Signature.parse("i32[:], f64[:]"), target)
    with pytest.raises(CompileError) as error:
        generate(variant, renderer_for(target))
    assert advice in str(error.value)
    with pytest.raises(oracle.OracleRefused):
        oracle.check(kernel, [np.zeros(1, np.int32), np.zeros(1)])


SHADOWS = {
    "@tack.func\ndef abs(x):\n    return x + 1": ("x[0] = abs(-5)", -4.0),
    "@tack.func\ndef len(x):\n    return 7": ("x[0] = len(x)", 7.0),
    "float = tack.f64": ("x[0] = float(n) / 3", 5 / 3),
    "from tack import sqrt as abs": ("x[0] = abs(4.0)", 2.0),
    "round = tack.constant(3)": ("x[0] = round + 1", 4.0),
    "max = 5": ("x[0] = max(n, 2)", "max(n, 2)"),
    "# a local hides it in the whole function": (
        "x[0] = min(n, 2)\n                    min = 3",
        "min(n, 2)",
    ),
    "# and so does a loop's variable": (
        "for abs in range(3):\n                        x[0] = abs(n)",
        "abs(n)",
    ),
    "@tack.func\ndef range(x):\n    return x": ("x[0] = 1", "range(1)"),
    "@tack.func\ndef f(min, n):\n    return min(n, 2)": ("x[0] = f(n, n)", "min(n, 2)"),
}


@pytest.mark.parametrize("before", SHADOWS)
def test_a_name_that_hides_a_builtin_is_what_python_says(load, before):
    body, expected = SHADOWS[before]
    module = load(
        f"""
            {before.replace(chr(10), chr(10) + " " * 12)}

            @tack.kernel
            def kernel(x, n):
                for i in range(1):
                    {body}
        """
    )
    x = np.zeros(1)
    if isinstance(expected, float):
        module.kernel(x, 5)
        assert x[0] == expected
        return
    with pytest.raises(CompileError) as refusal:
        module.kernel(x, 5)
    *_, line, carets = str(refusal.value).splitlines()
    at = carets.index("^")
    assert expected.startswith(line[at : at + carets.count("^")])
