"""Random numbers: the published vectors, one value everywhere, and the distributions."""

from __future__ import annotations

import inspect
import itertools
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from corpus import RANDOM_NUMBERS, random_numbers
from generator import load_module
from harness import levels
from oracle import counters
from twins import disagreements

import tack
import tack.random
from tack.elementary import counter_based
from tack.elementary.evaluate import evaluate
from tack.elementary.term import trace
from tack.ir.operations import MATH_CALLS, RANDOM
from tack.model.dtypes import u32

ONES, PI = (0xFFFFFFFF,) * 4, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)

THREEFRY = [
    # Random123's kat_vectors.
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    (ONES[:2], ONES[:2], (0x1CB996FC, 0xBB002BE7)),
    (PI[2:], PI[:2], (0xC4923A9C, 0x483DF7A0)),
    # jax.extend.random.threefry_2x32 of JAX 0.10.2.
    ((0x2265B1F5, 0x91B7584A), (0xD8F16ADF, 0xCD613E30), (0xC13C9BF4, 0x1160DA26)),
    ((0xC386BBC4, 0x1027C4D1), (0x414C343C, 0x1E2FEB89), (0x35211D98, 0x5B3E0118)),
    ((0x7ED4D57B, 0xC2CE6F44), (0x7311D8A3, 0x78E51061), (0x0EAC5AF2, 0xB3C89DBB)),
]
"""Key, counter and words."""

