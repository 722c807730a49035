"""``[targets]`` of a manifest: the targets that it asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tack.aot.form import EXAMPLES, check_keys, refuse
from tack.model.gpus import GPUS
from tack.model.spelling import advice
from tack.model.targets import CPU_LEVELS, Target

__all__ = ["wanted_targets"]

_CUDA_FORMS: Final = {"sass": "sm_", "ptx": "compute_"}
"""Key of ``targets.cuda`` -> how the names of its targets begin."""

_KINDS: Final = {"cpu": "CPU level"}
"""Backend -> what its architectures are called, if not that."""


def wanted_targets(path: Path, data: Mapping[str, Any]) -> tuple[Target, ...]:
    """The targets in the table ``[targets]`` of the manifest at ``path``, in its order.

    `ManifestError` with the place of a name that is not known, and the nearest one that is.
    """
    check_keys(path, data, "targets", "targets")
    targets: dict[Target, str] = {}
    for place, target in _listed(path, data):
        first = targets.setdefault(target, place)
        if first != place:
            raise refuse(path, place, f"{target.arch!r} is listed twice; remove one")
    if not targets:
        raise refuse(path, "targets", f"no target is listed; write {EXAMPLES['targets']}")
    return tuple(targets)


def _listed(path: Path, data: Mapping[str, Any]) -> Iterator[tuple[str, Target]]:
    for backend, value in data.items():
        place = f"targets.{backend}"
        if backend == "cuda":
            check_keys(path, value, place, place)
            if not any(value.values()):
                raise refuse(path, place, f"no architecture is listed; write {EXAMPLES[place]}")
            for form, names in value.items():
                known = [name for name in GPUS["cuda"] if name.startswith(_CUDA_FORMS[form])]
                yield from _named(path, backend, f"{place}.{form}", names, known)
        else:
            if not value:
                what = "level" if backend == "cpu" else "architecture"
                raise refuse(path, place, f"no {what} is listed; write {EXAMPLES[place]}")
            yield from _named(path, backend, place, value, GPUS.get(backend, CPU_LEVELS))


def _named(
    path: Path,
    backend: str,
    place: str,
    names: str | list[str],
    known: Collection[str],
) -> Iterator[tuple[str, Target]]:
    """The targets that a text or a list of texts names, with the place of each."""
    alone = isinstance(names, str)
    for index, name in enumerate([names] if isinstance(names, str) else names):
        here = place if alone else f"{place}[{index}]"
        if name not in known:
            kind = _KINDS.get(backend, f"{backend} architecture")
            raise refuse(path, here, f"unknown {kind} {name!r}; {_near(name, known)}")
        yield here, Target(backend, name)


def _near(name: str, known: Collection[str]) -> str:
    """The nearest known name: images and PTX of CUDA are told apart by how names begin."""
    for one, other in (("sm_", "compute_"), ("compute_", "sm_")):
        if name.startswith(one) and name.replace(one, other) in known:
            return f"did you mean {name.replace(one, other)!r}?"
    return advice(name.lower().partition(":")[0], known)  # without the features of AMD's
