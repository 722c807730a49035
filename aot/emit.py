"""Emission: the units of a plan as files, and the record that the bundle step completes.

What is already there with the same bytes is left alone, its time stamp too, so that a compiler
runs only for what changed. No output holds an absolute path or a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from tack.aot.inputs import tack_version
from tack.aot.plan import KernelPlan, Plan, Unit
from tack.aot.units import artifact_path
from tack.compile import assemble
from tack.model.abi import ABI
from tack.model.bundle import Artifact, Bundle, KernelEntry, VariantEntry, grouped
from tack.render.renderer import renderer_for
from tack.render.source import Source

__all__ = [
    "HEADER",
    "INCLUDE",
    "Emitted",
    "depfile",
    "dump",
    "emit_units",
    "headers",
    "record",
    "unit_texts",
    "write_if_changed",
]

HEADER: Final = "tack_abi.h"
"""The header that every unit for a CPU includes; it is written beside them."""

INCLUDE: Final = "include"
"""The folder beside the units of headers that are found where a compiler has none of its own."""

_HEADERS: Final = {
    "cpu": {HEADER: f"c/{HEADER}"},
    "hip": {f"{INCLUDE}/hip/hip_runtime.h": "hip/include/hip/hip_runtime.h"},
}
"""Backend -> the headers that its units include, and where they lie among the templates."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """The files of an emission, by path below their folder, and those whose bytes changed."""

    files: tuple[str, ...]
    changed: tuple[str, ...]


def unit_texts(plan: Plan) -> dict[str, str]:
    """The files of ``plan``: path -> text, the headers that units include first."""
    templates = files("tack.templates")
    texts = {
        path: templates.joinpath(*place.split("/")).read_text(encoding="utf-8")
        for path, place in headers(plan).items()
    }
    for unit in plan.units:
        texts[unit.path] = assemble(unit.path, unit.sources, renderer_for(unit.target))
    return texts


def headers(plan: Plan) -> dict[str, str]:
    """The headers that the units of ``plan`` include: path -> place among the templates."""
    backends = dict.fromkeys(unit.target.backend for unit in plan.units)
    return {path: place for b in backends for path, place in _HEADERS.get(b, {}).items()}


def emit_units(plan: Plan, folder: Path) -> Emitted:
    """Writes every unit of ``plan`` below ``folder``, and the headers that they include."""
    texts = unit_texts(plan)
    changed = tuple(path for path, text in texts.items() if write_if_changed(folder / path, text))
    return Emitted(tuple(texts), changed)


def record(plan: Plan) -> Bundle:
    """The bundle as far as it is known before compiling: its artifacts are without contents."""
    return Bundle(
        package=plan.manifest.package,
        tack=tack_version(),
        abi=ABI,
        toolchain={},
        modules=plan.modules,
        artifacts=tuple(
            Artifact(target, artifact_path(target), sha256="", size=0, needs="")
            for target in plan.targets
        ),
        kernels=tuple(
            KernelEntry(
                name=kernel.name,
                parameters=kernel.definition.parameters,
                modules=kernel.definition.fingerprint().modules,
                captured=kernel.definition.fingerprint().captured,
                variants=_variants(kernel),
            )
            for kernel in sorted(plan.kernels, key=lambda kernel: kernel.name)
        ),
        skipped=plan.skipped,
    )


def _variants(kernel: KernelPlan) -> tuple[VariantEntry, ...]:
    """The variants of a kernel in the order in which a bundle reads back."""
    entries = (_entry(unit, source) for unit in kernel.units for source in unit.sources)
    return tuple(entry for group in grouped(entries) for entry in group)


def _entry(unit: Unit, source: Source) -> VariantEntry:
    variant = source.variant
    return VariantEntry(
        variant.signature,
        variant.target,
        variant.options,
        source.source_key,
        source.launch,
        source.modules,
        source.captured,
        unit="" if unit.target.backend == "cpu" else unit.name,
    )


def depfile(output: Path, inputs: Sequence[Path]) -> str:
    """A Makefile rule by which ``output`` depends on ``inputs``, as Ninja and Make read it."""
    names = " \\\n  ".join(_escape(path) for path in inputs)
    return f"{_escape(output)}: \\\n  {names}\n"


def _escape(path: Path) -> str:
    text = str(path).replace("\\", "/").replace("$", "$$")
    return text.replace("#", "\\#").replace(" ", "\\ ")


def dump(document: Any) -> str:
    """A document as JSON: in ASCII, compact, in the order that it has."""
    return json.dumps(document, separators=(",", ":")) + "\n"


def write_if_changed(path: Path, text: str) -> bool:
    """Writes ``text`` to ``path`` unless that is what it holds; whether it wrote."""
    content = text.encode()
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True
