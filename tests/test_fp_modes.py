"""``fp="contract"`` fuses, ``fp="fast"`` also regroups and calls native functions; strict never."""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from corpus import CORPUS, COUNT, edges
from exact import EXACT, nearest
from generator import load_module
from gpu_twins import (
    DIALECTS,
    Emulated,
    compile_image,
    compile_nvrtc,
    emulated_disagreements,
)
from harness import differences, levels, run_kernel
from twins import Pair, Twins, disagreements, generated_pairs, toolchains

from tack.aot.elf import read_library
from tack.backends import cpu_cc
from tack.compile import assemble, generate, prepared
from tack.ir.nodes import IRBinOp
from tack.ir.operations import ELEMENTARY
from tack.ir.traversal import walk_ir
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import FP_MODES, Options, Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

BEST, OLD = Target("cpu", levels()[-1]), Target("cpu", levels()[0])
TOOLS = {tool.dialect: tool for tool in toolchains()}

KERNELS = """
import tack

def of(fp):
    @tack.kernel(fp=fp)
    def rest(x, y, out):
        for i in range(out.shape[0]):
            out[i] = x[i] * x[i] - y[i]

    @tack.kernel(fp=fp)
    def forms(x, y, z, out):
        for i in range(x.shape[0]):
            out[0, i] = x[i] * y[i] + z[i]
            out[1, i] = z[i] + x[i] * y[i]
            out[2, i] = x[i] * y[i] - z[i]
            out[3, i] = z[i] - x[i] * y[i]
            out[4, i] = x[i] * y[i] + z[i] * x[i]

    @tack.kernel(fp=fp)
    def total(x, y, out):
        for i in range(out.shape[0]):
            t = x[0] - x[0]
            for j in range(x.shape[0]):
                t += x[j] * y[j]
            out[i] = t

    @tack.kernel(fp=fp)
    def thirds(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i] / 3

    @tack.kernel(fp=fp)
    def extremes(x, y, out):
        for i in range(x.shape[0]):
            out[0, i] = min(x[i], y[i])
            out[1, i] = max(x[i], y[i])

    @tack.kernel(fp=fp)
    def kept(x, y, z, out):
        for i in range(x.shape[0]):
            out[0, i] = x[i] // y[i]
            out[1, i] = x[i] % y[i]
            out[2, i] = tack.fma(x[i], y[i], z[i])
            out[3, i] = tack.i32(x[i])
            out[4, i] = round(x[i])
            out[5, i] = tack.isnan(x[i]) + 2 * tack.isfinite(y[i])
            out[6, i] = tack.sqrt(x[i])

    @tack.kernel(fp=fp)
    def at(x, table, out):
        for i in range(x.shape[0]):
            out[i] = table[tack.i64(x[i] + 0.5) % table.shape[0]]

    return dict(locals())
"""


def kernels(folder: Path, mode: str) -> dict[str, Any]:
    return load_module(KERNELS, folder).of(mode)


def source(kernel: Any, signature: str, target: Target, dialect: str | None = None) -> Source:
    variant = Variant(
        kernel.definition, Signature.parse(signature), target, kernel.definition.options
    )
    return generate(variant, renderer_for(target, dialect))


def run(
    kernel: Any,
    signature: str,
    arrays: Sequence[np.ndarray[Any, Any]],
    dialect: str = "c",
    target: Target = BEST,
    beside: Sequence[Any] = (),
    tool: Any = None,
) -> list[np.ndarray[Any, Any]]:
    """The arrays after a call, compiled in one unit with the kernels ``beside``."""
    tool = tool or TOOLS[dialect]
    sources = [source(each, signature, target, dialect) for each in (kernel, *beside)]
    text = assemble("modes", sources, renderer_for(target, dialect))
    memory = [array.copy() for array in arrays]
    library = tool.load(tool.compile(text, target))
    run_kernel(kernel, sources[0], library, memory, noalias=True)
    return memory


def witness(dtype: type) -> list[np.ndarray[Any, Any]]:
    """Numbers whose squares are not exact, those squares, and room: only a fused rest is not 0."""
    x = np.random.default_rng(1).uniform(1, 2, 100).astype(dtype)
    return [x, x * x, np.zeros_like(x)]


