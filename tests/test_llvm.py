"""LLVM IR and C mean the same bits, at every CPU level, for every construct of the language.

`HYPOTHESIS_PROFILE=deep` compares many more generated kernels, from a seed of its own each time (or
from `TACK_TEST_SEED`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import random
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from corpus import ARITHMETIC, CONTROL, CORPUS, edges
from generator import Program, collect, load_module
from generator.program import numpy_dtype
from generator.reduce import reduced
from harness import levels, run_kernel
from twins import Pair, disagreements, toolchains

from tack import _core
from tack.compile import assemble, generate
from tack.errors import CompileError
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
PROGRAMS = 2000 if DEEP else 60
SEED = int(os.environ.get("TACK_TEST_SEED", random.randrange(2**32) if DEEP else 1))
BATCH = 20

ALL_LEVELS = tuple(_core.cpu_levels())
KERNELS = Path(__file__).parents[1] / "examples" / "imagekit" / "src" / "imagekit" / "kernels.py"


@pytest.mark.parametrize("name", CORPUS)
def test_c_and_llvm_give_the_same_bits(name: str, tmp_path: Path) -> None:
    text, pairs_of = CORPUS[name]
    pairs = list(pairs_of(load_module(text, tmp_path)))
    found = disagreements(pairs, ALL_LEVELS)
    assert not found, "\n".join(found.values())


# --- the example, and generated kernels ----------------------------------------------------------

IMAGE, PIXELS = (19, 36), (700,)

EXAMPLE: dict[str, list[Any]] = {
    "blur_rows": [IMAGE, (7,), 3, IMAGE],
    "blur_columns": [IMAGE, (7,), IMAGE],
    "quantize": [PIXELS, PIXELS],
    "sobel": [IMAGE, IMAGE],
    "sobel_u8": [IMAGE, IMAGE],
    "unsharp": [PIXELS, PIXELS, 0.7, PIXELS],
    "unsharp_u8": [PIXELS, PIXELS, 0.7, PIXELS],
    "luminance": [(300, 3), (300,)],
    "luminance_u8": [(300, 3), (300,)],
    "tone": [PIXELS, PIXELS],
    "tone_u8": [PIXELS, PIXELS],
    "row_sums": [IMAGE, (19,)],
}
"""Kernel -> its arguments: an array's shape, or a number."""


def example_pairs(module: ModuleType, manifest: dict[str, Any]) -> Iterator[Pair]:
    for entry in manifest["kernel"]:
        home, _, name = entry["name"].partition(":")
        if home != "imagekit.kernels":
            continue
        arguments = EXAMPLE[name]
        for text in entry["signatures"]:
            for dtype in entry.get("where", {}).get("T", [""]):
                signature = re.sub(r"\bT\b", dtype, text)
                specs = Signature.parse(signature)
                shapes = [
                    (spec.dtype.name, value)
                    for spec, value in zip(specs, arguments, strict=True)
                    if isinstance(value, tuple)
                ]

                def bind(memory: list[Any], arguments: list[Any] = arguments) -> list[Any]:
                    arrays = iter(memory)
                    return [next(arrays) if isinstance(v, tuple) else v for v in arguments]

                yield Pair(getattr(module, name), signature, edges(*shapes), bind)


