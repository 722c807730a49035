"""Is a prebuilt variant the code that is running?

A cheap first check decides almost every call: the values that the kernel captured are compared
always, and a file whose bytes are those of the build needs no parsing. Otherwise the kernel's
source is read, and the key of the running code is compared with the variant's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from tack.lang.definition import KernelDefinition
from tack.lang.fingerprint import captured_state
from tack.lang.source import SourceUnavailable, stamp_file
from tack.model.bundle import Captured, KernelEntry, VariantEntry
from tack.model.errors import CompileError
from tack.model.keys import sha256, source_key

__all__ = ["Freshness"]


class Freshness:
    """What is known about one kernel of one bundle; each question is answered once."""

    def __init__(
        self, definition: KernelDefinition, entry: KernelEntry, modules: Mapping[str, str]
    ) -> None:
        self._definition = definition
        self._entry = entry
        state = captured_state(definition, entry.captured)
        self._definitions = state.definitions
        self._stale = self._captured_reason(state.difference)
        self._trusted = self._stale is None and self._files_unchanged(modules)
        self._digest: str | None = None

    def refusal(self, variant: VariantEntry) -> str | None:
        """Why ``variant`` is not the running code, or None."""
        if self._stale is not None:
            return self._stale
        if variant.options != self._definition.options:
            return f"it was built with {variant.options}, the kernel has {self._definition.options}"
        if self._trusted:
            return None
        if self._digest is None:
            try:
                self._digest = self._definition.fingerprint().digest
            except SourceUnavailable as error:
                if not self._has_source():
                    self._trusted = True  # a frozen application: its code is the package's own
                    return None
                self._stale = str(error.message)
                return self._stale
            except CompileError as error:
                self._stale = error.message
                return self._stale
        key = source_key(self._digest, variant.signature, variant.options)
        if key != variant.source_key:
            modules = ", ".join(self._entry.modules)
            return f"the source was edited since the build (in {modules}); rebuild the package"
        return None

    def _captured_reason(self, difference: tuple[Captured, str] | None) -> str | None:
        if difference is None:
            return None
        item, now = difference
        name = item.name.lstrip("=")
        owner = item.scope.rpartition(">")[2] or self._definition.function.__name__
        return f"{name!r} in {owner} is {now}, and it was built with {item.value}"

    def _files_unchanged(self, modules: Mapping[str, str]) -> bool:
        """Whether each file has the bytes of the build and none was edited after its import."""
        for name in self._entry.modules:
            path = _path_of(name)
            try:
                with open(path or "", "rb") as file:
                    content = file.read()
            except OSError:
                return False
            if sha256(content) != modules[name]:
                return False
        return all(
            d.stamp == stamp_file(d.function.__code__.co_filename) for d in self._definitions
        )

    def _has_source(self) -> bool:
        return any(os.path.exists(d.function.__code__.co_filename) for d in self._definitions)


def _path_of(module: str) -> str | None:
    path = getattr(sys.modules.get(module), "__file__", None)
    return path if isinstance(path, str) else None
