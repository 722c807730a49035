"""What a target lacks is computed from what it has, with the same bits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from corpus import CORPUS
from generator import load_module
from harness import differences, levels, run_kernel
from twins import Pair, toolchains

from tack.compile import assemble, generate
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.passes.emulate import EMULATED
from tack.render.renderer import renderer_for

TARGET = Target("cpu", levels()[-1])

REMAINDERS = """
import tack

@tack.kernel
def remainders(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] % y[i]
"""


def runs(pairs: list[Pair], dialect: str) -> list[list[np.ndarray]]:
    """What the memory of each pair is after a run where every operation of the table is missing."""
    renderer = replace(renderer_for(TARGET, dialect), supported_ops=frozenset())
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
    renderer, toolchain = renderer_for(TARGET, "c"), toolchains()[0]
    sources = [pair.source("c") for pair in pairs]
    text = assemble("supported", list({s.title: s for s in sources}.values()), renderer)
    library = toolchain.load(toolchain.compile(text, TARGET))
    memories = [pair.memory() for pair in pairs]
    for pair, source, memory in zip(pairs, sources, memories, strict=True):
        run_kernel(pair.kernel, source, library, pair.bind(memory), noalias=False)
    return memories


@pytest.mark.parametrize("dialect", ["c", "llvm"])
@pytest.mark.parametrize("name", ["arithmetic", "control"])
def test_the_bits_do_not_depend_on_what_is_emulated(
    name: str, dialect: str, tmp_path: Path
) -> None:
    text, pairs_of = CORPUS[name]
    pairs = list(pairs_of(load_module(text, tmp_path)))
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


def test_the_table_says_what_each_is():
    assert all(EMULATED.values())
