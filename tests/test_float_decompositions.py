"""What a target lacks of floats, comparisons and shifts is computed exactly, in C and in LLVM."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from corpus import CORPUS
from exact import EXACT, nearest
from generator import load_module
from harness import differences, levels, run_kernel
from twins import Pair, toolchains

from tack.compile import assemble, generate, prepared
from tack.ir.nodes import IRBinOp, IRCall, IRCompare, IRNode, IRUnaryOp
from tack.ir.operations import EMULATED
from tack.ir.traversal import walk_ir
from tack.model.dtypes import DTYPES
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import Renderer, renderer_for

BEST = Target("cpu", levels()[-1])
TOOLS = {tool.dialect: tool for tool in toolchains()}
EVERYTHING = frozenset(EMULATED)
SINGLES = frozenset(DTYPES) - {"f64"}
ARITHMETIC = [name for name in DTYPES if not name.startswith("f8")]
"""The types that anything is computed at."""
FLOATS = {"f32": np.float32, "f64": np.float64}
NUMPY = {
    name: np.dtype(ml_dtypes.bfloat16 if name == "bf16" else f"{dtype.kind[0]}{dtype.bits // 8}")
    for name, dtype in DTYPES.items()
    if name in ARITHMETIC and name != "bool"
}

KERNELS = """
import tack

