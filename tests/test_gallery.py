"""The programs of examples/gallery: the same bits however compiled, and NumPy's numbers."""

from __future__ import annotations

import importlib
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from harness import differences, levels, needs_level, run_kernel
from projects import build_wheel, made_once, only
from twins import Pair, Twins

import tack
from tack import _core
from tack.aot.report import inspect

pytestmark = [
    needs_level("x86-64-v2"),
    pytest.mark.usefixtures("no_jit"),
]

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
REALS = (np.float32, np.float64)


def build(root: Path) -> None:
    ignored = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(GALLERY, root / "gallery", ignore=ignored)
    done = build_wheel(root / "gallery", root / "out")
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(only(root / "out")) as wheel:
        wheel.extractall(root / "site")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The package, built by its own build and unpacked."""
    return made_once(tmp_path_factory, "gallery", build) / "site"


@pytest.fixture(scope="module")
def cases(site):
    """The module with a call of every kernel, which imports the package that was built."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(GALLERY)
        patch.syspath_prepend(site)
        module = importlib.import_module("cases")
        assert module.gallery.__file__.startswith(str(site))
        yield module
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"gallery", "cases", "peers"}:
            del sys.modules[name]


def every(cases, sizes):
    return [case for real in REALS for case in cases.cases(sizes, real)]


def chosen(case):
    """The prebuilt variant that answers a call."""
    candidate = tack.explain(case.kernel, *case.arguments).chosen
    assert candidate is not None, case.kernel.__name__
    return candidate


def pair_of(case):
    def bind(memory):
        arrays = iter(memory)
        return [next(arrays) if isinstance(a, np.ndarray) else a for a in case.arguments]

    return Pair(
        case.kernel,
        str(chosen(case).signature),
        lambda: [a for a in case.fresh() if isinstance(a, np.ndarray)],
        bind,
    )


def test_every_row_of_the_manifest_answers_a_case(cases, site):
    listed = {
        (kernel.name, str(variant.signature))
        for kernel in inspect(site / "gallery")[0].bundle.kernels
        for variant in kernel.variants
    }
    answering = {
        (case.kernel.definition.name, str(chosen(case).signature))
        for case in every(cases, cases.TINY)
    }
    assert answering == listed


def test_prebuilt_and_compiled_at_the_call_the_bits_are_the_same(cases, site):
    every_case = every(cases, cases.SMALL)
    twins = Twins([pair_of(case) for case in every_case], _core.cpu_levels())
    libraries = {
        level: _core.Library(site / "gallery" / "_tack" / "cpu" / f"{level}.so")
        for level in levels()
    }
    for number, (case, pair) in enumerate(zip(every_case, twins.pairs, strict=True)):
        called = pair.memory()
        case.kernel(*pair.bind(called))  # as a user does, before others install what they made
        for way, memory in twins.runs(number):
            assert not (words := differences(called, memory)), f"{pair.signature}, {way}: {words}"
        for level, library in libraries.items():
            for noalias in (False, True):
                memory = pair.memory()
                arguments = pair.bind(memory)
                source = twins.sources["c"][number]
                run_kernel(case.kernel, source, library, arguments, noalias=noalias)
                assert not (words := differences(called, memory)), f"prebuilt for {level}: {words}"


def test_prebuilt_programs_agree_with_numpy(cases):
    for case in every(cases, cases.SMALL):
        arguments = case.fresh()
        case.kernel(*arguments)
        error = case.error(case.results(arguments))
        assert error <= case.tolerance, f"{case.kernel.__name__}: {case.reason}"


def test_plain_python_gives_the_same_bits(cases):
    for case in every(cases, cases.TINY):
        prebuilt, plain = case.fresh(), case.fresh()
        case.kernel(*prebuilt)
        case.kernel.py_func(*plain)
        assert not differences(case.results(prebuilt), case.results(plain)), case.kernel.__name__
