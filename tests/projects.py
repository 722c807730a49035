"""Packages with a manifest, as their authors would write them: for tests of the build."""

from __future__ import annotations

import fcntl
import importlib
import itertools
import os
import shutil
import subprocess
import sys
import textwrap
import venv
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from tack.aot.cmake import cmake_dir
from tack.aot.manifest import Manifest, read_manifest
from tack.aot.plan import Plan, make_plan

__all__ = [
    "KERNELS",
    "MANIFEST",
    "Project",
    "build_wheel",
    "empty_environment",
    "made_once",
    "module_of",
    "only",
    "run_in",
]

KERNELS = """
    import tack

    HALF = tack.constant(0.5, tack.f32)

    @tack.func
    def halved(x):
        return x * HALF

    @tack.kernel
    def saxpy(a, x, y, out):
        for i in range(x.shape[0]):
            out[i] = a * x[i] + y[i]

    @tack.kernel
    def scale(n: tack.i32, x):
        for i in range(x.shape[0]):
            x[i] = halved(x[i]) + n

    def plain(x):
        return x

    other = saxpy
"""

MANIFEST = """
    schema = 1
    package = "NAME"

    [targets]
    cpu = ["x86-64-v2", "x86-64-v3"]

    [[kernel]]
    name = "NAME.kernels:saxpy"
    signatures = ["T, T[:], T[:], T[:]"]
    where.T = ["f32", "f64"]

    [[kernel]]
    name = "NAME.kernels:scale"
    signatures = ["i32, f32[:]"]
"""

_numbers = itertools.count()


class Project:
    """A source tree below ``root``: ``src/<name>`` and ``tack-aot.toml``."""

    def __init__(
        self,
        root: Path,
        modules: Mapping[str, str] | None = None,
        manifest: str = MANIFEST,
        name: str | None = None,
    ) -> None:
        self.root = root
        self.name = name or f"tack_test_project_{next(_numbers)}"
        self.source = root / "src" / self.name
        self.source.mkdir(parents=True)
        for module, text in {"__init__": "", **(modules or {"kernels": KERNELS})}.items():
            self.write(module, text)
        self.write_manifest(manifest)

    @property
    def manifest_path(self) -> Path:
        """The manifest."""
        return self.root / "tack-aot.toml"

    def write(self, module: str, text: str) -> Path:
        """Writes one module; NAME in its text is the package."""
        path = self.source / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).replace("NAME", self.name), encoding="utf-8")
        return path

    def edit(self, module: str, old: str, new: str) -> None:
        """Replaces text of one module."""
        path = self.source / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def write_manifest(self, text: str) -> None:
        """Writes the manifest; NAME in its text is the package."""
        text = textwrap.dedent(text).replace("NAME", self.name)
        self.manifest_path.write_text(text, encoding="utf-8")

    def read(self) -> Manifest:
        """The manifest, read."""
        return read_manifest(self.manifest_path)

    def plan(self, machine: str = "x86_64", backends: list[str] | None = None) -> Plan:
        """The plan."""
        return make_plan(self.read(), machine=machine, backends=backends)


def module_of(lines: str) -> str:
    """A module with one kernel ``k`` of that text."""
    return "import tack\n\n\n@tack.kernel\n" + textwrap.dedent(lines)


def build_wheel(package: Path, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """``pip wheel`` of a package; its wheel is the one file in ``out``."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    command += ["--no-index", "--disable-pip-version-check", "--wheel-dir", str(out), str(package)]
    if not entry_points(group="cmake.root", name="tack"):  # a checkout that is not installed
        command.append(f"-Ccmake.define.tack_DIR={cmake_dir()}")
    return subprocess.run(
        command,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )


def empty_environment(folder: Path, wheel: Path) -> Path:
    """An environment with Python, NumPy, tack and a wheel: no pip, no jinja2, no compiler."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    numpy_folder = Path(np.__file__).parent
    for part in (numpy_folder, numpy_folder.with_name("numpy.libs")):
        if part.is_dir():
            (site / part.name).symlink_to(part)
    _install_tack(site)
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([*command, "--target", site, wheel], check=True)
    return folder


def _install_tack(site: Path) -> None:
    """The tack under test, from wherever its parts are."""
    parts = {"": "tack", "aot": "tack.aot", "templates": "tack.templates"}
    for folder, module in parts.items():
        (source,) = importlib.import_module(module).__path__
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, site / "tack" / folder, dirs_exist_ok=True, ignore=ignored)
    core = importlib.import_module("tack._core").__file__
    assert core is not None
    if not (site / "tack" / Path(core).name).exists():
        shutil.copy(core, site / "tack")


def run_in(environment: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in an environment, with nothing else on PATH."""
    return subprocess.run(
        [environment / "bin" / "python", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=environment,
        env={"PATH": str(environment / "bin")},
    )


def only(folder: Path) -> Path:
    """The one file in a folder."""
    (path,) = folder.iterdir()
    return path


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that ``make`` fills in one of the processes of a test run; the others find it."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder
