"""What the code generator is, by content, for build keys.

Apart from `tack.compile`: a call whose variant is in the disk cache needs this, and no generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from tack.model.keys import digest_files

__all__ = ["generator_identity"]

_GENERATOR: Final = ("model", "ir", "lang", "passes", "render", "compile.py")
"""What the text of a kernel depends on, besides the kernel and the templates."""


@cache
def generator_identity() -> str:
    """The digest of the code generator and its templates, for build keys."""
    package = files("tack")
    code = (item for name in _GENERATOR for item in _contents(package / name, name))
    templates = _contents(files("tack.templates"), "templates")
    return digest_files([*code, *templates])


def _contents(item: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of a file or of all files below a directory, byte code excepted."""
    if item.is_file():
        yield name, item.read_bytes()
    elif item.is_dir() and item.name != "__pycache__":
        for inner in item.iterdir():
            yield from _contents(inner, f"{name}/{inner.name}")