def fused_rests(memory: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """What is exact of ``x * x - y``."""
    x, y, _ = (map(Fraction, each.tolist()) for each in memory)
    return np.array([float(a * a - b) for a, b in zip(x, y, strict=True)], memory[0].dtype)


def names(dtype: type, count: int) -> str:
    return ", ".join([f"f{np.finfo(dtype).bits}[:]"] * count)


def test_a_mode_is_one_of_three() -> None:
    assert FP_MODES == ("strict", "contract", "fast")
    with pytest.raises(ValueError, match=r"fp='fats' is not a .* mode; did you mean 'fast'\?"):
        Options("fats")


def test_modes_have_keys_and_symbols_of_their_own(tmp_path: Path) -> None:
    made = [
        source(kernels(tmp_path, mode)["rest"], "f32[:], f32[:], f32[:]", BEST) for mode in FP_MODES
    ]
    assert len({each.source_key for each in made}) == len(FP_MODES)
    assert len({symbol for each in made for _, symbol in each.launch.entries}) == 2 * len(FP_MODES)


# --- contract ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dialect", TOOLS)
def test_contract_and_fast_fuse_where_the_cpu_does_and_strict_does_not(
    dialect: str, dtype: type, tmp_path: Path
) -> None:
    memory = witness(dtype)
    exact = fused_rests(memory)
    assert exact.all()
    for mode, expected in (("strict", 0 * exact), ("contract", exact), ("fast", exact)):
        kernel = kernels(tmp_path, mode)["rest"]
        (*_, found) = run(kernel, names(dtype, 3), memory, dialect)
        np.testing.assert_array_equal(found, expected, mode)
    (*_, found) = run(kernels(tmp_path, "contract")["rest"], names(dtype, 3), memory, dialect, OLD)
    np.testing.assert_array_equal(found, 0 * exact)  # no fma there, and no call of one


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_contracted_operations_are_the_same_ones_everywhere(dtype: str, tmp_path: Path) -> None:
    kernel = kernels(tmp_path, "contract")["forms"]
    arrays = edges(*((dtype, (COUNT,)),) * 3, (dtype, (5, COUNT)))
    signature = f"{dtype}[:], {dtype}[:], {dtype}[:], {dtype}[:, :]"
    one, other = (run(kernel, signature, arrays(), dialect) for dialect in TOOLS)
    assert not differences(one, other)
    x, y, z, out = one
    for k, index in itertools.product(range(4), range(COUNT)):
        a, b, c = (float(each[index]) for each in (x, y, z))
        if not all(map(math.isfinite, (a, b, c))):
            continue
        product, addend = Fraction(a) * Fraction(b), Fraction(c)
        exact = (product + addend, product + addend, product - addend, addend - product)[k]
        if exact != 0:
            assert out[k, index] == nearest(exact, dtype), (k, a, b, c)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_gpus_fuse_in_contract_and_fast_alone(dialect: str, tmp_path: Path) -> None:
    memory = witness(np.float32)
    exact = fused_rests(memory)
    for mode, expected in (("strict", 0 * exact), ("contract", exact), ("fast", exact)):
        kernel = kernels(tmp_path, mode)["rest"]
        made = source(kernel, names(np.float32, 3), DIALECTS[dialect])
        arrays = [each.copy() for each in memory]
        run_kernel(kernel, made, Emulated([made], tmp_path / mode), arrays, noalias=True)
        np.testing.assert_array_equal(arrays[-1], expected, mode)


def test_ptx_has_fused_operations_in_contract_and_fast_alone(tmp_path: Path) -> None:
    target = Target("cuda", "sm_90")
    for mode in FP_MODES:
        made = source(kernels(tmp_path, mode)["rest"], names(np.float32, 3), target)
        unit, ptx = tmp_path / f"{mode}.cu", tmp_path / f"{mode}.ptx"
        unit.write_text(assemble("modes", [made], renderer_for(target)), encoding="utf-8")
        compile_image(unit, Target("cuda", "compute_90"), ptx)
        text = ptx.read_text(encoding="utf-8")
        assert ("fma.rn.f32" in text) == (mode != "strict")
        assert ("fma.rn.f32" in compile_nvrtc(unit, "compute_90").decode()) == (mode != "strict")


# --- fast ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dialect", TOOLS)
def test_fast_sums_are_near_the_exact_one_and_regrouped(
    dialect: str, dtype: type, tmp_path: Path
) -> None:
    random = np.random.default_rng(2)
    x, y = random.uniform(size=(2, 5000)).astype(dtype)
    exact = math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))
    found = {}
    for mode in FP_MODES:
        memory = run(
            kernels(tmp_path, mode)["total"], names(dtype, 3), [x, y, np.zeros(1, dtype)], dialect
        )
        found[mode] = float(memory[-1][0])
    # Eight partial sums at least, so that errors grow by an eighth of the terms at most.
    assert abs(found["fast"] - exact) <= exact * float(np.finfo(dtype).eps) * len(x) / 8
    assert found["fast"] not in (found["strict"], found["contract"])


