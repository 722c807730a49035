"""The toolchains of the JIT compile for a CPU level, to the same bytes each time, and load them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import run_kernel
from twins import Pair, toolchains

from tack import _core
from tack.aot.elf import parse_library
from tack.aot.levels import check_level
from tack.backends import cpu_cc, cpu_jit, cpu_llvm
from tack.backends.cpu import LoadError
from tack.compile import assemble
from tack.errors import ToolchainError
from tack.model.targets import CPU_LEVELS, Target
from tack.render.renderer import renderer_for

LEVELS = _core.cpu_levels()
BEST = Target("cpu", LEVELS[-1])

KERNEL = """
@tack.kernel
def scaled(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.floor(x[i]) * {factor} % 7.0
"""

BOTH = pytest.mark.parametrize("tool", toolchains(), ids=lambda tool: str(tool.dialect))


def scaled(load: Any, factor: float = 0.1) -> Pair:
    return Pair(load(KERNEL.format(factor=factor)).scaled, "f64[:], f64[:]", list)


def text_of(pair: Pair, tool: Any) -> str:
    return assemble("unit", [pair.source(tool.dialect)], renderer_for(BEST, tool.dialect))


def run(code: str, **environment: str) -> str:
    """What a Python of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- compiling and loading -----------------------------------------------------------------------


@BOTH
def test_what_is_compiled_is_loaded_and_runs(tool: Any, load: Any) -> None:
    pair = scaled(load)
    library = tool.load(tool.compile(text_of(pair, tool), BEST))
    x = np.arange(50.0) - 20.3
    out, expected = np.zeros(50), np.zeros(50)
    pair.kernel.py_func(x, expected)
    run_kernel(pair.kernel, pair.source(tool.dialect), library, [x, out], noalias=True)
    assert out.tobytes() == expected.tobytes()


@BOTH
@pytest.mark.parametrize("level", LEVELS)
def test_the_code_for_a_level_needs_no_higher_one(tool: Any, level: str, load: Any) -> None:
    image = tool.compile(text_of(scaled(load), tool), Target("cpu", level))
    check_level(parse_library(Path("image"), image), level)


@BOTH
def test_another_architecture_is_refused(tool: Any, load: Any) -> None:
    family = CPU_LEVELS[BEST.arch].family
    other = next(name for name, level in CPU_LEVELS.items() if level.family != family)
    with pytest.raises(ToolchainError, match=rf"cpu:{other}"):
        tool.compile(text_of(scaled(load), tool), Target("cpu", other))


@BOTH
def test_a_function_that_is_not_there_has_no_address(tool: Any, load: Any) -> None:
    library = tool.load(tool.compile(text_of(scaled(load), tool), BEST))
    with pytest.raises(AttributeError, match="tack_nothing"):
        library.symbol("tack_nothing")


@BOTH
@pytest.mark.parametrize("image", [b"", b"garbage " * 99], ids=["nothing", "garbage"])
def test_what_is_no_machine_code_does_not_load(tool: Any, image: bytes) -> None:
    with pytest.raises(LoadError, match=r"the (object|library)"):
        tool.load(image)


@BOTH
def test_libraries_with_the_same_symbols_stay_apart(tool: Any, load: Any) -> None:
    source = KERNEL.format(factor=2)
    pair = Pair(load(source).scaled, "f64[:], f64[:]", list)
    text = text_of(pair, tool)
    one, other = "0x4000000000000000" if tool.dialect == "llvm" else "2.0", "3.0"
    assert one in text
    libraries = [
        tool.load(tool.compile(each, BEST)) for each in (text, text.replace(one, other), text)
    ]
    results = []
    for library in libraries:
        out = np.zeros(1)
        arguments = [np.ones(1), out]
        run_kernel(pair.kernel, pair.source(tool.dialect), library, arguments, noalias=True)
        results.append(out[0])
    assert results == [2.0, 3.0, 2.0]


@BOTH
def test_threads_compile_and_load_at_once(tool: Any, load: Any) -> None:
    pairs = [scaled(load, factor) for factor in (0.5, 1.5, 2.5, 3.5)]
    texts = [text_of(pair, tool) for pair in pairs] * 4
    symbols = [dict(pair.source(tool.dialect).launch.entries)["general"] for pair in pairs] * 4

    def make(text: str, symbol: str) -> tuple[bytes, int]:
        image = tool.compile(text, BEST)
        return image, tool.load(image).symbol(symbol)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, texts, symbols))
    assert len({address for _, address in made}) == len(made)
    for number, (image, _) in enumerate(made):
        assert image == made[number % len(pairs)][0]


IMAGE = """
    import hashlib, sys
    sys.path.insert(0, {folder!r})
    import kernels
    from tack.backends import cpu_cc, cpu_llvm
    from tack.compile import assemble, generate
    from tack.model.signature import Signature
    from tack.model.targets import Target
    from tack.model.variant import Variant
    from tack.render.renderer import renderer_for
    target = Target("cpu", {level!r})
    for tool in cpu_llvm.find(), cpu_cc.find():
        renderer = renderer_for(target, tool.dialect)
        signature = Signature.parse("f64[:], f64[:]")
        source = generate(Variant(kernels.scaled.definition, signature, target), renderer)
        image = tool.compile(assemble("unit", [source], renderer), target)
        print(hashlib.sha256(image).hexdigest(), tool.identity())
"""


