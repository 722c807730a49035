"""The bundle step: a record, compiled libraries and images in; packs and ``manifest.json`` out.

What a library is, its own bytes say: its machine, the CPU level of its instructions, the symbols
that it exports and the libraries that it needs; likewise those of an image (`tack.aot.images`).
Whatever does not fit fails the build.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tack.aot.elf import Library, parse_library
from tack.aot.emit import dump, write_if_changed
from tack.aot.images import Checked, check_pack, write_packs
from tack.aot.levels import check_level
from tack.model.bundle import Artifact, Bundle, KernelEntry, Resources, VariantEntry
from tack.model.errors import BundleError, ToolchainError
from tack.model.record import replace
from tack.model.targets import Target

__all__ = ["make_bundle", "read_bundle", "write_bundle"]

_SYSTEM: Final = re.compile(r"lib[cm]\.(so\.\d+|musl-\w+\.so\.\d+)")
"""The shared libraries that a kernel library may need: the C library and its libm."""


def write_bundle(record: Path, toolchain: Mapping[str, str], manifest: Path) -> Bundle:
    """Makes the bundle of the libraries beside ``manifest`` and writes it there.

    Images are taken from the folder of ``record`` and packed first.
    """
    read = read_bundle(record)
    write_packs(read, record.parent, manifest.parent)
    bundle = make_bundle(read, toolchain, manifest.parent)
    write_if_changed(manifest, dump(bundle.to_json()))
    return bundle


def make_bundle(record: Bundle, toolchain: Mapping[str, str], folder: Path) -> Bundle:
    """The bundle of the artifacts in ``folder``, which were compiled from what ``record`` tells.

    `ToolchainError` for one that is missing, of another machine or architecture, above its level,
    without one of its symbols, or in need of a library that nobody declared.
    """
    artifacts: list[Artifact] = []
    resources: dict[Target, Mapping[str, Resources]] = {}
    for artifact in record.artifacts:
        path = folder / artifact.path
        content = _content(path)
        check = _check_library if artifact.target.backend == "cpu" else check_pack
        needs, resources[artifact.target] = check(record, artifact, path, content)
        digest = hashlib.sha256(content).hexdigest()
        artifacts.append(replace(artifact, sha256=digest, size=len(content), needs=needs))
    return replace(
        record,
        artifacts=tuple(artifacts),
        toolchain=dict(sorted(toolchain.items())),
        kernels=tuple(_taking(kernel, resources) for kernel in record.kernels),
    )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ToolchainError(f"{path}: it cannot be read: {error.strerror}") from None


def _taking(
    kernel: KernelEntry, resources: Mapping[Target, Mapping[str, Resources]]
) -> KernelEntry:
    """``kernel`` with what the entry points of its variants take, as far as it is known."""

    def taken(variant: VariantEntry) -> tuple[Resources, ...]:
        known = resources[variant.target]
        found = (known.get(symbol, Resources(symbol)) for _, symbol in variant.launch.entries)
        return tuple(each for each in found if each != Resources(each.symbol))

    return replace(kernel, variants=tuple(replace(v, resources=taken(v)) for v in kernel.variants))


def read_bundle(path: Path) -> Bundle:
    """The bundle or record at ``path``; `BundleError` for anything else."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: the bundle cannot be read: {error.strerror}") from None
    return Bundle.read(content, str(path))


def _check_library(record: Bundle, artifact: Artifact, path: Path, content: bytes) -> Checked:
    """The least CPU level that the bytes of a library need."""
    library = parse_library(path, content)
    level = check_level(library, artifact.target.arch)
    _check_symbols(library, _symbols(record, artifact))
    _check_loading(library)
    return level, {}


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
