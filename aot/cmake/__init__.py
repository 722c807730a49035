"""The CMake module of tack: ``find_package(tack CONFIG REQUIRED)``.

scikit-build-core finds this folder through the entry point group ``cmake.root``; in plain CMake
``tack_DIR`` is what ``tack-aot cmake-dir`` prints.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["cmake_dir"]


def cmake_dir() -> Path:
    """The folder for ``tack_DIR``: the one that holds ``tackConfig.cmake``."""
    return Path(__file__).parent
