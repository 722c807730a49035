"""The variant index: which bundle belongs to a kernel, and what is in it."""

from __future__ import annotations

import os
import sys

from tack.lang.definition import KernelDefinition
from tack.model.abi import ABI
from tack.model.bundle import FOLDER, MANIFEST, Bundle, KernelEntry
from tack.model.errors import BundleError
from tack.model.locks import fork_safe_lock
from tack.model.record import Record

__all__ = ["PackageIndex", "index_for"]


class PackageIndex(Record):
    """A bundle that was read, and the folder it lies in."""

    folder: str
    bundle: Bundle

    def kernel(self, name: str) -> KernelEntry | None:
        """The entry of the kernel ``name``, or None."""
        return next((kernel for kernel in self.bundle.kernels if kernel.name == name), None)


_read: dict[str, PackageIndex] = {}
_lock = fork_safe_lock()


def index_for(definition: KernelDefinition) -> PackageIndex | None:
    """The index of the package that ``definition`` belongs to, or None if it ships no bundle.

    The bundle is that of the innermost package around the kernel's module that has one. Raises
    `BundleError` where it is damaged, truncated or was made for something else; such a bundle is
    read again at the next call.
    """
    found = _find(definition.module)
    if found is None:
        return None
    package, folder = found
    with _lock:
        index = _read.get(folder)
        if index is None:
            index = _read[folder] = PackageIndex(folder, _load(package, folder))
    return index


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


def _load(package: str, folder: str) -> Bundle:
    import json

    place = os.path.join(folder, MANIFEST)
    try:
        with open(place, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{place}: the bundle cannot be read ({error}); reinstall") from None
    bundle = Bundle.from_json(data, place)
    if bundle.package != package:
        raise BundleError(f"{place}: the bundle is of {bundle.package!r}, not of {package!r}")
    if bundle.abi != ABI:
        raise BundleError(
            f"{place}: the bundle has ABI {bundle.abi} and this tack speaks {ABI}; install the "
            f"tack it was built with ({bundle.tack}) or rebuild it"
        )
    return bundle
