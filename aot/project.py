"""Building a bundle without a project of one's own: a CMake project is written and run.

There is one build system; this is a caller of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tack.aot.cmake import cmake_dir
from tack.aot.emit import write_if_changed
from tack.aot.jobs import image_jobs
from tack.aot.manifest import Manifest
from tack.aot.tools import generator_options, need_tool
from tack.model.bundle import FOLDER
from tack.model.errors import ManifestError, ToolchainError

__all__ = ["Build", "build_bundle"]

_TARGET: Final = "kernels"

_PROJECT: Final = """\
# Written by tack-aot build; edits are lost.
cmake_minimum_required(VERSION 3.25)
project(tack_build LANGUAGES NONE)

find_package(tack CONFIG REQUIRED)
tack_add_kernels({name} MANIFEST "{manifest}"{targets})
"""


@dataclass(frozen=True, slots=True)
class Build:
    """A bundle that was built: its folder, and the folder of the build, to be used again."""

    bundle: Path
    work: Path


def build_bundle(
    manifest: Manifest,
    output: Path,
    work: Path,
    *,
    backends: Sequence[str] | None = None,
    jobs: int | None = None,
    verbose: bool = False,
) -> Build:
    """Builds the bundle of ``manifest`` into ``output/<package>/_tack``.

    ``work`` holds what the next build need not do again. ``jobs`` is how many compilers run at
    once; by default one a core, those of GPU images as far as memory goes. With ``verbose`` CMake's
    own output is shown as it comes. `ToolchainError` where a tool is missing or fails.
    """
    cmake = need_tool("cmake")
    work = work.resolve()
    _write_project(manifest, work / "project", backends)
    generator = generator_options()
    configure = [
        *(str(cmake), "-S", str(work / "project"), "-B", str(work / "cmake")),
        *generator,
        f"-Dtack_DIR={cmake_dir()}",
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DTACK_JOBS={jobs or ''}",
    ]
    refusal = work / "cmake" / "tack" / "refusal.txt"
    _run(configure, "configuring", verbose=verbose, refusal=refusal)
    # A number, for Make without one starts everything at once. It has no pools either.
    if jobs is None:
        with_images = any(backends is None or t.backend in backends for t in manifest.gpu_targets)
        jobs = image_jobs() if with_images and "Ninja" not in generator else os.cpu_count() or 1
    _run(
        [str(cmake), "--build", str(work / "cmake"), "--parallel", str(jobs)],
        "compiling",
        verbose=verbose,
    )
    prefix = output.resolve()
    _run(
        [str(cmake), "--install", str(work / "cmake"), "--prefix", str(prefix)],
        "installing",
        verbose=verbose,
    )
    return Build(prefix.joinpath(*manifest.package.split("."), FOLDER), work)


def _write_project(manifest: Manifest, folder: Path, backends: Sequence[str] | None) -> None:
    path = str(manifest.path.resolve())
    for character in '\\"$;|<>\n':
        if character in path:
            raise ManifestError(
                f"{manifest.path}: CMake cannot take a path with {character!r} in it; move the "
                "package elsewhere"
            )
    targets = f" TARGETS {' '.join(backends)}" if backends is not None else ""
    text = _PROJECT.format(name=_TARGET, manifest=path, targets=targets)
    project = folder / "CMakeLists.txt"
    mark = _PROJECT.partition("\n")[0]
    if project.exists() and not project.read_text("utf-8", errors="replace").startswith(mark):
        raise ManifestError(
            f"{project}: this file is not one that tack-aot build wrote, and it would be "
            "overwritten; choose another --build-dir"
        )
    write_if_changed(project, text)


def _run(command: Sequence[str], what: str, *, verbose: bool, refusal: Path | None = None) -> None:
    """Runs a program; an error shows what it printed, or only what tack itself refused."""
    done = subprocess.run(
        command,
        check=False,
        stdout=sys.stderr if verbose else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return
    if refusal is not None and refusal.is_file():
        message = refusal.read_text(encoding="utf-8").strip()
        raise ToolchainError(message.removeprefix("tack-aot: "))
    shown = "" if verbose else f":\n{done.stdout.rstrip()}"
    raise ToolchainError(f"{what} failed ({Path(command[0]).name}: {done.returncode}){shown}")