def test_fast_divides_by_constants_with_a_product(tmp_path: Path) -> None:
    x = np.random.default_rng(3).uniform(-100, 100, 1000).astype(np.float32)
    for mode in FP_MODES:
        (_, out) = run(kernels(tmp_path, mode)["thirds"], names(np.float32, 2), [x, 0 * x])
        expected = x * np.float32(1 / 3) if mode == "fast" else x / np.float32(3)
        np.testing.assert_array_equal(out, expected, mode)


@pytest.mark.parametrize("dialect", TOOLS)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_fast_keeps_what_its_page_says_it_keeps(dtype: str, dialect: str, tmp_path: Path) -> None:
    arrays = edges(*((dtype, (COUNT,)),) * 3, ("f64", (7, COUNT)))
    signature = f"{dtype}[:], {dtype}[:], {dtype}[:], f64[:, :]"
    strict, fast = (
        run(kernels(tmp_path, mode)["kept"], signature, arrays(), dialect)
        for mode in ("strict", "fast")
    )
    zeros = strict[-1] == 0
    assert ((fast[-1] == 0) == zeros).all()
    fast[-1][zeros] = strict[-1][zeros]  # the sign of a zero is open
    assert not differences(strict, fast)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_f16_and_bf16_are_rounded_after_each_operation_in_every_mode(
    dtype: str, tmp_path: Path
) -> None:
    arrays = edges(*((dtype, (COUNT,)),) * 3, (dtype, (5, COUNT)))
    signature = f"{dtype}[:], {dtype}[:], {dtype}[:], {dtype}[:, :]"
    for dialect in TOOLS:
        first, *others = (
            run(kernels(tmp_path, mode)["forms"], signature, arrays(), dialect) for mode in FP_MODES
        )
        assert not any(differences(first, other) for other in others)


@pytest.mark.parametrize("dialect", TOOLS)
def test_numbers_that_are_not_finite_do_no_harm_in_fast_kernels(
    dialect: str, tmp_path: Path
) -> None:
    made = kernels(tmp_path, "fast")
    x = np.array([np.nan, np.inf, -np.inf, 1e38, -0.0, 2.0], np.float32)
    table = np.arange(4, dtype=np.float32)
    (*_, out) = run(made["at"], "f32[:], f32[:], f32[:]", [x, table, np.full_like(x, 7)], dialect)
    assert set(out.tolist()) <= set(table.tolist())
    (*_, out) = run(
        made["extremes"],
        "f32[:], f32[:], f32[:, :]",
        [x, x[::-1].copy(), np.zeros((2, 6), np.float32)],
        dialect,
    )
    assert out[0, 3] == -np.inf
    assert out[1, 3] == np.float32(1e38)
    forms = run(made["total"], "f32[:], f32[:], f32[:]", [x, x, np.zeros(1, np.float32)], dialect)
    assert np.isnan(forms[-1]).all()


@pytest.mark.parametrize("compiler", ["gcc", "clang", "clang-16"])
def test_a_kernel_stays_strict_beside_fast_ones(compiler: str, tmp_path: Path) -> None:
    path = shutil.which(compiler)
    if path is None:
        pytest.skip(f"{compiler} is not installed")
    tool = cpu_cc._compiler((path,))
    x, y = np.random.default_rng(4).normal(size=(2, 3000)).astype(np.float32)
    memory = [x, y, np.zeros(1, np.float32)]
    strict, *others = (kernels(tmp_path, mode)["total"] for mode in FP_MODES)
    alone = run(strict, names(np.float32, 3), memory)
    beside = run(strict, names(np.float32, 3), memory, beside=others, tool=tool)
    assert not differences(alone, beside)
    fast = run(others[-1], names(np.float32, 3), memory, beside=[strict], tool=tool)
    assert differences(alone, fast)