def test_the_same_bytes_in_any_process_and_folder(tmp_path: Path) -> None:
    printed = set()
    for number in range(3):
        folder = tmp_path / f"folder {number}" / ("x" * number)
        scratch = folder / "scratch"
        scratch.mkdir(parents=True)
        (folder / "kernels.py").write_text(f"import tack\n{KERNEL.format(factor=0.1)}")
        code = IMAGE.format(folder=str(folder), level=BEST.arch)
        printed.add(run(code, PYTHONHASHSEED=str(number), TMPDIR=str(scratch)))
        assert not list(scratch.iterdir())
    assert len(printed) == 1


# --- which toolchain -----------------------------------------------------------------------------

CHOOSE = """
    import sys
    for name in {blocked!r}:
        sys.modules[name] = None
    from tack.backends import cpu_jit
    from tack.errors import ToolchainError
    try:
        tool = cpu_jit.toolchain()
        assert cpu_jit.toolchain() is tool
        print(tool.dialect, tool)
    except ToolchainError as error:
        print(error)
"""


def test_llvm_is_taken_before_a_c_compiler() -> None:
    _, llvm = toolchains()
    assert run(CHOOSE.format(blocked=[])) == f"llvm {llvm}"


def test_without_llvmlite_a_c_compiler_is_taken() -> None:
    c, _ = toolchains()
    assert run(CHOOSE.format(blocked=["llvmlite"])) == f"c {c}"


def test_without_either_the_error_names_both_ways_out() -> None:
    said = run(CHOOSE.format(blocked=["llvmlite"]), PATH="/nowhere", CC="")
    assert said == (
        "a kernel that was not prebuilt is compiled by llvmlite 0.45 or newer, or by a C compiler, "
        "and there is neither: pip install 'tack-aot[jit]', or install gcc or clang"
    )


def test_a_c_compiler_alone_cannot_write_c(monkeypatch: pytest.MonkeyPatch) -> None:
    c, _ = toolchains()
    monkeypatch.setattr(cpu_llvm, "find", lambda: None)
    monkeypatch.setattr(cpu_jit, "find_spec", lambda name: None)
    monkeypatch.setattr(cpu_jit, "toolchain", cpu_jit.toolchain.__wrapped__)
    with pytest.raises(ToolchainError, match=re.escape(f"install jinja2, with which {c} will do")):
        cpu_jit.toolchain()


@pytest.mark.parametrize("command", [f"{sys.executable} -E", "gcc 'x", "/nowhere/gcc", "''"])
def test_a_variable_that_names_no_compiler_is_an_error(command: str) -> None:
    said = run(CHOOSE.format(blocked=["llvmlite"]), CC=command)
    assert said == (
        f"the environment variable CC names {command}, which is no gcc or clang that "
        "can be started; correct it or unset it"
    )


def test_an_llvm_of_long_ago_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    monkeypatch.setattr(binding, "llvm_version_info", (15, 0, 7))
    assert cpu_llvm.find() is None


def test_nothing_is_imported_before_something_is_compiled() -> None:
    code = """
        import sys
        from tack.backends import cpu_jit
        from tack.model.targets import Target
        from tack.render.renderer import renderer_for
        renderer_for(Target("cpu", "x86-64"), "llvm")
        print(sorted({"llvmlite", "jinja2"} & set(sys.modules)))
    """
    assert run(code) == "[]"


def test_rendering_without_llvmlite_says_what_to_install(load: Any) -> None:
    modules = [name for name in sys.modules if name.startswith(("llvmlite", "tack.render.llvm_"))]
    kept = {name: sys.modules.pop(name) for name in modules}
    sys.modules["llvmlite"] = None
    try:
        with pytest.raises(ToolchainError, match=r"pip install 'tack-aot\[jit\]'"):
            scaled(load).source("llvm")
    finally:
        sys.modules.update(kept)


# --- C compilers ---------------------------------------------------------------------------------


def test_the_words_of_the_compiler_are_in_the_error() -> None:
    c, _ = toolchains()
    with pytest.raises(
        ToolchainError, match=r"cannot compile for cpu:[^:]+: kernel.c:1:\d+: error"
    ):
        c.compile("int x = ;", BEST)


def test_a_compiler_that_writes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "cc"
    command.write_text("#!/bin/sh\necho Free Software Foundation\n")
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))
    found = cpu_cc.find()
    assert found is not None
    with pytest.raises(ToolchainError, match=r"cannot compile for cpu:.*: it wrote no library"):
        found.compile("int x;", BEST)


def test_a_compiler_is_known_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    c, llvm = toolchains()
    assert "/" not in c.identity().replace("-ffile-prefix-map", "")
    real = shutil.which("cc")
    assert real is not None
    identities = set()
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        command = tmp_path / str(number) / "cc"
        if number < 2:
            command.symlink_to(real)
        else:  # another program that says the same
            command.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
            command.chmod(0o755)
        monkeypatch.setenv("CC", str(command))
        found = cpu_cc.find()
        assert found is not None
        identities.add(found.identity())
    monkeypatch.setenv("CC", f"{real} -O1")
    found = cpu_cc.find()
    assert found is not None
    assert found.identity().endswith(" -O1")
    assert len({*identities, found.identity(), llvm.identity()}) == 4
