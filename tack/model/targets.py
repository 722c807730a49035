"""Targets: a backend and an architecture, and which architecture may run on which device.

The levels of x86-64 are those of the System V psABI (x86-64 supplement, "micro-architecture
levels"); each holds everything of the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tack.model.record import Record
from tack.model.spelling import advice, nearest

if TYPE_CHECKING:
    from tack.model.gpus import Gpu

__all__ = ["CPU_LEVELS", "GPU_BACKENDS", "CpuLevel", "Target", "best_first", "cpu_family"]


GPU_BACKENDS: Final = ("cuda", "hip", "metal")
"""The backends whose targets are in `tack.model.gpus`, which a call on a CPU does not import."""


class CpuLevel(Record):
    """One CPU level: its family, its rank in it, the compiler's name for it.

    ``features`` are the instruction groups that the level adds, as Capstone spells them. The check
    by disassembly reads them, and knows besides what Capstone puts into no group.
    """

    family: str
    rank: int
    march: str
    features: frozenset[str]


CPU_LEVELS: Final[dict[str, CpuLevel]] = {
    "x86-64": CpuLevel(
        "x86-64", 1, "x86-64", frozenset({"cmov", "fpu", "mmx", "mode64", "sse1", "sse2"})
    ),
    "x86-64-v2": CpuLevel("x86-64", 2, "x86-64-v2", frozenset({"sse3", "ssse3", "sse41", "sse42"})),
    "x86-64-v3": CpuLevel(
        "x86-64",
        3,
        "x86-64-v3",
        frozenset({"avx", "avx2", "bmi", "bmi2", "fc16", "fma", "novlx"}),
    ),
    "x86-64-v4": CpuLevel(
        "x86-64", 4, "x86-64-v4", frozenset({"avx512", "bwi", "cdi", "dqi", "vlx"})
    ),
    "aarch64": CpuLevel("aarch64", 1, "armv8-a", frozenset({"neon", "fparmv8"})),
}
"""Every CPU level by name."""


def cpu_family(machine: str) -> str | None:
    """The family of CPU levels of a machine as `platform.machine` names it, or None."""
    return {
        "x86_64": "x86-64",
        "amd64": "x86-64",
        "aarch64": "aarch64",
        "arm64": "aarch64",
    }.get(machine.lower())


class Target(Record):
    """Backend and architecture, written ``cpu:x86-64-v3``.

    >>> Target.parse("cpu:x86-64-v3").runs_on("x86-64-v4")
    True
    """

    backend: str
    arch: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target that ``text`` names; ``ValueError`` with the nearest spelling otherwise."""
        backend, colon, arch = text.partition(":")
        if backend == "cpu" and arch in CPU_LEVELS:
            return cls(backend, arch)
        architectures = _architectures()
        names = [f"{one}:{each}" for one, every in architectures.items() for each in every]
        known = [name for name in names if name.startswith(f"{backend}:")]
        if not (colon and known):
            near = nearest(text, names)
            raise ValueError(
                f"target {text!r} is not <backend>:<architecture> with a backend of: "
                f"{', '.join(sorted(architectures))}{f'; did you mean {near!r}?' if near else ''}"
            )
        if text not in known:
            raise ValueError(
                f"target {text!r}: unknown {backend} architecture {arch!r}; {advice(text, known)}"
            )
        return cls(backend, arch)

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"

    @property
    def level(self) -> CpuLevel:
        """The CPU level of a cpu target."""
        return CPU_LEVELS[self.arch]

    @property
    def gpu(self) -> Gpu | None:
        """What a GPU target is; None of a cpu target."""
        if self.backend not in GPU_BACKENDS:
            return None
        from tack.model.gpus import GPUS

        return GPUS.get(self.backend, {}).get(self.arch)

    def runs_on(self, device: str) -> bool:
        """Whether code for this target runs on a device of architecture ``device``."""
        if self.backend in GPU_BACKENDS:
            from tack.model.gpus import runs_on

            return runs_on(self.backend, self.arch, device)
        have = CPU_LEVELS.get(device)
        return (
            have is not None and have.family == self.level.family and (self.level.rank <= have.rank)
        )


def _architectures() -> dict[str, tuple[str, ...]]:
    """The architectures of every backend. A call on a CPU reads nothing of GPUs."""
    from tack.model.gpus import GPUS

    gpus = {backend: tuple(architectures) for backend, architectures in GPUS.items()}
    return {"cpu": tuple(CPU_LEVELS), **gpus}


def best_first(targets: Iterable[Target]) -> list[Target]:
    """CPU targets from the highest level to the lowest."""
    return sorted(targets, key=lambda t: (t.backend, t.level.family, -t.level.rank))
