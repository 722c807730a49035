"""A package that ships a kernel, to begin with: the files of ``files/``, with names put in."""

from __future__ import annotations

import keyword
import platform
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

from tack.model.errors import TackError
from tack.model.targets import CPU_LEVELS, cpu_family

__all__ = ["write_package"]

_FILES: Final[dict[str, str]] = {
    "pyproject.toml.in": "pyproject.toml",
    "CMakeLists.txt.in": "CMakeLists.txt",
    "tack-aot.toml.in": "tack-aot.toml",
    "init.py.in": "src/{name}/__init__.py",
    "kernels.py.in": "src/{name}/kernels.py",
}
"""File of the skeleton -> the path that it gets."""


def write_package(name: str, folder: Path) -> tuple[str, ...]:
    """Writes the package ``name`` into ``folder``; the paths of its files.

    `TackError` for a name that cannot be imported, and for a file that is there already; then
    nothing is written.
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.ASCII) or keyword.iskeyword(name):
        raise TackError(
            f"{name!r} cannot be the name of a package; write one of small letters, digits and _, "
            "such as mykernels"
        )
    if name == "tack" or name in sys.stdlib_module_names:
        raise TackError(f"{name!r} is the name of a module that exists; choose another")
    paths = {source: path.format(name=name) for source, path in _FILES.items()}
    for path in paths.values():
        if (folder / path).exists():
            raise TackError(f"{folder / path} exists; nothing was written")
    levels = ", ".join(f'"{level}"' for level in _levels())
    skeleton = files("tack.aot.skeleton") / "files"
    for source, path in paths.items():
        text = (skeleton / source).read_text(encoding="utf-8")
        text = text.replace("@name@", name).replace("@levels@", levels)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return tuple(paths.values())


def _levels() -> list[str]:
    """The CPU levels to begin with: all of this machine's family but x86-64's oldest."""
    family = cpu_family(platform.machine())
    levels = [name for name, level in CPU_LEVELS.items() if level.family == family]
    return levels[1:] or levels or ["x86-64-v3"]