def test_every_kernel_of_the_example_runs_both_ways() -> None:
    import tomllib

    spec = importlib.util.spec_from_file_location("imagekit_kernels", KERNELS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        text = (KERNELS.parents[2] / "tack-aot.toml").read_text(encoding="utf-8")
        pairs = list(example_pairs(module, tomllib.loads(text)))
        assert len(pairs) >= len(EXAMPLE)
        found = disagreements(pairs, ALL_LEVELS)
    finally:
        del sys.modules[spec.name]
    assert not found, "\n".join(found.values())


def pair_of(program: Program, folder: Path) -> Pair | None:
    """A generated program as a pair; None if tack or the oracle refuses it."""
    kernel = load_module(program.source, folder).kernel
    try:
        signature = oracle.signature(kernel, program.bind(program.memory(), kernel))
        pair = Pair(kernel, signature, program.memory, partial(program.bind, kernel=kernel))
        pair.source("llvm")
    except (CompileError, oracle.OracleRefused):
        return None
    return pair


def test_generated_kernels_have_the_same_bits(tmp_path: Path) -> None:
    programs = collect(PROGRAMS, SEED)
    compared = 0
    for start in range(0, len(programs), BATCH):
        batch = programs[start : start + BATCH]
        pairs = [pair for each in batch if (pair := pair_of(each, tmp_path)) is not None]
        compared += len(pairs)
        for number, words in disagreements(pairs, levels()).items():
            wrong = next(each for each in batch if each.memory == pairs[number].memory)
            pytest.fail(f"{words}\nof\n{smallest(wrong, tmp_path)}")
    assert compared > 0.9 * PROGRAMS


def smallest(program: Program, folder: Path) -> Program:
    """A smaller program on which C and LLVM disagree as well."""

    def fails(candidate: Program) -> bool:
        try:
            pair = pair_of(candidate, folder)
            return pair is not None and bool(disagreements([pair], levels()[-1:]))
        except Exception:  # noqa: BLE001  # whatever a program without its meaning may raise
            return False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about what candidates say
        return reduced(program, fails)


# --- spans of the parallel loop ------------------------------------------------------------------

SPANS = """
import tack

@tack.kernel
def line(out):
    for i in range(out.shape[0]):
        out[i] += i + 1

@tack.kernel
def plane(out):
    for i, j in tack.ndrange(out.shape[0], out.shape[1]):
        out[i, j] += i * 10 + j + 1

@tack.kernel
def cube(out):
    for i, j, k in tack.ndrange(out.shape[0], out.shape[1], out.shape[2]):
        out[i, j, k] += i * 100 + j * 10 + k + 1
"""

SHAPES = {"line": (7,), "plane": (3, 4), "cube": (2, 3, 4)}
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@pytest.mark.parametrize("name", SHAPES)
def test_any_span_runs_its_iterations_once(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    kernel = getattr(load_module(SPANS, tmp_path), name)
    signature = f"i64[{', '.join(':' * len(shape))}]"
    target = Target("cpu", ALL_LEVELS[-1])
    renderer, (_, llvm) = renderer_for(target, "llvm"), toolchains()
    source = generate(Variant(kernel.definition, Signature.parse(signature), target), renderer)
    library = llvm.load(llvm.compile(assemble("spans", [source], renderer), target))
    entry = ENTRY(library.symbol(dict(source.launch.entries)["general"]))
    whole = np.zeros(shape, np.int64)
    kernel.py_func(whole)
    total = int(np.prod(shape))
    for begin in range(total + 1):
        for end in range(total + 1):
            out = np.zeros(shape, np.int64)
            slots = [_slot(slot, out) for slot in source.launch.slots]
            entry(None, (ctypes.c_int64 * len(slots))(*slots), begin, end)
            expected = np.zeros(total, np.int64)
            expected[begin:end] = whole.reshape(-1)[begin:end]
            assert out.reshape(-1).tolist() == expected.tolist(), (begin, end)


def _slot(slot: Sequence[Any], out: np.ndarray[Any, Any]) -> int:
    if slot[0] == "pointer":
        return int(out.ctypes.data)
    return int(out.shape[slot[-1]])


# --- the text ------------------------------------------------------------------------------------


@cache
def text_of(kernel: Any, signature: str) -> str:
    target = Target("cpu", ALL_LEVELS[0])
    renderer = renderer_for(target, "llvm")
    source = generate(Variant(kernel.definition, Signature.parse(signature), target), renderer)
    return assemble("unit", [source, source], renderer)


def test_no_instruction_allows_other_results(tmp_path: Path) -> None:
    module = load_module(ARITHMETIC, tmp_path)
    text = text_of(module.floats, "f32[:], f32[:], f32[:, :]")
    flags = "fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|nuw|exact"
    assert re.search(rf"\b({flags})\b", text) is None
    for line in text.splitlines():
        assert "nsw" not in line or re.search(r'add nsw i64 %"i", 1$', line), line


def test_a_unit_declares_once_what_its_kernels_call(tmp_path: Path) -> None:
    module = load_module(ARITHMETIC, tmp_path)
    text = text_of(module.floats, "f64[:], f64[:], f64[:, :]")
    assert text.count('declare double @"llvm.sqrt.f64"(double)') == 1
    assert text.count('declare double @"llvm.fma.f64"(double, double, double)') == 1
    assert "f32" not in "".join(line for line in text.splitlines() if line.startswith("declare"))
    plain = text_of(module.quotients, "i32[:], i32[:], f32[:]")
    assert "declare" not in plain


def test_pointers_promise_no_aliases_for_the_noalias_entry_alone(tmp_path: Path) -> None:
    text = text_of(load_module(CONTROL, tmp_path).plane, "f32[:, :], f32[:, :]")
    heads = [
        line for line in text.splitlines() if line.startswith("define") and " noalias " in line
    ]
    assert heads
    assert all("_disjoint" in line and line.count("ptr noalias") == 2 for line in heads)


def test_a_dialect_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cpu:x86-64 is not rendered as 'lvm'; did you mean"):
        renderer_for(Target("cpu", "x86-64"), "lvm")
    assert renderer_for(Target("cpu", "x86-64")).suffix == ".c"
    assert renderer_for(Target("cpu", "x86-64"), "llvm").suffix == ".ll"


def test_the_launcher_runs_what_llvm_compiled(tmp_path: Path) -> None:
    kernel = load_module(CONTROL, tmp_path).cube
    pair = Pair(kernel, "i32[:, :], i32[:, :, :]", list)
    _, llvm = toolchains()
    target = Target("cpu", ALL_LEVELS[-1])
    source = pair.source("llvm")
    text = assemble("cube", [source], renderer_for(target, "llvm"))
    x = np.arange(280, dtype=np.int32).reshape(40, 7)
    out, expected = np.zeros((5, 7, 40), np.int32), np.zeros((5, 7, 40), np.int32)
    kernel.py_func(x, expected)
    run_kernel(kernel, source, llvm.load(llvm.compile(text, target)), [x, out], noalias=True)
    assert np.array_equal(out, expected)
    assert numpy_dtype("i32") == out.dtype
