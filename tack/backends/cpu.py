"""The CPU backend: which levels this machine runs, and loading a library of kernels."""

from __future__ import annotations

import functools
import os
from typing import Protocol

from tack import _core
from tack.model.bundle import Artifact
from tack.model.keys import sha256
from tack.model.locks import fork_safe_lock
from tack.model.targets import CPU_LEVELS, Target

__all__ = ["LoadError", "LoadedLibrary", "best_level", "load", "unfit"]


class LoadError(Exception):
    """Why a library cannot be loaded; its words become a candidate's reason."""


class LoadedLibrary(Protocol):
    """Kernels in memory, for as long as the process lives."""

    def symbol(self, name: str) -> int:
        """The address of a function; ``AttributeError`` if there is none of that name."""
        ...


_loaded: dict[tuple[str, str], _core.Library] = {}
_lock = fork_safe_lock()


@functools.cache
def best_level() -> str:
    """The highest CPU level that this machine runs and tack knows; empty if there is none."""
    known = [level for level in _core.cpu_levels() if level in CPU_LEVELS]
    return known[-1] if known else ""


def unfit(target: Target) -> str | None:
    """Why a library for ``target`` cannot run on this machine, or None."""
    if target.runs_on(best_level()):
        return None
    return f"this CPU runs {best_level() or 'no level that tack knows'}"


def load(folder: str, artifact: Artifact) -> _core.Library:
    """The library of ``artifact`` in the bundle ``folder``, loaded once for the process.

    Its bytes are compared with the bundle's digest before the system's loader sees them, since a
    truncated or damaged library can take the process down. Raises `LoadError`.
    """
    path = os.path.join(folder, *artifact.path.split("/"))
    key = (path, artifact.sha256)
    with _lock:
        library = _loaded.get(key)
        if library is None:
            _check_content(path, artifact)
            try:
                library = _core.Library(path)
            except OSError as error:
                raise LoadError(f"{artifact.path} does not load: {error}") from None
            _loaded[key] = library
        return library


def _check_content(path: str, artifact: Artifact) -> None:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise LoadError(f"{artifact.path} cannot be read: {error.strerror}") from None
    if len(content) != artifact.size or sha256(content) != artifact.sha256:
        raise LoadError(
            f"{artifact.path} is not the library that the bundle was made with "
            f"({len(content)} bytes, {artifact.size} expected); reinstall the package"
        )
