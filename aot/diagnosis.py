"""What this machine can build and run, one check after the other."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from tack.aot.compilers import find_compiler, named_compiler
from tack.aot.tools import find_tool
from tack.model.abi import ABI
from tack.model.errors import ToolchainError
from tack.model.targets import CPU_LEVELS, Target, cpu_family
from tack.render.c_flags import COMPILE_FLAGS, target_flags

__all__ = ["Check", "buildable_backends", "diagnose"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, whether it is as it has to be, and what was found or what to do.

    ``purpose`` is what is not possible without it: ``"run"`` kernels, ``"build"`` them, build
    them for a GPU (``"build cuda"``) or compile at a call (``"jit"``), which nobody has to.
    """

    name: str
    purpose: str
    passed: bool
    detail: str


def diagnose() -> tuple[Check, ...]:
    """Every check, in the order in which one needs another."""
    return tuple(check for checks in _CHECKS for check in checks())


def buildable_backends() -> tuple[str, ...]:
    """The backends whose compilers are found here; Metal, which is shipped as text, needs none."""
    found = {
        "cpu": all(check.passed for check in _compiler()),
        "cuda": _has_compiler("cuda"),
        "hip": _has_compiler("hip"),
        "metal": True,
    }
    return tuple(backend for backend, have in found.items() if have)


def _has_compiler(backend: str) -> bool:
    try:
        return find_compiler(backend, named_compiler(backend)) is not None
    except ToolchainError:
        return False


def _python() -> Iterator[Check]:
    found = f"{platform.python_version()} ({sys.executable})"
    new = sys.version_info >= (3, 11)
    yield Check("Python", "run", new, found if new else f"{found}; 3.11 or newer is needed")


def _numpy() -> Iterator[Check]:
    try:
        import numpy as np
    except ImportError as error:
        yield Check("NumPy", "run", False, f"{error}; pip install numpy")
    else:
        yield Check("NumPy", "run", True, np.__version__)


def _core() -> Iterator[Check]:
    try:
        _core = importlib.import_module("tack._core")
    except ImportError as error:
        yield Check("tack._core", "run", False, f"{error}; reinstall tack-aot")
        return
    same = _core.ABI == ABI
    found = f"ABI {_core.ABI}" + ("" if same else f", and tack has {ABI}; reinstall tack-aot")
    yield Check("tack._core", "run", same, found)
    levels = [level for level in _core.cpu_levels() if level in CPU_LEVELS]
    yield Check(
        "CPU", "run", bool(levels), ", ".join(levels) or f"{platform.machine()} has no level"
    )


def _modules() -> Iterator[Check]:
    for module, name in (("jinja2", "jinja2"), ("capstone", "capstone")):
        try:
            found = version(name)
        except PackageNotFoundError:
            found = ""
        have = importlib.util.find_spec(module) is not None
        yield Check(name, "build", have, found or 'pip install "tack-aot[build]"')


def _compiler() -> Iterator[Check]:
    name = os.environ.get("CC", "").split() or ["cc"]
    path = find_tool(name[0]) or find_tool("gcc") or find_tool("clang")
    if path is None:
        yield Check("C compiler", "build", False, f"no {name[0]}, gcc or clang; install gcc")
        return
    said = _output([str(path), "--version"])
    yield Check("C compiler", "build", bool(said), f"{said or 'does not run'} ({path})")
    family = cpu_family(platform.machine())
    for level in (name for name, level in CPU_LEVELS.items() if level.family == family):
        flags = [*COMPILE_FLAGS, *target_flags(Target("cpu", level))]
        problem = _refuses(path, flags)
        yield Check(f"{path.name} for {level}", "build", not problem, problem or "compiles")


def _refuses(compiler: Path, flags: list[str]) -> str:
    """Why ``compiler`` cannot compile with ``flags``; empty if it can."""
    done = subprocess.run(
        [str(compiler), *flags, "-x", "c", "-c", "-", "-o", os.devnull],
        check=False,
        input="int tack_probe(int x) { return x; }\n",
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it fails"])[0]


def _gpu_compilers() -> Iterator[Check]:
    """Nobody has to have them: only packages with such targets."""
    for backend, extra in (("cuda", "build-cuda"), ("hip", "build-hip")):
        name = f"compiler for {backend}"
        try:
            compiler = find_compiler(backend, named_compiler(backend))
        except ToolchainError as error:
            yield Check(name, "build", False, str(error))
            continue
        found = "" if compiler is None else compiler.program
        yield Check(name, f"build {backend}", True, found or f'none: "tack-aot[{extra}]"')


def _cmake() -> Iterator[Check]:
    path = find_tool("cmake")
    found = _output([str(path), "--version"]) if path else ""
    number = tuple(map(int, re.findall(r"\d+", found)[:2]))
    advice = f"{found or 'none'}; 3.25 is needed: pip install cmake"
    yield Check("CMake", "build", number >= (3, 25), f"{found} ({path})" if found else advice)


def _ninja() -> Iterator[Check]:
    path = find_tool("ninja") or find_tool("make")
    yield Check("Ninja or Make", "build", path is not None, str(path or "pip install ninja"))


def _folders() -> Iterator[Check]:
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "probe").write_bytes(b"")
        yield Check("temporary folder", "build", True, tempfile.gettempdir())
    except OSError as error:
        yield Check("temporary folder", "build", False, f"cannot be written: {error}")


def _output(command: list[str]) -> str:
    """The first line that a program prints; empty if it fails."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return (done.stdout.splitlines() or [""])[0]


_CHECKS: Final[tuple[Callable[[], Iterator[Check]], ...]] = (
    _python,
    _numpy,
    _core,
    _modules,
    _compiler,
    _gpu_compilers,
    _cmake,
    _ninja,
    _folders,
)
