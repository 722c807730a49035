"""The files of tack itself that a plan or a rendered unit depends on."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["checker_files", "generator_files", "tack_version"]

_GENERATOR: Final = (
    "tack.compile",
    "tack.model",
    "tack.elementary",
    "tack.ir",
    "tack.lang",
    "tack.passes",
    "tack.render",
    "tack.templates",
)
_BUILD: Final = (
    "tack.aot.cmake_plan",
    "tack.aot.compilers",
    "tack.aot.emit",
    "tack.aot.enumerate",
    "tack.aot.form",
    "tack.aot.inputs",
    "tack.aot.instances",
    "tack.aot.jobs",
    "tack.aot.manifest",
    "tack.aot.plan",
    "tack.aot.rows",
    "tack.aot.source_tree",
    "tack.aot.units",
    "tack.aot.wanted",
)
_CHECKER: Final = (
    "tack.aot.amdgpu_image",
    "tack.aot.bundle",
    "tack.aot.cuda_image",
    "tack.aot.elf",
    "tack.aot.image_facts",
    "tack.aot.images",
    "tack.aot.levels",
    "tack.aot.units",
    "tack.model",
)


def generator_files() -> tuple[Path, ...]:
    """Python files and templates that decide what is planned and rendered, sorted."""
    (version,) = _files_of("tack", alone=True)
    return tuple(sorted({version, *_files((*_GENERATOR, *_BUILD))}))


def checker_files() -> tuple[Path, ...]:
    """Python files that decide what the bundle step refuses and writes, sorted."""
    return _files(_CHECKER)


def _files(modules: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(sorted({path for module in modules for path in _files_of(module)}))


def tack_version() -> str:
    """The version of this tack.

    Its package is looked up by name: a static import of it would seem, to whoever reads the graph
    of imports, to reach all that it loads lazily.
    """
    return str(importlib.import_module("tack").__version__)


def _files_of(module: str, *, alone: bool = False) -> Iterator[Path]:
    """The file of a module; of a package every file, byte code excepted, or ``__init__`` alone."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    if alone or spec.submodule_search_locations is None:
        yield Path(spec.origin)
        return
    for folder in spec.submodule_search_locations:
        for path in Path(folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
