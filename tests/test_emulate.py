"""What a target lacks is computed from what it has, with the same bits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from corpus import CORPUS, COUNT, edges
from generator import load_module
from harness import differences, levels, run_kernel
from twins import Pair, generated_pairs, toolchains

from tack.compile import assemble, generate
from tack.ir.operations import ATOMIC_DTYPES, ATOMIC_OPS, EMULATED
from tack.model.dtypes import DTYPES
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

TARGET = Target("cpu", levels()[-1])

EVERYTHING = frozenset(EMULATED)

REMAINDERS = """
import tack

@tack.kernel
def remainders(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] % y[i]
"""


def runs(
    pairs: list[Pair], dialect: str, supported: frozenset[str] = frozenset()
) -> list[list[np.ndarray]]:
    """What the memory of each pair is after a run where the other operations are missing."""
    renderer = replace(renderer_for(TARGET, dialect), supported_ops=supported)
    sources = [
        generate(Variant(pair.kernel.definition, Signature.parse(pair.signature), TARGET), renderer)
        for pair in pairs
    ]
    toolchain = next(tool for tool in toolchains() if tool.dialect == dialect)
    text = assemble("emulated", list({s.title: s for s in sources}.values()), renderer)
    library = toolchain.load(toolchain.compile(text, TARGET))
    memories = [pair.memory() for pair in pairs]
    for pair, source, memory in zip(pairs, sources, memories, strict=True):
        run_kernel(pair.kernel, source, library, pair.bind(memory), noalias=False)
    return memories


def as_supported(pairs: list[Pair]) -> list[list[np.ndarray]]:
    return runs(pairs, "c", EVERYTHING)


@pytest.mark.parametrize("dialect", ["c", "llvm"])
@pytest.mark.parametrize("name", ["arithmetic", "conversions", "control"])
def test_the_bits_do_not_depend_on_what_is_emulated(
    name: str, dialect: str, tmp_path: Path
) -> None:
    text, pairs_of = CORPUS[name]
    pairs = list(pairs_of(load_module(text, tmp_path)))
    for pair, one, other in zip(pairs, as_supported(pairs), runs(pairs, dialect), strict=True):
        assert not differences(one, other), pair.signature


@pytest.mark.parametrize("dialect", ["c", "llvm"])
def test_generated_programs_have_the_bits_that_they_have_where_nothing_is_missing(
    dialect: str, tmp_path: Path
) -> None:
    pairs = list(generated_pairs(30, 7, tmp_path))
    for pair, one, other in zip(pairs, as_supported(pairs), runs(pairs, dialect), strict=True):
        assert not differences(one, other), pair.signature


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact_at_every_distance_of_exponents(dtype: type, tmp_path: Path) -> None:
    info, random = np.finfo(dtype), np.random.default_rng(1)
    least = info.minexp - info.nmant
    exponents = random.integers(least, info.maxexp, (2, 4000))
    x, y = np.ldexp(random.uniform(1, 2, (2, 4000)).astype(dtype), exponents.astype(np.int32))
    x[:50], y[50:100] = 0, info.smallest_subnormal
    x[100:150], y[150:200] = np.inf, np.inf
    pair = Pair(
        load_module(REMAINDERS, tmp_path).remainders,
        f"f{info.bits}[:], f{info.bits}[:], f{info.bits}[:]",
        lambda: [x.copy(), y.copy(), np.zeros_like(x)],
    )
    (found,) = runs([pair], "c")
    with np.errstate(invalid="ignore"):
        expected = [
            math.fmod(a, b) if math.isfinite(a) and b else math.nan
            for a, b in zip(x, y, strict=True)
        ]
    np.testing.assert_array_equal(found[2], np.array(expected, dtype))


PRIVATE = """
import tack

@tack.kernel
def k(x, y, out):
    for i in range(x.shape[0]):
        own = tack.local_array(tack.{spelling}, 2)
        own[0] = x[i]
        own[1] = y[i]
        old = tack.atomic_{op}(own, {operands})
        out[0, i] = old
        out[1, i] = own[0]
        out[2, i] = own[1]
"""


@pytest.mark.parametrize("op", ATOMIC_OPS)
def test_atomics_on_arrays_of_an_iteration_are_loads_and_stores(op: str, tmp_path: Path) -> None:
    pairs = []
    for name in ATOMIC_DTYPES[op]:
        operands = "i % 2, x[i], y[i]" if op == "cas" else "i % 2, y[i]"
        spelling = DTYPES[name].__name__
        text = PRIVATE.format(spelling=spelling, op=op, operands=operands)
        arrays = edges((name, (COUNT,)), (name, (COUNT,)), (name, (3, COUNT)))
        signature = f"{name}[:], {name}[:], {name}[:, :]"
        pairs.append(Pair(load_module(text, tmp_path).k, signature, arrays))
    for dialect in ("c", "llvm"):
        for pair, one, other in zip(pairs, as_supported(pairs), runs(pairs, dialect), strict=True):
            assert not differences(one, other), pair.signature
    without = EVERYTHING - {"private atomics"}
    renderer = replace(renderer_for(TARGET), supported_ops=without)
    for pair in pairs:
        signature = Signature.parse(pair.signature)
        text = generate(Variant(pair.kernel.definition, signature, TARGET), renderer).text
        assert "tack_atomic_" not in text


def test_the_table_says_what_each_is():
    assert all(EMULATED.values())
