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

__all__ = ["UNIT_SIZE", "artifact_path", "chunks", "image_path", "slug", "unit_name", "unit_path"]

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


def unit_name(kernel: str, chunk: int) -> str:
    """The name of the unit with a kernel's variants of one chunk."""
    return f"{slug(kernel)}.{chunk + 1}" if chunk else slug(kernel)


def unit_path(target: Target, name: str, suffix: str) -> str:
    """The path of a unit below the folder of rendered files, such as ``cpu/x86-64-v3/….c``."""
    return f"{target.backend}/{target.arch}/{name}{suffix}"


def artifact_path(target: Target) -> str:
    """The path of a target's library, or of its pack of images, below the bundle's folder."""
    return f"{target.backend}/{target.arch}{'.so' if target.backend == 'cpu' else '.pack'}"


def image_path(target: Target, name: str, suffix: str) -> str:
    """The path of the image of a GPU's unit below the folder of a build.

    Metal's is the rendered text itself.
    """
    if target.backend == "metal":
        return f"units/{unit_path(target, name, suffix)}"
    return f"images/{target.backend}/{target.arch}/{name}"


_Item = TypeVar("_Item")


def chunks(items: Sequence[_Item], size: int = UNIT_SIZE) -> Iterator[Sequence[_Item]]:
    """The items, in their order, by units of ``size`` at most."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
