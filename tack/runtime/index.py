"""The variant index: which bundle belongs to a kernel, and what is in it."""

from __future__ import annotations

import os
import sys
from typing import Any

from tack.lang.definition import KernelDefinition
from tack.model.abi import ABI
from tack.model.bundle import FOLDER, MANIFEST, Bundle, KernelEntry, document
from tack.model.errors import BundleError
from tack.model.locks import fork_safe_lock
from tack.model.record import Record
from tack.model.targets import GPU_BACKENDS

__all__ = ["PackageIndex", "index_for"]


class PackageIndex(Record):
    """What a bundle says of one kernel, and the folder it lies in."""

    folder: str
    bundle: Bundle
    entry: KernelEntry | None
    """The entry of the kernel with its variants for CPUs; None if the bundle has none."""
    elsewhere: tuple[str, ...] = ()
    """The targets of its other variants."""


_read: dict[str, dict[str, Any]] = {}
_lock = fork_safe_lock()


def index_for(definition: KernelDefinition) -> PackageIndex | None:
    """The index of the package that ``definition`` belongs to, or None if it ships no bundle.

    The bundle is that of the innermost package around the kernel's module that has one; of its
    kernels only this one is parsed, so that a first call costs no more in a large package. Raises
    `BundleError` where it is damaged, truncated or was made for something else; such a bundle is
    read again at the next call.
    """
    found = _find(definition.module)
    if found is None:
        return None
    package, folder = found
    place = os.path.join(folder, MANIFEST)
    with _lock:
        data = _read.get(folder) or _load(place)
        own, elsewhere = _for_cpus(data, definition.name)
        bundle = _bundle(own, package, place)
        _read[folder] = data
    return PackageIndex(folder, bundle, next(iter(bundle.kernels), None), elsewhere)


def _find(module: str) -> tuple[str, str] | None:
    """The package around ``module`` that has a bundle, and the bundle's folder."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        package = ".".join(parts[:length])
        for path in getattr(sys.modules.get(package), "__path__", ()):
            folder = os.path.join(path, FOLDER)
            if os.path.exists(os.path.join(folder, MANIFEST)):
                return package, folder
    return None


def _load(place: str) -> dict[str, Any]:
    try:
        with open(place, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BundleError(f"{place}: the bundle cannot be read ({error}); reinstall") from None
    return document(content, place)


def _for_cpus(data: dict[str, Any], kernel: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The document with one kernel and its variants for CPUs, and the targets of the others.

    Variants for GPUs are not parsed: they would cost a call that cannot take them.
    """
    rows = data.get("kernels")
    if not isinstance(rows, list):
        return data, ()
    own: list[Any] = []
    elsewhere: dict[str, None] = {}
    for row in rows:
        if isinstance(row, dict) and row.get("name") != kernel:
            continue
        variants = row.get("variants") if isinstance(row, dict) else None
        if isinstance(variants, list):
            gpus = [_gpu_targets(variant) for variant in variants]
            elsewhere |= dict.fromkeys(target for targets in gpus for target in targets)
            kept = [v for v, gpu in zip(variants, gpus, strict=True) if not gpu]
            own.append(row | {"variants": kept})
        else:
            own.append(row)
    return data | {"kernels": own, "skipped": []}, tuple(elsewhere)


def _gpu_targets(variant: object) -> tuple[str, ...]:
    """The targets of a row for GPUs, which is for nothing else; none of any other row."""
    targets = variant.get("targets") if isinstance(variant, dict) else None
    names = tuple(targets) if isinstance(targets, dict) else ()
    return names if all(name.partition(":")[0] in GPU_BACKENDS for name in names) else ()


def _bundle(data: dict[str, Any], package: str, place: str) -> Bundle:
    bundle = Bundle.from_json(data, place)
    if bundle.package != package:
        raise BundleError(f"{place}: the bundle is of {bundle.package!r}, not of {package!r}")
    if bundle.abi != ABI:
        raise BundleError(
            f"{place}: the bundle has ABI {bundle.abi} and this tack speaks {ABI}; install the "
            f"tack it was built with ({bundle.tack}) or rebuild it"
        )
    return bundle
