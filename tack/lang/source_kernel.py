"""What ``@tack.source_kernel`` captured: a declaration of what its author wrote in C, CUDA, ....

The function under the decorator says what a call needs to know: the names of the parameters, what
their annotations say, and over which iterations the parallel loop runs. What an iteration does is
in the author's templates, one for each language, files beside the module.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tack.lang.bindings import Declaration
from tack.lang.definition import KernelDefinition
from tack.lang.source import SourceUnavailable
from tack.model.errors import UnsupportedError
from tack.model.signature import ArraySpec, Spec, TemplateSpec
from tack.model.spelling import advice

__all__ = ["SourceKernelDefinition"]


class SourceKernelDefinition(KernelDefinition):
    """A kernel whose iterations its author wrote; the callable has it as ``definition``.

    ``written`` names the arrays that it writes, ``noalias`` says whether it has a second entry
    point that is compiled for arrays that do not overlap.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        templates: Mapping[str, str],
        writes: str | Sequence[str],
        noalias: bool,
        **options: Any,
    ) -> None:
        super().__init__(function, **options)
        self.options  # noqa: B018 - a wrong one is refused here
        self.written = (writes,) if isinstance(writes, str) else tuple(writes)
        self.noalias = noalias
        self._package: str = function.__globals__.get("__package__") or ""
        self._declared = dict(templates)
        self._templates = {
            language: self._in_package(language, name) for language, name in templates.items()
        }
        self._check()
        folder = os.path.abspath(os.path.dirname(function.__code__.co_filename))
        for _ in filter(None, self._package.split(".")):
            folder = os.path.dirname(folder)
        self.root = folder

    def _in_package(self, language: str, name: object) -> str:
        """The name of a template from the folder above its package on, in parts by ``/``."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"{self.name}: {language}={name!r} is no name of a file")
        parts = self._package.split(".") if self._package else []
        path = posixpath.normpath(posixpath.join(*parts, name.replace("\\", "/")))
        inside = not parts or path.startswith(f"{parts[0]}/")
        if posixpath.isabs(path) or os.path.isabs(name) or path.startswith("../") or not inside:
            where = f"the package {parts[0]!r}" if parts else "the module's folder"
            raise ValueError(
                f"{self.name}: the template {language}={name!r} lies outside of {where}, which "
                "would not ship it; put it beside the module and name it relative to that"
            )
        return path

    def _check(self) -> None:
        if not self._templates:
            raise TypeError(
                f"{self.name}: no template is named; write c='{self.function.__name__}.c.j2' for "
                "the CPU, and cuda=, hip= or metal= for GPUs"
            )
        if not self.written:
            raise ValueError(f"{self.name}: writes= names no array, so the kernel has no effect")
        for number, name in enumerate(self.written):
            if name not in self.parameters:
                raise ValueError(
                    f"{self.name}: writes={name!r} is no parameter; {advice(name, self.parameters)}"
                )
            if name in self.written[:number]:
                raise ValueError(f"{self.name}: writes= names {name!r} twice")

    @property
    def declared(self) -> Mapping[str, Any]:
        """What the decorator was given, by content."""
        facts: dict[str, object] = dict(sorted(self._declared.items()))
        facts |= {"writes": self.written, "noalias": self.noalias}
        words = ", ".join(f"{name}={value!r}" for name, value in facts.items())
        return {"@tack.source_kernel": Declaration(words)}

    def template(self, language: str) -> str:
        """The name of the template in a language, such as ``package/folder/saxpy.c.j2``.

        `UnsupportedError` where the kernel has none, `SourceUnavailable` where the file is missing.
        """
        if language not in self._templates:
            have = ", ".join(self._templates)
            raise UnsupportedError(
                f"{self.name} has templates in {have} alone, and this needs one in {language}; "
                f"write it, and {language}= in @tack.source_kernel"
            )
        name = self._templates[language]
        if not os.path.isfile(self.path(name)):
            raise SourceUnavailable(
                f"{self.name}: the template {name} is not there ({self.path(name)}), so nothing "
                "can be compiled from it; put it beside the module and let the package ship it, "
                "or ship a prebuilt variant"
            )
        return name

    def path(self, name: str) -> str:
        """Where a template is."""
        return os.path.join(self.root, *name.split("/"))

    def misfit(self, name: str, spec: Spec) -> str | None:
        """Why a parameter cannot be ``spec``, in words after its name, or None."""
        if isinstance(spec, TemplateSpec):
            return (
                f"is an object ({spec.type}), and a source kernel takes numbers, vectors and "
                "arrays; pass what it holds"
            )
        if name in self.written and not isinstance(spec, ArraySpec):
            return f"is among what the kernel writes, so it is an array, and no call has {spec}"
        return None
