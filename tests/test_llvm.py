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
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import Program, collect, load_module
from generator.program import Buffer, numpy_dtype
from generator.reduce import reduced
from harness import levels, run_kernel
from twins import Pair, disagreements, toolchains

from tack import _core
from tack.compile import assemble, generate
from tack.errors import CompileError
from tack.model.dtypes import DTYPES
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

# Longer than four vectors of 64 bytes, and not a multiple of any.
COUNT = 259

INTEGERS = [name for name, dtype in DTYPES.items() if dtype.is_integer]
FLOATS = [name for name, dtype in DTYPES.items() if dtype.is_float]


def edges(*shapes: tuple[str, tuple[int, ...]]) -> Callable[[], list[np.ndarray[Any, Any]]]:
    """Arrays with values at the edges of their types: NaN, infinities, subnormals, min-int."""

    def fill() -> list[np.ndarray[Any, Any]]:
        return [
            Buffer(dtype, int(np.prod(shape)), seed).fill().reshape(shape)
            for seed, (dtype, shape) in enumerate(shapes)
        ]

    return fill


# --- every operation at every type ---------------------------------------------------------------

ARITHMETIC = """
import tack

@tack.kernel
def integers(x, y, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        out[0, i] = a + b
        out[1, i] = a - b
        out[2, i] = a * b
        out[3, i] = a // b
        out[4, i] = a % b
        out[5, i] = a // 7
        out[6, i] = a % 7
        out[7, i] = a << b
        out[8, i] = a >> b
        out[9, i] = a & b
        out[10, i] = a | b
        out[11, i] = a ^ b
        out[12, i] = ~a
        out[13, i] = -a
        out[14, i] = abs(a)
        out[15, i] = min(a, b)
        out[16, i] = max(a, b)
        out[17, i] = a ** 5
        out[18, i] = a ** (b & 15)
        out[19, i] = a // b if a > b else b % a
        out[20, i] = (a < b) + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8
        out[21, i] = (a > b and b != 0) or not (a >= b)
        out[22, i] = (a < b) & (b < 100) | (a > 50) ^ (b > 3)

@tack.kernel
def quotients(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] / y[i]

@tack.kernel
def floats(x, y, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        out[0, i] = a + b
        out[1, i] = a - b
        out[2, i] = a * b
        out[3, i] = a / b
        out[4, i] = a // b
        out[5, i] = a % b
        out[6, i] = -a
        out[7, i] = abs(a)
        out[8, i] = min(a, b)
        out[9, i] = max(a, b)
        out[10, i] = tack.floor(a)
        out[11, i] = tack.ceil(a)
        out[12, i] = tack.trunc(a)
        out[13, i] = tack.sqrt(a)
        out[14, i] = tack.fma(a, b, 0.1)
        out[15, i] = a * b + a
        out[16, i] = (a < b) + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8
        out[17, i] = a > b and not a >= b or a != a
        out[18, i] = 1 / a if a else b
        out[19, i] = (a + b) - (a - b) * 0.5 / 3.0
"""

CASTS = "\n".join(
    f"        to_{name}[i] = tack.{dtype.__name__}(value)" for name, dtype in DTYPES.items()
)
CONVERSION = f"""
import tack

@tack.kernel
def convert(x, {", ".join(f"to_{name}" for name in DTYPES)}):
    for i in range(x.shape[0]):
        value = x[i]
{CASTS}
"""


def arithmetic(module: ModuleType) -> Iterator[Pair]:
    for dtype in INTEGERS:
        arrays = ((dtype, (COUNT,)), (dtype, (COUNT,)))
        yield Pair(
            module.integers,
            f"{dtype}[:], {dtype}[:], {dtype}[:, :]",
            edges(*arrays, (dtype, (23, COUNT))),
        )
        yield Pair(
            module.quotients, f"{dtype}[:], {dtype}[:], f32[:]", edges(*arrays, ("f32", (COUNT,)))
        )
    for dtype in FLOATS:
        arrays = ((dtype, (COUNT,)), (dtype, (COUNT,)), (dtype, (20, COUNT)))
        yield Pair(module.floats, f"{dtype}[:], {dtype}[:], {dtype}[:, :]", edges(*arrays))


def conversions(module: ModuleType) -> Iterator[Pair]:
    targets = [(name, (COUNT,)) for name in DTYPES]
    for source in DTYPES:
        signature = ", ".join(f"{name}[:]" for name in (source, *DTYPES))
        yield Pair(module.convert, signature, edges((source, (COUNT,)), *targets))


# --- control flow --------------------------------------------------------------------------------

