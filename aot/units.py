"""Units: what is rendered, compiled and loaded together, and how their files are called.

A unit holds variants of one kernel for one target. Its file name follows from the kernel's name
alone, so it does not change when the kernel's body, its signatures or other kernels do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from tack.model.keys import digest
from tack.model.targets import Target

__all__ = ["UNIT_SIZE", "chunks", "library_path", "slug", "unit_path"]

UNIT_SIZE: Final = 8
"""The greatest number of variants in a unit; with more, an edit recompiles too much."""

_PLAIN: Final = re.compile(r"[a-z0-9_.]+:[a-z0-9_.]+", re.ASCII)
_LONGEST: Final = 80


def slug(kernel: str) -> str:
    """A file name for a kernel: unique, in ASCII, and unique where case does not count.

    >>> slug("imagekit.kernels:blur_rows")
    'imagekit-kernels--blur_rows'

    No identifier holds a dash, so a plain name is kept in a form that reads back. Any other name
    is told apart by a digest, after a third dash that no plain one has.
    """
    if _PLAIN.fullmatch(kernel) and len(kernel) <= _LONGEST:
        return kernel.replace(".", "-").replace(":", "--")
    readable = re.sub(r"[^a-z0-9]+", "_", kernel.lower(), flags=re.ASCII).strip("_")
    return f"{readable[: _LONGEST // 2]}---{digest('tack unit', kernel)[:12]}"


def unit_path(kernel: str, target: Target, chunk: int, suffix: str) -> str:
    """The path of a unit below the folder of rendered files, such as ``cpu/x86-64-v3/….c``."""
    number = f".{chunk + 1}" if chunk else ""
    return f"{target.backend}/{target.arch}/{slug(kernel)}{number}{suffix}"


def library_path(target: Target) -> str:
    """The path of a target's library below the bundle's folder."""
    return f"{target.backend}/{target.arch}.so"


_Item = TypeVar("_Item")


def chunks(items: Sequence[_Item], size: int = UNIT_SIZE) -> Iterator[Sequence[_Item]]:
    """The items, in their order, by units of ``size`` at most."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
