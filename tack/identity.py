"""What the code generator is, by content, for build keys.

Apart from `tack.compile`: a call whose variant is in the disk cache needs this, and no generator.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Final

from tack.model.keys import digest_files

__all__ = ["generator_identity", "generator_state"]

_GENERATOR: Final = ("model", "elementary", "ir", "lang", "passes", "render", "compile.py")
"""What the text of a kernel depends on, besides the kernel and the templates."""


@cache
def generator_identity() -> str:
    """The digest of the code generator and its templates, for build keys."""
    return digest_files((name, _content(path)) for name, path, _ in _files())


def generator_state() -> str:
    """The paths, sizes and times of the same files: where these are the same, so is the identity.

    Looking at eighty files takes a tenth of the time of reading them.
    """
    return "\n".join(
        f"{path} {status.st_size} {status.st_mtime_ns}" for _, path, status in sorted(_files())
    )


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _files() -> Iterator[tuple[str, str, os.stat_result]]:
    import tack
    import tack.templates

    for part in _GENERATOR:
        yield from _below(os.path.join(tack.__path__[0], part), part)
    yield from _below(tack.templates.__path__[0], "templates")


def _below(path: str, name: str) -> Iterator[tuple[str, str, os.stat_result]]:
    """(name, path, status) of a file or of all files below a folder, byte code excepted."""
    if not os.path.isdir(path):
        yield name, path, os.stat(path)
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _below(entry.path, f"{name}/{entry.name}")
            else:
                yield f"{name}/{entry.name}", entry.path, entry.stat()
