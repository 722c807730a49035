"""The bundle step: a record and compiled libraries in, ``manifest.json`` out.

What a library is, its own bytes say: its machine, the CPU level of its instructions, the symbols
that it exports and the libraries that it needs. Whatever does not fit fails the build.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tack.aot.elf import Library, read_library
from tack.aot.emit import dump, write_if_changed
from tack.aot.levels import check_level
from tack.model.bundle import Artifact, Bundle
from tack.model.errors import BundleError, ToolchainError
from tack.model.record import replace

__all__ = ["make_bundle", "read_bundle", "write_bundle"]

_SYSTEM: Final = re.compile(r"lib[cm]\.(so\.\d+|musl-\w+\.so\.\d+)")
"""The shared libraries that a kernel library may need: the C library and its libm."""


def write_bundle(record: Path, toolchain: Mapping[str, str], manifest: Path) -> Bundle:
    """Makes the bundle of the libraries beside ``manifest`` and writes it there."""
    bundle = make_bundle(read_bundle(record), toolchain, manifest.parent)
    write_if_changed(manifest, dump(bundle.to_json()))
    return bundle


def make_bundle(record: Bundle, toolchain: Mapping[str, str], folder: Path) -> Bundle:
    """The bundle of the libraries in ``folder``, which were compiled from what ``record`` tells.

    `ToolchainError` for a library that is missing, of another machine, above its level, without
    one of its symbols, or in need of a library that nobody declared.
    """
    artifacts = tuple(_read_back(record, artifact, folder) for artifact in record.artifacts)
    return replace(record, artifacts=artifacts, toolchain=dict(sorted(toolchain.items())))


def read_bundle(path: Path) -> Bundle:
    """The bundle or record at ``path``; `BundleError` for anything else."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: the bundle cannot be read: {error.strerror}") from None
    return Bundle.read(content, str(path))


def _read_back(record: Bundle, artifact: Artifact, folder: Path) -> Artifact:
    """``artifact`` with what the bytes of its library say."""
    library = read_library(folder / artifact.path)
    level = check_level(library, artifact.target.arch)
    _check_symbols(library, _symbols(record, artifact))
    _check_loading(library)
    content = library.path.read_bytes()
    return replace(
        artifact, sha256=hashlib.sha256(content).hexdigest(), size=len(content), level=level
    )


def _symbols(record: Bundle, artifact: Artifact) -> dict[str, str]:
    """The symbols that a library must export, each with the variant that wants it."""
    return {
        symbol: f"{kernel.name}({variant.signature})"
        for kernel in record.kernels
        for variant in kernel.variants
        if variant.target == artifact.target
        for _, symbol in variant.launch.entries
    }


def _check_symbols(library: Library, wanted: Mapping[str, str]) -> None:
    for symbol, variant in wanted.items():
        if symbol not in library.functions:
            raise ToolchainError(
                f"{library.path}: it does not export {symbol}, an entry point of {variant}; was it "
                "linked from other files, or with a version script?"
            )


def _check_loading(library: Library) -> None:
    """Loading it neither brings other libraries along nor does anything to the process."""
    if library.initializers:
        raise ToolchainError(
            f"{library.path}: loading it would run code (start files or constructors), and a "
            "kernel library must not; look for -ffast-math in LDFLAGS and in the toolchain file"
        )
    for name in library.needed:
        if not _SYSTEM.fullmatch(name):
            raise ToolchainError(
                f"{library.path}: it needs the shared library {name}, and a kernel library may "
                "need libc and libm only; look for -l flags in LDFLAGS and in the toolchain file"
            )