CONTROL = '''
import tack

LIMIT = tack.constant(40, tack.i64)

@tack.func
def collatz(n):
    """How many steps n is away from 1."""
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
        if steps == LIMIT:
            break
    return steps

@tack.func
def sign(value):
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0

@tack.kernel
def loops(x, out):
    for i in range(x.shape[0]):
        total = 0
        for j in range(i % 7):
            if j == 3:
                continue
            for k in range(10, j, -2):
                if k * j > x[i]:
                    break
                total += k
        last = -1
        for last in range(3, x.shape[0], 5):
            if x[last] > 100:
                break
        out[i] = total * 1000 + last + collatz(abs(x[i]) % 1000)

@tack.kernel
def leaving(x, out):
    for i in range(x.shape[0]):
        if x[i] > 50:
            continue
        while True:
            if x[i] < 0:
                out[i] = sign(x[i])
                break
            if x[i] == 0:
                out[i] = 7
            elif x[i] < 5:
                out[i] = 8
            else:
                out[i] = x[i] - 1
            break

@tack.kernel
def skipping(x, out):
    for i in range(x.shape[0]):
        left = x[i] % 20
        total = 0
        while left > 0:
            left -= 1
            if left % 3 == 0:
                continue
            total += left
        out[i] = total

@tack.kernel
def changing(x, step, out):
    for i in range(x.shape[0]):
        end = i % 5
        seen = 0
        for j in range(0, end + 3, step):
            end += 10
            seen = seen * 3 + j
            j = 100
        for j in range(out.shape[0]):
            out[i] = seen
            if j >= 1:
                break

@tack.kernel
def lazily(x, index, out):
    for i in range(out.shape[0]):
        at = index[i]
        inside = 0 <= at and at < x.shape[0] and x[at] > 0
        out[i] = x[at] if inside else -1
        if at < 0 or at >= x.shape[0] or x[at] == 0:
            out[i] -= 1

@tack.kernel
def weak(n, flag: tack.bool_, a: tack.u8, out):
    for i in range(out.shape[0]):
        value = 1
        if flag:
            value = n % 5
        other = flag and i > 2
        out[i] = value + a + (other or not flag)

@tack.kernel
def cube(x, out):
    for i, j, k in tack.ndrange(out.shape[0], out.shape[1], out.shape[2]):
        if (i + j + k) % 3 == 2:
            continue
        out[i, j, k] = x[k, j] * 10 + i

@tack.kernel
def plane(x, out):
    for i, j in tack.ndrange(out.shape[0] - 2, out.shape[1] - 2):
        out[i + 1, j + 1] = x[i, j + 1] + x[i + 2, j + 1] - x[i + 1, j] * x[i + 1, j + 2]

@tack.kernel
def sums(x, out):
    for i in range(out.shape[0]):
        out[i] = 0
        for j in range(x.shape[1]):
            out[i] += x[i, j]

@tack.kernel
def through(x, y, out):
    """Where out is x, what the second line adds is what the first one stored."""
    for i in range(out.shape[0]):
        out[i] = y[i] * 2
        out[i] += tack.i32(x[i])

@tack.kernel
def unordered(alpha, out):
    """A remainder by NaN, which LLVM once took for impossible (where x is 0, of x / x)."""
    for i in range(out.shape[0]):
        if alpha:
            out[i] = 1
        elif alpha % (alpha / alpha):
            out[i] = 2
        else:
            out[i] = 3

@tack.kernel
def in_place(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * x[i]

@tack.kernel
def äther(λ, int, args):
    for i in range(int.shape[0]):
        begin = λ * 2
        int[i] = begin + args
'''


def control(module: ModuleType) -> Iterator[Pair]:
    small = ("i64", (COUNT,))
    yield Pair(module.loops, "i64[:], i64[:]", edges(small, small))
    yield Pair(module.leaving, "i64[:], i64[:]", edges(small, small))
    yield Pair(module.skipping, "i64[:], i64[:]", edges(small, small))
    for step in (1, 3, -1, 0):
        yield Pair(
            module.changing,
            "i64[:], i64, i64[:]",
            edges(small, small),
            lambda memory, step=step: [memory[0], step, memory[1]],
        )
    yield Pair(
        module.lazily,
        "f64[:], i64[:], f64[:]",
        edges(("f64", (9,)), ("i64", (64,)), ("f64", (64,))),
    )
    for flag in (False, True):
        yield Pair(
            module.weak,
            "i64, bool, u8, i16[:]",
            edges(("i16", (9,))),
            lambda memory, flag=flag: [12, flag, 250, memory[0]],
        )
    yield Pair(module.cube, "i32[:, :], i32[:, :, :]", edges(("i32", (40, 7)), ("i32", (5, 7, 40))))
    for dtype in ("f32", "f64", "u8"):
        plane = (dtype, (17, 83))
        yield Pair(module.plane, f"{dtype}[:, :], {dtype}[:, :]", edges(plane, plane))
    for pair in (("f32", "f32"), ("f32", "f64"), ("i8", "i64"), ("u16", "u16")):
        arrays = (pair[0], (5, 300)), (pair[1], (5,))
        yield Pair(module.sums, f"{pair[0]}[:, :], {pair[1]}[:]", edges(*arrays))
    for alpha in (0.0, -0.0, 1.5, float("nan")):
        yield Pair(
            module.unordered,
            "f32, i64[:]",
            edges(small),
            lambda memory, alpha=alpha: [alpha, memory[0]],
        )
    for dtype in ("f32", "i32"):
        yield Pair(module.in_place, f"{dtype}[:]", edges((dtype, (COUNT,))))
    yield Pair(
        module.äther,
        "i64, i64[:], i64",
        edges(("i64", (9,))),
        lambda memory: [3, memory[0], 1],
    )


def overlapping(module: ModuleType) -> Iterator[Pair]:
    """One array for two parameters, under one type and under another."""
    arrays = edges(("i32", (COUNT,)), ("i32", (COUNT,)))
    yield Pair(
        module.through, "i32[:], i32[:], i32[:]", arrays, lambda memory: [*memory, memory[0]]
    )
    yield Pair(
        module.through,
        "f32[:], i32[:], i32[:]",
        arrays,
        lambda memory: [memory[0].view(np.float32), memory[1], memory[0]],
    )
    yield Pair(
        module.sums,
        "i16[:, :], i16[:]",
        edges(("i16", (1, COUNT))),
        lambda memory: [memory[0], memory[0][0, :1]],
    )


@pytest.mark.parametrize(
    ("text", "pairs_of"),
    [
        (ARITHMETIC, arithmetic),
        (CONVERSION, conversions),
        (CONTROL, control),
        (CONTROL, overlapping),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_c_and_llvm_give_the_same_bits(
    text: str, pairs_of: Callable[[ModuleType], Iterator[Pair]], tmp_path: Path
) -> None:
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
        name = entry["name"].partition(":")[2]
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
