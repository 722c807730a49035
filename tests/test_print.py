"""``print`` in a kernel writes what Python would, a print at a time."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from generator import load_module
from gpu_twins import DIALECTS, Emulated, compile_hipcc, compile_image, compile_nvrtc
from harness import levels, run_kernel
from twins import toolchains

from tack import _core
from tack.compile import assemble, generate
from tack.errors import CompileError, TargetWarning
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

TEXT = r"""
import tack

@tack.func
def told(value):
    print("told", value)
    return value + 1

@tack.kernel
def everything(b, i, u, small, f, d, h, n: tack.i16, a: tack.f32):
    for k in range(b.shape[0]):
        print(b[k], i[k], u[k], small[k], n)
        print(f[k], d[k], h[k], a, sep="; ")

@tack.kernel
def texts(x):
    for k in range(x.shape[0]):
        print()
        print("100 %d of", '"x"', "\\", "ä\t€", k, end="|\n")
        print(f"{k}: {x[k]=}, {x[k] * 2!r}%", "and" " " "more", sep="")
        print("no", "end", end="")
        print("", end="")
        print(1, -2.5, True, sep=None, end=None)
        print("??=", k)

@tack.kernel
def ordered(x):
    for k in range(x.shape[0]):
        print(x[k], told(x[k]), tack.atomic_add(x, k, 10), x[k])
        if x[k] > 12:
            print("large")
            continue
        print("small")

@tack.kernel
def lines(x, name):
    for k in range(x.shape[0]):
        print("name", name, "number", k, "of", x.shape[0], "is", x[k])
"""


class Numbers(list[int]):
    """An array of Python's numbers, whose ``{x=}`` is not that of NumPy."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


def show(value: Any) -> str:
    """A number as a kernel prints it."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(value)
    if math.isnan(value):
        return "nan"
    digits = 17 if isinstance(value, np.float64) else 9
    text = f"{value:.{digits}g}"
    return f"{text}.0" if set(text) <= set("-0123456789") else text


CPU = Target("cpu", levels()[-1])

Run = Callable[..., str]


def source_for(kernel: Any, signature: str, target: Target, dialect: str | None = None) -> Source:
    variant = Variant(kernel.definition, Signature.parse(signature), target)
    return generate(variant, renderer_for(target, dialect))


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    return load_module(TEXT, tmp_path)


@pytest.fixture(params=["c", "llvm", "cuda", "hip"])
def run(request: pytest.FixtureRequest, tmp_path: Path, capfd: Any) -> Run:
    """Runs a kernel as one writer has it, and gives what it printed."""

    def call(kernel: Any, signature: str, *arguments: Any) -> str:
        if request.param in DIALECTS:
            source = source_for(kernel, signature, DIALECTS[request.param])
            library: Any = Emulated([source], tmp_path / "emulated")
        else:
            source = source_for(kernel, signature, CPU, request.param)
            tool = next(each for each in toolchains() if each.dialect == request.param)
            text = assemble("test", [source], renderer_for(CPU, request.param))
            library = tool.load(tool.compile(text, CPU))
        assert source.launch.prints
        capfd.readouterr()
        run_kernel(kernel, source, library, arguments, noalias=False)
        return str(capfd.readouterr().out)

    return call


EDGES = [0.0, -0.0, 1.0, -2.5, 0.1, 1e-30, 3e38, 12345678.0, 2.0**40, math.inf, -math.inf, math.nan]


def test_numbers_are_printed_as_python_has_them(run: Run, module: ModuleType) -> None:
    count = len(EDGES)
    with np.errstate(all="ignore"):
        f = np.array(EDGES, np.float32)
        f[-1] = -np.float32(math.nan)
        d = np.array(EDGES, np.float64) * 1.1
        h = np.array(EDGES, np.float64).astype(np.float16)
    b = np.arange(count) % 2 == 0
    i = np.array([-(2**63), 2**63 - 1, *range(count - 2)], np.int64)
    u = np.array([2**64 - 1, *range(count - 1)], np.uint64)
    small = np.arange(-3, count - 3).astype(np.int8)
    printed = run(
        module.everything,
        "bool[:], i64[:], u64[:], i8[:], f32[:], f64[:], f16[:], i16, f32",
        *(b, i, u, small, f, d, h, -7, 0.5),
    )
    expected = [
        line
        for k in range(count)
        for line in (
            " ".join(map(show, (b[k], i[k], u[k], small[k], -7))),
            "; ".join(map(show, (f[k], d[k], h[k], 0.5))),
        )
    ]
    # Threads of a GPU print in an order of their own, each its two lines one after the other.
    assert sorted(printed.splitlines()) == sorted(expected)


def test_floats_are_printed_so_that_they_read_back(run: Run, module: ModuleType) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, 500, np.uint64)
    d = np.abs(bits.view(np.float64))
    d = d[np.isfinite(d)]
    f = rng.integers(0, 2**31 - 2**23, d.size, np.uint32).view(np.float32)
    zeros = [np.zeros(d.size, t) for t in (np.bool_, np.int64, np.uint64, np.int8)]
    printed = run(
        module.everything,
        "bool[:], i64[:], u64[:], i8[:], f32[:], f64[:], f16[:], i16, f32",
        *(*zeros, f, d, np.zeros(d.size, np.float16), 0, 0.0),
    )
    lines = {tuple(line.split("; ")[:2]) for line in printed.splitlines() if ";" in line}
    assert {(float(np.float32(one)), float(two)) for one, two in lines} == {
        (float(one), float(two)) for one, two in zip(f, d, strict=True)
    }


def test_texts_are_printed_as_they_are(run: Run, module: ModuleType) -> None:
    printed = run(module.texts, "i32[:]", np.array([5], np.int32))
    assert printed == (
        '\n100 %d of "x" \\ ä\t€ 0|\n0: x[k]=5, 10%and more\nno end1 -2.5 True\n??= 0\n'
    )


def test_plain_python_prints_the_same(run: Run, module: ModuleType, capfd: Any) -> None:
    printed = run(module.texts, "i32[:]", np.array([5], np.int32))
    module.texts.py_func(Numbers([5]))
    sys.stdout.flush()
    assert capfd.readouterr().out == printed


def test_values_are_read_in_order(run: Run, module: ModuleType) -> None:
    printed = run(module.ordered, "i32[:]", np.array([1, 5], np.int32))
    first = "told 1\n1 2 1 11\nsmall\n"
    second = "told 5\n5 6 5 15\nlarge\n"
    # (Emulated threads run one after the other.)
    assert printed in (first + second, second + first)


def test_lines_of_threads_are_whole(module: ModuleType, capfd: Any) -> None:
    signature, count = "i64[:], i64", 400
    source = source_for(module.lines, signature, CPU, "c")
    tool, _ = toolchains()
    library = tool.load(tool.compile(assemble("t", [source], renderer_for(CPU, "c")), CPU))
    x = np.arange(count)
    record = _core.Launchable(
        params=[("array", "i64", 1, (-1,), "contiguous"), ("scalar", "i64", False)],
        slots=source.launch.slots,
        host=source.launch.host,
        written=(),
        general=library.symbol(dict(source.launch.entries)["general"]),
        noalias=0,
        label="lines",
        keepalive=library,
        prints=True,
    )
    capfd.readouterr()
    _core.install(module.lines, record)
    threads = [threading.Thread(target=module.lines, args=(x, name)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _core.uninstall(module.lines)
    printed = capfd.readouterr().out.splitlines()
    assert sorted(printed) == sorted(
        f"name {name} number {k} of {count} is {k}" for name in range(4) for k in range(count)
    )


PROGRAM = """
import numpy as np
import tack