PHILOX = [
    ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (ONES[:2], ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0xA4093822, 0x299F31D0), PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
"""Of Random123's kat_vectors."""

EDGES = [0, 1, -1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, -(2**63), 0x0123456789ABCDEF]
COUNT = 1 << 16


@pytest.mark.parametrize(
    ("name", "vector"),
    [*(("threefry", each) for each in THREEFRY), *(("philox", each) for each in PHILOX)],
)
def test_words_are_the_published_ones(name: str, vector: Any) -> None:
    key, counter, expected = vector
    generator = getattr(counter_based, name)
    for index, word in enumerate(expected):
        formula = trace(
            lambda *terms, index=index: generator(terms[:2], terms[2:])[index],
            (u32,) * (2 + len(counter)),
        )
        assert evaluate(formula, *map(np.uint32, (*key, *counter))) == word
    assert tuple(getattr(counters, name)(key, counter)) == expected


@pytest.mark.parametrize("generator", ["threefry", "philox"])
def test_numbers_are_those_of_plain_integers(generator: str) -> None:
    for seed, counter in itertools.product(EDGES, repeat=2):
        at = (seed, counter)
        words = getattr(tack.random, generator)(*at)
        assert words.tolist() == counters.words(generator, *at)
        assert words.dtype == np.uint32
        assert tack.random.bits(*at, generator=generator) == counters.bits(*at, generator)
        for dtype, precision in ((tack.f32, 24), (tack.f64, 53)):
            found = tack.random.uniform(*at, dtype=dtype, generator=generator)
            assert found == counters.uniform(*at, precision, generator)
            assert found.dtype.name == {24: "float32", 53: "float64"}[precision]
        for low, high in itertools.product(EDGES, repeat=2):
            found = tack.random.randint(*at, low, high, generator=generator)
            assert found == counters.randint(*at, low, high, generator)
            assert low <= found < max(high, low + 1)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(RANDOM_NUMBERS, tmp_path_factory.mktemp("random"))


def test_c_and_llvm_give_the_same_bits_at_every_level(module: ModuleType) -> None:
    found = disagreements(list(random_numbers(module)), levels())
    assert not found, "\n".join(found.values())


@pytest.mark.parametrize("name", RANDOM)
def test_a_kernel_gives_what_plain_python_does(name: str, module: ModuleType) -> None:
    kernel = getattr(module, name.replace(".", "_"))
    seeds, at = (np.array(each) for each in zip(*itertools.product(EDGES, repeat=2), strict=True))
    kind = name.rpartition(".")[2]
    dtype = np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")
    compiled, plain = np.zeros(len(at), dtype), np.zeros(len(at), dtype)
    kernel(seeds, at, compiled)
    kernel.py_func(seeds, at, plain)
    assert compiled.tobytes() == plain.tobytes()
    assert compiled.any()


@tack.kernel
def vectors(seed: tack.i64, out: tack.Array[tack.f32x3], first: tack.Array[tack.u32x2]) -> None:
    for i in range(out.shape[0]):
        drawn = tack.random.uniform(seed, tack.i64x3(3 * i, 3 * i + 1, 3 * i + 2))
        out[i] = drawn
        first[i] = tack.random.philox(seed, i).zw


def test_vectors_of_counters_give_vectors() -> None:
    out, first = np.zeros((5, 3), np.float32), np.zeros((5, 2), np.uint32)
    vectors(9, out, first)
    expected = [tack.random.uniform(9, n) for n in range(15)]
    assert out.ravel().tolist() == expected
    assert first.tolist() == [counters.words("philox", 9, n)[2:] for n in range(5)]
    assert tack.random.uniform(9, np.arange(15)).tolist() == expected


# Distributions. Seeds and counters are fixed, so that nothing here is left to chance; the bounds
# are those that a fair source stays within but once in a million times.

EXTREME = 4.9
"""Standard deviations that are exceeded once in a million times."""


@pytest.mark.parametrize("generator", ["threefry", "philox"])
@pytest.mark.parametrize("dtype", [tack.f32, tack.f64], ids=str)
@pytest.mark.parametrize("seed", [0, 1, 12345])
class TestDistributions:
    def test_uniform_numbers_fill_the_unit_evenly(
        self, generator: str, dtype: Any, seed: int
    ) -> None:
        x = tack.random.uniform(seed, np.arange(COUNT), dtype=dtype, generator=generator)
        assert x.min() >= 0
        assert x.max() < 1
        assert abs(x.astype(float).mean() - 0.5) < EXTREME * math.sqrt(1 / 12 / COUNT)
        assert_even(np.bincount((x * 256).astype(int), minlength=256))
        pairs = (x[::2] * 16).astype(int) * 16 + (x[1::2] * 16).astype(int)
        assert_even(np.bincount(pairs, minlength=256))

    def test_normal_numbers_are_normal(self, generator: str, dtype: Any, seed: int) -> None:
        x = tack.random.normal(seed, np.arange(COUNT), dtype=dtype, generator=generator)
        x = x.astype(float)
        moments = {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}
        for power, (mean, variance) in moments.items():
            assert abs((x**power).mean() - mean) < EXTREME * math.sqrt(variance / COUNT)
        probabilities = np.array([0.5 * (1 + math.erf(each / math.sqrt(2))) for each in x])
        assert_even(np.bincount((probabilities * 256).astype(int), minlength=256))


@pytest.mark.parametrize("generator", ["threefry", "philox"])
@pytest.mark.parametrize("count", [2, 6, 100, 1000])
def test_integers_are_equally_likely(generator: str, count: int) -> None:
    x = tack.random.randint(3, np.arange(COUNT), -5, count - 5, generator=generator)
    assert_even(np.bincount(x + 5, minlength=count))


def assert_even(found: Any) -> None:
    """Pearson's test: chi-square is nearly normal with so many degrees of freedom, but skewed."""
    expected = found.sum() / len(found)
    chi_square = ((found - expected) ** 2 / expected).sum()
    freedom = len(found) - 1
    # Wilson and Hilferty's cube root, which holds down to 1 degree.
    scaled = ((chi_square / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) * math.sqrt(
        9 * freedom / 2
    )
    assert scaled < EXTREME


@pytest.mark.parametrize("generator", ["threefry", "philox"])
@pytest.mark.parametrize("dtype", [tack.f32, tack.f64], ids=str)
def test_normal_numbers_are_those_of_box_and_muller(generator: str, dtype: Any) -> None:
    """To four units of the type: of logarithm, root, cosine and product."""
    unit = 2.0**-23 if dtype is tack.f32 else 2.0**-52
    for counter in [*EDGES, *range(300)]:
        words = counters.words(generator, 5, counter)
        if dtype is tack.f64:
            first = words[1] << 32 | words[0]
            rest = words[2:] or counters.words(generator, 5, first)
            radius, angle, bits = first, rest[1] << 32 | rest[0], 64
        else:
            radius, angle, bits = *words[:2], 32
        # The turn less whole quarters is exact, so that a cosine next to 0 keeps its digits.
        quarter, rest_of_turn = divmod(angle + 2 ** (bits - 3), 2 ** (bits - 2))
        turned = (rest_of_turn - 2 ** (bits - 3)) / 2**bits * 2 * math.pi
        wave = [math.cos, lambda a: -math.sin(a), lambda a: -math.cos(a), math.sin]
        uniform = (radius + 0.5) / 2**bits
        log_of = math.log1p(-(1 - uniform)) if uniform > 0.5 else math.log(uniform)
        exact = math.sqrt(-2 * log_of) * wave[quarter % 4](turned)
        found = float(tack.random.normal(5, counter, dtype=dtype, generator=generator))
        # What is rounded away from a uniform number next to 1 counts against its distance from 1.
        slack = unit / max(1 - uniform, unit) if uniform > 0.5 else 0.0
        assert abs(found - exact) <= (4 * unit + slack) * abs(exact), counter


def test_the_least_and_greatest_words_give_finite_numbers() -> None:
    for bits, dtype in ((32, "u32"), (64, "u64")):
        kind = tack.model.dtypes.DTYPES[dtype]
        formula = trace(counter_based._box_muller, (kind, kind))
        of = np.uint32 if bits == 32 else np.uint64
        for radius, angle in itertools.product((0, 1, 2**bits - 2, 2**bits - 1), repeat=2):
            assert np.isfinite(evaluate(formula, of(radius), of(angle)))


def test_the_docs_name_the_farthest_numbers() -> None:
    for bits, farthest in ((32, 6.8), (64, 9.5)):
        assert round(math.sqrt(-2 * math.log(2.0 ** -(bits + 1))), 1) == farthest


# Plain Python, and names.


def test_what_is_no_integer_is_refused_in_plain_python() -> None:
    with pytest.raises(TypeError, match=r"are integers, not 0\.5"):
        tack.random.uniform(0.5, 1)
    with pytest.raises(ValueError, match="no generator is called 'philx'; did you mean 'philox'"):
        tack.random.bits(0, 1, generator="philx")
    with pytest.raises(ValueError, match=r"dtype is tack\.f32 or tack\.f64"):
        tack.random.uniform(0, 1, dtype=tack.f16)


def test_tables_of_ir_and_formulas_agree() -> None:
    for name, count in RANDOM.items():
        generator, _, number = name.partition(".")
        assert MATH_CALLS[name] == count == counter_based.OPERANDS.get(number, 2)
        _, words = counter_based.GENERATORS[generator]
        assert number in counter_based.NUMBERS
        assert not number.startswith("word") or int(number[4]) < words
    assert len(RANDOM) == 2 * 6 + 2 + 4


def test_every_function_is_told_in_the_docs() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[1] / "docs" / "arithmetic.md").read_text(encoding="utf-8")
    section = page.partition("## Random numbers")[2].partition("\n## ")[0]
    for name in tack.random.__all__:
        assert f"{name}(seed" in section
        assert inspect.getdoc(getattr(tack.random, name))
