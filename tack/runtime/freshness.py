"""Is a prebuilt variant the code that is running?

A cheap first check decides almost every call: the values that the kernel captured are compared
always, and a file whose bytes are those of the build needs no parsing. Otherwise the kernel's
source is read, and the key of the running code is compared with the variant's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from tack.lang.definition import FunctionDefinition, KernelDefinition
from tack.lang.fingerprint import captured_state
from tack.lang.source import SourceUnavailable, stamp_file
from tack.model.bundle import Captured, KernelEntry, VariantEntry, is_template
from tack.model.errors import CompileError
from tack.model.keys import sha256, source_key
from tack.model.signature import Signature

__all__ = ["Freshness"]

_Definition = KernelDefinition | FunctionDefinition


class Freshness:
    """What is known about one kernel of one bundle; each question is answered once."""

    def __init__(
        self, definition: KernelDefinition, entry: KernelEntry, modules: Mapping[str, str]
    ) -> None:
        self._definition = definition
        self._entry = entry
        self._modules = modules
        state = captured_state(definition, entry.captured)
        self._definitions = state.definitions
        self._stale = self._captured_reason(state.difference)
        self._trusted = self._stale is None and self._files_unchanged(
            entry.modules, state.definitions
        )
        self._digest: str | None = None

    def refusal(self, variant: VariantEntry, given: Signature) -> str | None:
        """Why ``variant`` is not the running code, or None; ``given`` is the call's signature."""
        if self._stale is not None:
            return self._stale
        if variant.options != self._definition.options:
            return f"it was built with {variant.options}, the kernel has {self._definition.options}"
        if given.templates:
            return self._template_refusal(variant, given)
        edited = self._edited_file(variant)
        if edited is not None:
            return f"the template {edited} was edited since the build; rebuild the package"
        if self._trusted:
            return None
        if self._digest is None:
            try:
                self._digest = self._definition.fingerprint().digest
            except SourceUnavailable as error:
                if not _has_source(self._definitions):
                    self._trusted = True  # a frozen application: its code is the package's own
                    return None
                self._stale = str(error.message)
                return self._stale
            except CompileError as error:
                self._stale = error.message
                return self._stale
        return self._edited(variant, self._digest)

    def _template_refusal(self, variant: VariantEntry, given: Signature) -> str | None:
        """As `refusal`, for the code of the kernel and of the templates that it is given."""
        state = captured_state(self._definition, variant.captured, given)
        reason = self._captured_reason(state.difference)
        if reason is not None:
            return reason
        if self._trusted and self._files_unchanged(variant.modules, state.definitions):
            return None
        try:
            digest = self._definition.fingerprint(given).digest
        except SourceUnavailable as error:
            frozen = not _has_source((*self._definitions, *state.definitions))
            return None if frozen else error.message
        except CompileError as error:
            return error.message
        return self._edited(variant, digest)

    def _edited(self, variant: VariantEntry, digest: str) -> str | None:
        files = {name: self._modules[name] for name in filter(is_template, variant.modules)}
        if source_key(digest, variant.signature, variant.options, files) == variant.source_key:
            return None
        modules = ", ".join((*self._entry.modules, *variant.modules))
        return f"the source was edited since the build (in {modules}); rebuild the package"

    def _edited_file(self, variant: VariantEntry) -> str | None:
        """The first template of a source kernel that is not that of the build, or None.

        One that is not there was not shipped, and nobody can have edited it.
        """
        names = tuple(filter(is_template, variant.modules))
        if not names:
            return None
        from tack.lang.source_kernel import SourceKernelDefinition

        definition = self._definition
        if not isinstance(definition, SourceKernelDefinition):
            return None  # the file of its module was edited, then
        for name in names:
            try:
                with open(definition.path(name), "rb") as file:
                    content = file.read()
            except FileNotFoundError:
                continue
            except OSError:
                return name
            if sha256(content) != self._modules[name]:
                return name
        return None

    def _captured_reason(self, difference: tuple[Captured, str] | None) -> str | None:
        if difference is None:
            return None
        item, now = difference
        name = item.name.lstrip("=")
        owner = item.scope.rpartition(">")[2].lstrip("@") or self._definition.function.__name__
        return f"{name!r} in {owner} is {now}, and it was built with {item.value}"

    def _files_unchanged(self, names: Iterable[str], definitions: Iterable[_Definition]) -> bool:
        """Whether each file has the bytes of the build and none was edited after its import."""
        for name in names:
            path = _path_of(name)
            try:
                with open(path or "", "rb") as file:
                    content = file.read()
            except OSError:
                return False
            if sha256(content) != self._modules[name]:
                return False
        return all(d.stamp == stamp_file(d.function.__code__.co_filename) for d in definitions)


def _has_source(definitions: Iterable[_Definition]) -> bool:
    return any(os.path.exists(d.function.__code__.co_filename) for d in definitions)


def _path_of(module: str) -> str | None:
    path = getattr(sys.modules.get(module), "__file__", None)
    return path if isinstance(path, str) else None