@tack.kernel
def told(x):
    for i in range(x.shape[0]):
        print("kernel", i)

for round in range(3):
    print("python", round)
    told(np.zeros(2, np.float32))
print("end")
"""


def test_a_kernel_and_python_print_in_one_order(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TACK_JIT": "allow", "TACK_CACHE_DIR": str(tmp_path / "cache")},
    )
    each = "python {}\nkernel 0\nkernel 1\n"
    assert done.stdout == "".join(each.format(n) for n in range(3)) + "end\n"


def kernel_with(statement: str, folder: Path, before: str = "pass") -> Any:
    """A kernel with a statement in its loop, and one before it."""
    lines = [
        "def f(x):",
        f"    {before}",
        "    for i in range(x.shape[0]):",
        f"        {statement}",
    ]
    return load_module("\n".join(["import tack", "", "@tack.kernel", *lines, ""]), folder).f


def test_a_kernel_without_a_print_is_as_it_was(tmp_path: Path) -> None:
    source = source_for(kernel_with("x[i] = 1", tmp_path), "f32[:]", CPU)
    assert not source.launch.prints
    assert "printf" not in assemble("t", [source], renderer_for(CPU))


# Targets.

EVERYTHING = "bool[:], i64[:], u64[:], i8[:], f32[:], f64[:], f16[:], i16, f32"


def test_hipcc_takes_prints(module: ModuleType, tmp_path: Path) -> None:
    target = Target("hip", "gfx90a")
    source = source_for(module.everything, EVERYTHING, target)
    unit = tmp_path / "unit.hip"
    unit.write_text(assemble("t", [source], renderer_for(target)), encoding="utf-8")
    compile_hipcc(unit, target.arch, tmp_path / "image")


@pytest.mark.parametrize("name", ["everything", "texts", "lines"])
def test_compilers_take_prints(name: str, module: ModuleType, tmp_path: Path) -> None:
    signature = {
        "everything": EVERYTHING,
        "texts": "i32[:]",
        "lines": "i64[:], i64",
    }[name]
    for dialect in ("cuda", "hip"):
        target = DIALECTS[dialect]
        source = source_for(getattr(module, name), signature, target)
        unit = tmp_path / f"unit{renderer_for(target).suffix}"
        unit.write_text(assemble("t", [source], renderer_for(target)), encoding="utf-8")
        compile_image(unit, target, tmp_path / "image")
        if dialect == "cuda":
            compile_nvrtc(unit, target.arch)


def test_metal_leaves_prints_out_with_one_warning(module: ModuleType) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        source = source_for(module.texts, "i32[:]", DIALECTS["metal"])
    assert [each.category for each in found] == [TargetWarning]
    assert ".py:18:9: the target has no print" in str(found[0].message)
    assert "printf" not in source.text
    assert not source.launch.prints


def test_a_print_before_the_loop_is_refused(tmp_path: Path) -> None:
    kernel = kernel_with("x[i] = 1", tmp_path, before='print("a")')
    with pytest.raises(CompileError, match="before the parallel loop only names can be set"):
        source_for(kernel, "f32[:]", CPU)
