"""Projects with a build folder, built by the CMake module."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from projects import Project

from tack.aot.cmake import cmake_dir
from tack.aot.tools import find_tool

__all__ = ["GENERATORS", "PROJECT", "Tree"]

PROJECT = """
    cmake_minimum_required(VERSION 3.25)
    project(example LANGUAGES NONE)
    find_package(tack CONFIG REQUIRED)
    tack_add_kernels(kernels MANIFEST tack-aot.toml)
"""

GENERATORS = [
    pytest.param(name, marks=pytest.mark.skipif(find_tool(tool) is None, reason=f"no {tool}"))
    for name, tool in (("Ninja", "ninja"), ("Unix Makefiles", "make"))
]


class Tree:
    """A project with a build folder, and a log of every start of Python."""

    def __init__(self, project: Project, generator: str = "Ninja", lists: str = PROJECT) -> None:
        self.project = project
        self.build = project.root / "build"
        self.log = project.root / "starts.log"
        self.generator = generator
        self.write_lists(lists)
        self.python = project.root / "python"
        self.python.write_text(
            f'#!/bin/sh\necho "$@" >>"{self.log}"\nexec "{sys.executable}" "$@"\n'
        )
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)

    def write_lists(self, text: str) -> None:
        (self.project.root / "CMakeLists.txt").write_text(textwrap.dedent(text))

    def configure(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = ["-G", self.generator, "-S", self.project.root, "-B", self.build]
        if self.generator == "Ninja":
            command.append(f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}")
        command += [f"-Dtack_DIR={cmake_dir()}", f"-DPython_EXECUTABLE={self.python}", *options]
        return self._cmake(*command, **environment)

    def make(self) -> str:
        """Builds; what it printed."""
        done = self._cmake("--build", self.build, "--parallel", "2")
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _cmake(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(find_tool("cmake")), *map(str, arguments)],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )

    def starts(self) -> list[str]:
        """The steps of tack that Python was started for, since this was last asked."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.split()[4] for line in lines]

    def objects(self) -> dict[str, int]:
        """The time stamp of every object file, by level and unit."""
        return {
            "/".join(path.parts[-2:]): path.stat().st_mtime_ns
            for path in self.build.rglob("*.c.o")
            if "CMakeTmp" not in path.parts
        }

    def compiled_since(self, before: dict[str, int]) -> set[str]:
        """Level and unit of the objects that are newer than in ``before``."""
        return {
            f"{path.split('/')[0]} {path.split('--')[1].removesuffix('.c.o')}"
            for path, time in self.objects().items()
            if time != before.get(path)
        }

    @property
    def bundle(self) -> Path:
        return self.build / "tack" / "kernels" / "_tack"

    def libraries(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(self.bundle.rglob("*.so"))}