def test_formulas_are_not_relaxed(tmp_path: Path) -> None:
    """What has no native function keeps every rounding that its formula relies on."""
    text = ELEMENTARY_TEXT.format(mode="fast", name="rsqrt", operands="x[i] + y[i]")
    kernel = load_module(text, tmp_path).k
    variant = Variant(
        kernel.definition,
        Signature.parse("f64[:], f64[:], f64[:]"),
        BEST,
        kernel.definition.options,
    )
    nodes = list(walk_ir(prepared(variant, renderer_for(BEST))))
    relaxed = [node for node in nodes if isinstance(node, IRBinOp) and node.relaxed]
    assert len(relaxed) == 1
    assert "TACK_EXACT(" in generate(variant, renderer_for(BEST)).text


# --- native functions ----------------------------------------------------------------------------

ELEMENTARY_TEXT = """
import tack

@tack.kernel(fp="{mode}")
def k(x, y, out):
    for i in range(x.shape[0]):
        out[i] = tack.{name}({operands})
"""

TOLERANCE = 4
"""Units in the last place that the page allows a native function of a CPU."""


def elementary(name: str, folder: Path, mode: str = "fast") -> Any:
    text = ELEMENTARY_TEXT.format(mode=mode, name=name, operands=operands(name))
    return load_module(text, folder).k


def operands(name: str) -> str:
    return "x[i], y[i]" if ELEMENTARY[name] == 2 else "x[i]"


@pytest.mark.parametrize("name", ELEMENTARY)
def test_fast_functions_are_within_their_tolerance(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    for dtype in (np.float32, np.float64):
        low, high = (-1, 1) if name in ("asin", "acos") else (0.01, 20)
        x, y = random.uniform(low, high, (2, 500)).astype(dtype)
        expected = exactly(name, x, y)
        for dialect in TOOLS:
            (*_, out) = run(elementary(name, tmp_path), names(dtype, 3), [x, y, 0 * x], dialect)
            step = np.spacing(np.maximum(np.abs(out), np.finfo(dtype).tiny))
            off = np.abs(
                [float(e - mpmath.mpf(float(o))) for e, o in zip(expected, out, strict=True)]
            )
            assert (off <= TOLERANCE * step).all(), (dialect, dtype, (off / step).max())


def exactly(name: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> list[Any]:
    pairs = zip(x, y, strict=True)
    with mpmath.workprec(120):
        return [
            EXACT[name](*map(mpmath.mpf, map(float, each[: ELEMENTARY[name]]))) for each in pairs
        ]


def test_functions_are_native_in_fast_kernels_alone(tmp_path: Path) -> None:
    for mode in FP_MODES:
        text = source(elementary("sin", tmp_path, mode), "f32[:], f32[:], f32[:]", BEST).text
        assert ("__builtin_sinf(" in text) == (mode == "fast")
    assert (
        "__builtin_sinf("
        in source(elementary("sin", tmp_path), "f16[:], f16[:], f16[:]", BEST).text
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_fast_functions_of_gpus_compile_and_compute(dialect: str, tmp_path: Path) -> None:
    target = DIALECTS[dialect]
    native = sorted(name for name, dtype in renderer_for(target).native_math if dtype == "f32")
    assert {"exp", "exp2", "log", "log2"} <= set(native)
    made = {name: elementary(name, tmp_path) for name in native}
    sources = {n: source(k, "f32[:], f32[:], f32[:]", target) for n, k in made.items()}
    library = Emulated(list(sources.values()), tmp_path / dialect)
    x, y = np.random.default_rng(6).uniform(0.05, 0.95, (2, 100)).astype(np.float32)
    for name, kernel in made.items():
        memory = [x.copy(), y.copy(), 0 * x]
        run_kernel(kernel, sources[name], library, memory, noalias=True)
        expected = np.array([float(e) for e in exactly(name, x, y)])
        np.testing.assert_allclose(memory[-1], expected, rtol=2e-6, err_msg=name)
    unit = tmp_path / f"unit{renderer_for(target).suffix}"
    unit.write_text(
        assemble("fast", list(sources.values()), renderer_for(target)), encoding="utf-8"
    )
    if dialect in ("cuda", "hip"):
        compile_image(unit, target, tmp_path / "image")


@pytest.mark.parametrize("mode", ["contract", "fast"])
@pytest.mark.parametrize("name", ["arithmetic", "control"])
def test_every_operation_compiles_in_every_mode(name: str, mode: str, tmp_path: Path) -> None:
    text, pairs_of = CORPUS[name]
    module = load_module(text.replace("@tack.kernel", f'@tack.kernel(fp="{mode}")'), tmp_path)
    pairs: list[Pair] = list(pairs_of(module))
    for dialect, tool in TOOLS.items():
        unique = {
            each.title: each
            for each in (source(pair.kernel, pair.signature, BEST, dialect) for pair in pairs)
        }
        assert tool.compile(
            assemble("all", list(unique.values()), renderer_for(BEST, dialect)), BEST
        )


def test_a_library_with_fast_kernels_needs_libm_alone_and_runs_nothing_when_loaded(
    tmp_path: Path,
) -> None:
    """With gcc's ``-ffast-math`` it would make the whole process flush subnormals to zero."""
    made = [elementary("sin", tmp_path), kernels(tmp_path, "fast")["total"]]
    sources = [source(each, "f32[:], f32[:], f32[:]", BEST) for each in made]
    path = tmp_path / "fast.so"
    path.write_bytes(TOOLS["c"].compile(assemble("fast", sources, renderer_for(BEST)), BEST))
    library = read_library(path)
    assert not library.initializers
    assert all(name.startswith(("libm.", "libc.")) for name in library.needed)
    run(made[1], "f32[:], f32[:], f32[:]", [np.ones(9, np.float32)] * 3)
    assert np.float32(1e-40) * np.float32(0.5) != 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_contracted_kernels_have_the_bits_of_c_on_gpus_too(dialect: str, tmp_path: Path) -> None:
    found = emulated_disagreements(contracted(tmp_path), dialect, tmp_path / dialect)
    assert not found, "\n".join(found.values())


def contracted(folder: Path) -> list[Pair]:
    """Every operation of floats, in kernels that may fuse."""
    text, pairs_of = CORPUS["arithmetic"]
    module = load_module(text.replace("@tack.kernel", '@tack.kernel(fp="contract")'), folder)
    return [pair for pair in pairs_of(module) if pair.kernel is module.floats]


def test_generated_kernels_that_are_contracted_have_the_same_bits_in_c_and_in_llvm(
    tmp_path: Path,
) -> None:
    pairs = list(generated_pairs(40, 7, tmp_path, mode="contract"))
    assert any("mulacc" in pair.source("c").text for pair in pairs)
    found = disagreements(pairs, [BEST.arch])
    assert not found, "\n".join(found.values())


def test_generated_fast_kernels_run_to_their_end_in_c_and_in_llvm(tmp_path: Path) -> None:
    pairs = list(generated_pairs(40, 7, tmp_path, mode="fast"))
    twins = Twins(pairs, [BEST.arch])
    assert all(len(list(twins.runs(number))) == 4 for number in range(len(pairs)))


BESIDE = """
import tack

def of(fp):
    @tack.kernel(fp=fp)
    def k(x, y, out):
        for i in range(x.shape[0]):
            out[0, i] = tack.{name}({operands})
            out[1, i] = x[i] * y[i] + x[i]
    return k
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang", "clang-16", "llvm"])
def test_formulas_have_their_bits_beside_what_is_regrouped(compiler: str, tmp_path: Path) -> None:
    if compiler != "llvm" and shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    dialect = "llvm" if compiler == "llvm" else "c"
    tool = TOOLS["llvm"] if compiler == "llvm" else cpu_cc._compiler((compiler,))
    native = {name for name, _ in renderer_for(BEST).native_math}
    for dtype in (np.float32, np.float64):
        x, y = np.random.default_rng(7).uniform(0.01, 1, (2, 300)).astype(dtype)
        bits = np.finfo(dtype).bits
        signature = f"f{bits}[:], f{bits}[:], f{bits}[:, :]"
        strict, fast = (
            [
                load_module(BESIDE.format(name=name, operands=operands(name)), tmp_path).of(mode)
                for name in sorted(ELEMENTARY.keys() - native)
            ]
            for mode in ("strict", "fast")
        )
        both = [*strict, *fast]
        sources = [source(each, signature, BEST, dialect) for each in both]
        text = assemble("beside", sources, renderer_for(BEST, dialect))
        library = tool.load(tool.compile(text, BEST))
        results = []
        for kernel, made in zip(both, sources, strict=True):
            memory = [x.copy(), y.copy(), np.zeros((2, x.size), dtype)]
            run_kernel(kernel, made, library, memory, noalias=True)
            results.append(memory[-1][0])
        half = len(strict)
        for kernel, one, other in zip(strict, results[:half], results[half:], strict=True):
            assert not differences([one], [other]), kernel