@tack.kernel
def roots(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.sqrt(x[i])

@tack.kernel
def quotients(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] / y[i]

@tack.kernel
def reciprocals(x, out):
    for i in range(x.shape[0]):
        out[i] = 1 / x[i]

@tack.kernel
def negatives(x, out):
    for i in range(x.shape[0]):
        out[i] = -x[i]

@tack.kernel
def fused(x, y, z, out):
    for i in range(x.shape[0]):
        out[i] = tack.fma(x[i], y[i], z[i])

@tack.kernel
def compared(x, y, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        out[0, i] = a == b
        out[1, i] = a != b
        out[2, i] = a < b
        out[3, i] = a <= b
        out[4, i] = a > b
        out[5, i] = a >= b

@tack.kernel
def shifted(x, n, out):
    for i in range(x.shape[0]):
        out[0, i] = x[i] << n[i]
        out[1, i] = x[i] >> n[i]
        out[2, i] = x[i] << 3
        out[3, i] = x[i] >> 3

@tack.kernel
def function(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.exp2(x[i])
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_module(KERNELS, tmp_path_factory.mktemp("kernels"))


def renderer_without(dialect: str, *missing: str, **changed: Any) -> Renderer:
    renderer = renderer_for(BEST, dialect)
    return replace(renderer, supported_ops=EVERYTHING - set(missing), **changed)


def run(
    kernel: Any, signature: str, arrays: Sequence[np.ndarray[Any, Any]], renderer: Renderer
) -> np.ndarray[Any, Any]:
    """What the last of the arrays is after a call."""
    variant = Variant(kernel.definition, Signature.parse(signature), BEST)
    source = generate(variant, renderer)
    tool = TOOLS["c" if renderer.suffix == ".c" else "llvm"]
    memory = [array.copy() for array in arrays]
    library = tool.load(tool.compile(assemble("lacking", [source], renderer), BEST))
    run_kernel(kernel, source, library, memory, noalias=True)
    return memory[-1]


def assert_same(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> None:
    assert not differences([expected], [found])


def left(kernel: Any, signature: str, renderer: Renderer) -> set[str]:
    """The operations that a writer would meet."""
    variant = Variant(kernel.definition, Signature.parse(signature), BEST)
    nodes = walk_ir(prepared(variant, renderer))
    return {
        node.function if isinstance(node, IRCall) else node.op
        for node in nodes
        if isinstance(node, IRCall | IRBinOp | IRCompare | IRUnaryOp)
    }


def samples(dtype: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Bits at random, numbers around 1, small whole ones, and the edges of the type."""
    random, kind = np.random.default_rng(seed), FLOATS[dtype]
    info = np.finfo(kind)
    least, normal, greatest = info.smallest_subnormal, info.tiny, info.max
    edges = [0, 1, 1.5, 3, math.inf, math.nan, least, 3 * least, normal, normal - least, greatest]
    edges += [greatest / 2, 1 + info.eps, 1 - info.epsneg, normal * 2, math.sqrt(normal)]
    bits = random.integers(0, 1 << info.bits, count, np.uint64).astype(f"u{info.bits // 8}")
    some = [
        bits.view(kind),
        random.uniform(-2, 2, count).astype(kind),
        random.integers(-9, 9, count).astype(kind),
        random.choice(np.array([*edges, *(-each for each in edges)], kind), count),
    ]
    return np.where(random.random(count) < 0.5, some[0], random.choice(some[1:], axis=0))


def numbers(*arrays: np.ndarray[Any, Any]) -> Iterator[tuple[float, ...]]:
    """The values at each place, as Python's floats."""
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        lists = [each.astype(float).tolist() for each in arrays]
    return zip(*lists, strict=True)


def every(dtype: str) -> np.ndarray[Any, Any]:
    """All values of a type of 16 bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(NUMPY[dtype])


# --- square roots and division -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_square_roots_are_rounded_correctly(dtype: str, dialect: str, module: Any) -> None:
    x = np.abs(samples(dtype, 60_000, 1))
    x[:8] = -0.0, -1, -np.inf, 0.0, 4, 2, np.nan, -np.finfo(FLOATS[dtype]).tiny
    signature, renderer = f"{dtype}[:], {dtype}[:]", renderer_without(dialect, "sqrt")
    assert "sqrt" not in left(module.roots, signature, renderer)
    found = run(module.roots, signature, [x, 0 * np.ones_like(x)], renderer)
    with np.errstate(invalid="ignore"):
        assert_same(np.sqrt(x), found)  # IEEE's, by the CPU
    for value, root in zip(x[8:400].tolist(), found[8:400].tolist(), strict=True):
        if math.isfinite(value):
            below, above = (Fraction(math.nextafter(root, to)) for to in (-1, math.inf))
            near = Fraction(value)
            if dtype == "f64" and root > 0:  # halfway points enclose it
                assert (
                    ((Fraction(root) + below) / 2) ** 2
                    <= near
                    <= ((Fraction(root) + above) / 2) ** 2
                )


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_are_rounded_correctly(dtype: str, dialect: str, module: Any) -> None:
    x, y = samples(dtype, 60_000, 2), samples(dtype, 60_000, 3)
    signature, renderer = ", ".join([f"{dtype}[:]"] * 3), renderer_without(dialect, "fdiv")
    assert "/" not in left(module.quotients, signature, renderer)
    found = run(module.quotients, signature, [x, y, np.zeros_like(x)], renderer)
    with np.errstate(all="ignore"):
        assert_same(x / y, found)
    for a, b, quotient in zip(x[:2000].tolist(), y[:2000].tolist(), found.tolist(), strict=False):
        if math.isfinite(a) and math.isfinite(b) and a and b:
            assert quotient == nearest(Fraction(a) / Fraction(b), dtype)


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_every_value_of_16_bits_has_its_root_reciprocal_and_negative(
    dtype: str, dialect: str, module: Any
) -> None:
    x = every(dtype)
    renderer = renderer_without(dialect, "sqrt", "fdiv", "recip", "neg", dtypes=SINGLES)
    signature = f"{dtype}[:], {dtype}[:]"
    for name in ("roots", "reciprocals", "negatives"):
        found = run(getattr(module, name), signature, [x, np.zeros_like(x)], renderer)
        for value, result in numbers(x, found):
            expected = exactly(name, value, dtype)
            same = result == expected and math.copysign(1, result) == math.copysign(1, expected)
            assert same or (math.isnan(result) and math.isnan(expected)), (name, value)


def exactly(name: str, x: float, dtype: str) -> float:
    """What a function of one value is, rounded once."""
    if name == "negatives" or math.isnan(x):
        return -x
    if name == "reciprocals":
        if x == 0 or math.isinf(x):
            return math.copysign(math.inf if x == 0 else 0.0, x)
        return nearest(1 / Fraction(x), dtype)
    if x <= 0:
        return x if x == 0 else math.nan
    # A double's root is within half its last place, and has twice the digits (and two).
    return math.inf if math.isinf(x) else nearest(Fraction(math.sqrt(x)), dtype)


def test_targets_that_are_not_exact_multiply_by_a_reciprocal(module: Any) -> None:
    signature = "f32[:], f32[:], f32[:]"
    x, y = np.random.default_rng(4).uniform(1, 2, (2, 1000)).astype(np.float32)
    exact = renderer_without("c", "fdiv")
    assert "recip" not in left(module.quotients, signature, exact)
    loose = replace(exact, exact=False)
    assert left(module.quotients, signature, loose) >= {"*", "recip"}

    def spelled(node: IRNode) -> IRNode | None:
        """C has no reciprocal of its own."""
        if isinstance(node, IRCall) and node.function == "recip":
            from tack.passes.build import constant, operate

            return operate("/", constant(1.0, node), node.args[0])
        return None

    found = run(module.quotients, signature, [x, y, 0 * x], replace(loose, extra_matcher=spelled))
    assert_same(x * (np.float32(1) / y), found)


# --- fused multiply-add --------------------------------------------------------------------------


def sum_of_product(a: float, b: float, c: float, dtype: str) -> float:
    """``a * b + c`` rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        return c if math.isfinite(a) and math.isfinite(b) else a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        negative = math.copysign(1, a) * math.copysign(1, b) < 0
        is_minus = negative and math.copysign(1, c) < 0 and (a == 0 or b == 0 or c == 0)
        return -0.0 if is_minus else 0.0
    return nearest(exact, dtype)


def triples(dtype: str, count: int) -> list[np.ndarray[Any, Any]]:
    """Operands of which many cancel, and others lie at each distance."""
    x, y, z = (samples(dtype, count, seed) for seed in (5, 6, 7))
    kind = FLOATS[dtype]
    with np.errstate(all="ignore"):
        near = (-x * y).astype(kind)
        z[::4] = near[::4]
        z[1::4] = np.nextafter(near[1::4], kind(0))
        z[2::8] = (
            near[2::8] * np.exp2(np.random.default_rng(8).integers(-60, 60, near[2::8].size))
        ).astype(kind)
    return [x, y, z]


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("way", ["f32 in doubles", "f32", "f64"])
def test_fused_operations_are_rounded_once(way: str, dialect: str, module: Any) -> None:
    dtype = way[:3]
    arrays = triples(dtype, 40_000)
    signature = ", ".join([f"{dtype}[:]"] * 4)
    changed = {"dtypes": SINGLES} if way == "f32" else {}
    renderer = renderer_without(dialect, "fma", **changed)
    assert "fma" not in left(module.fused, signature, renderer)
    out = np.zeros_like(arrays[0])
    found = run(module.fused, signature, [*arrays, out], renderer)
    native = run(module.fused, signature, [*arrays, out], renderer_for(BEST, dialect))
    assert_same(native, found)
    rows = zip(*(each[:4000].tolist() for each in (*arrays, found)), strict=True)
    for a, b, c, result in rows:
        expected = sum_of_product(a, b, c, dtype)
        same = result == expected and math.copysign(1, result) == math.copysign(1, expected)
        assert same or (math.isnan(result) and math.isnan(expected)), (a, b, c)


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_fused_operations_need_no_doubles(dtype: str, dialect: str, module: Any) -> None:
    random, values = np.random.default_rng(9), every(dtype)
    x, y, z = (values[random.integers(0, 1 << 16, 30_000)] for _ in range(3))
    with np.errstate(all="ignore"):
        z[::3] = -(x[::3] * y[::3])
    signature = ", ".join([f"{dtype}[:]"] * 4)
    for missing in ((), ("fma",)):
        renderer = renderer_without(dialect, *missing, dtypes=SINGLES)
        found = run(module.fused, signature, [x, y, z, np.zeros_like(x)], renderer)
        for a, b, c, result in numbers(x, y, z, found):
            expected = sum_of_product(a, b, c, dtype)
            same = result == expected and math.copysign(1, result) == math.copysign(1, expected)
            assert same or (math.isnan(result) and math.isnan(expected)), (a, b, c)


def test_metal_has_fused_operations_of_every_type_that_it_has(module: Any) -> None:
    metal = Target("metal", "metal3.1")
    for dtype in ("f16", "bf16", "f32"):
        signature = Signature.parse(", ".join([f"{dtype}[:]"] * 4))
        text = generate(
            Variant(module.fused.definition, signature, metal), renderer_for(metal)
        ).text
        assert "double" not in text


# --- comparisons, negatives, shifts --------------------------------------------------------------


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", [*NUMPY])
def test_comparisons_and_negatives_by_what_is_left(dtype: str, dialect: str, module: Any) -> None:
    if dtype in FLOATS:
        x, y = samples(dtype, 5000, 10), samples(dtype, 5000, 11)
    else:
        kind = NUMPY[dtype]
        raw = np.random.default_rng(12).integers(0, 256, (2, 5000 * kind.itemsize), np.uint8)
        x, y = raw[0].view(kind).copy(), raw[1].view(kind).copy()
    y[::3] = x[::3]
    renderer = renderer_without(dialect, "cmpeq", "cmple", "neg")
    signature = f"{dtype}[:], {dtype}[:], u8[:, :]"
    assert not left(module.compared, signature, renderer) & {"==", "<=", ">", ">="}
    found = run(module.compared, signature, [x, y, np.zeros((6, 5000), np.uint8)], renderer)
    with np.errstate(invalid="ignore"):
        expected = [x == y, x != y, x < y, x <= y, x > y, x >= y]
    np.testing.assert_array_equal(found, np.array(expected, np.uint8))
    signature = f"{dtype}[:], {dtype}[:]"
    negative = run(module.negatives, signature, [x, np.zeros_like(x)], renderer)
    with np.errstate(invalid="ignore"):
        assert_same(-x, negative)


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", [name for name, dtype in DTYPES.items() if dtype.is_integer])
def test_shifts_are_products_and_quotients(dtype: str, dialect: str, module: Any) -> None:
    bits, kind = DTYPES[dtype].bits, NUMPY[dtype]
    if bits <= 16:  # every value by every count
        values = np.arange(1 << bits, dtype=np.uint64).astype(f"u{bits // 8}").view(kind)
        x, n = (each.ravel() for each in np.meshgrid(values, np.arange(bits, dtype=kind)))
    else:
        random = np.random.default_rng(13)
        raw = np.frombuffer(random.bytes(40_000 * bits // 8), kind)
        x, n = raw.copy(), random.integers(0, bits, 40_000).astype(kind)
        x[:4], n[:4] = (np.iinfo(kind).min, np.iinfo(kind).max, 0, 1), bits - 1
    renderer = renderer_without(dialect, "shl", "shr")
    signature = f"{dtype}[:], {dtype}[:], {dtype}[:, :]"
    assert not left(module.shifted, signature, renderer) & {"shl", "shr"}
    found = run(module.shifted, signature, [x, n, np.zeros((4, x.size), kind)], renderer)
    np.testing.assert_array_equal(
        found, np.array([x << n, x >> n, x << kind.type(3), x >> kind.type(3)])
    )


# --- all of them ---------------------------------------------------------------------------------


def test_functions_that_a_target_has_natively_are_called_in_every_mode(module: Any) -> None:
    plain = left(module.function, "f32[:], f32[:]", renderer_for(BEST))
    assert "exp2" not in plain
    named = replace(renderer_for(BEST), supported_ops=EVERYTHING | {"exp2"})
    assert "exp2" in left(module.function, "f32[:], f32[:]", named)
    assert "exp2" in left(module.function, "f16[:], f16[:]", named)
    assert "exp2" in EXACT


MINIMUM = ("fmod", "fma", "sqrt", "fdiv", "cmpeq", "cmple", "neg", "shl", "shr", "wrap")


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("name", ["arithmetic", "conversions", "control"])
def test_kernels_have_their_bits_where_all_of_these_are_missing(
    name: str, dialect: str, tmp_path: Path
) -> None:
    text, pairs_of = CORPUS[name]
    pairs: list[Pair] = list(pairs_of(load_module(text, tmp_path)))
    plain = after(pairs, renderer_for(BEST, "c"))
    lacking = after(pairs, renderer_without(dialect, *MINIMUM))
    for pair, one, other in zip(pairs, plain, lacking, strict=True):
        assert not differences(one, other), pair.signature


def after(pairs: Sequence[Pair], renderer: Renderer) -> list[list[np.ndarray[Any, Any]]]:
    """What the memory of each pair is after a call."""
    sources = [
        generate(Variant(pair.kernel.definition, Signature.parse(pair.signature), BEST), renderer)
        for pair in pairs
    ]
    tool = TOOLS["c" if renderer.suffix == ".c" else "llvm"]
    text = assemble("lacking", list({each.title: each for each in sources}.values()), renderer)
    library = tool.load(tool.compile(text, BEST))
    memories = [pair.memory() for pair in pairs]
    for pair, source, memory in zip(pairs, sources, memories, strict=True):
        run_kernel(pair.kernel, source, library, pair.bind(memory), noalias=False)
    return memories
