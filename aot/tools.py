"""The programs that a build runs, and where they are."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tack.model.errors import ToolchainError

__all__ = ["find_tool", "generator_options", "need_tool"]


def find_tool(name: str) -> Path | None:
    """The program ``name``: beside this Python, as pip installs it, or on PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(name, path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    return None if found is None else Path(found)


def need_tool(name: str) -> Path:
    """As `find_tool`; `ToolchainError` with what to install where there is none."""
    found = find_tool(name)
    if found is None:
        raise ToolchainError(
            f"{name} is needed and is not on PATH: "
            f'"{sys.executable}" -m pip install "tack-aot[build]"'
        )
    return found


def generator_options() -> list[str]:
    """The options that make CMake use Ninja, or Make where there is no Ninja."""
    ninja = find_tool("ninja")
    if ninja is not None:
        return ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    if find_tool("make") is None:
        need_tool("ninja")
    return ["-G", "Unix Makefiles"]
