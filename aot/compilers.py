"""The compilers of GPU images: where they are, and what to do where there is none."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tack.model.errors import ToolchainError
from tack.model.spelling import counted
from tack.render.gpu_flags import Compiler

if TYPE_CHECKING:
    from tack.aot.plan import Plan

__all__ = ["find_compiler", "named_compiler", "plan_compilers"]


@dataclass(frozen=True, slots=True)
class _Backend:
    """What a backend's compiler is called, in words, and how one gets it."""

    name: str
    variable: str
    extra: str
    others: str
    candidates: Callable[[], Iterator[Compiler]]
    kind_of: Callable[[str], str]


def _nvcc() -> Iterator[Compiler]:
    """Of this Python's packages first, since those are what a project can pin."""
    for folder in _packages("nvidia"):
        yield from (Compiler("nvcc", str(path)) for path in sorted(folder.glob("cu*/bin/nvcc")))
    named = [os.environ.get(variable, "") for variable in ("CUDA_HOME", "CUDA_PATH")]
    yield from (Compiler("nvcc", str(Path(root, "bin", "nvcc"))) for root in named if root)
    found = shutil.which("nvcc")
    if found is not None:
        yield Compiler("nvcc", found)
    yield Compiler("nvcc", "/usr/local/cuda/bin/nvcc")


def _hip() -> Iterator[Compiler]:
    """No hipcc that lies on PATH: which processors one knows depends on the libraries beside it."""
    for folder in _packages("ziglang"):
        yield Compiler("zig", str(folder / "zig"))


def _packages(name: str) -> list[Path]:
    spec = importlib.util.find_spec(name)
    return [] if spec is None else [Path(p) for p in spec.submodule_search_locations or ()]


_BACKENDS: Final[dict[str, _Backend]] = {
    "cuda": _Backend(
        "nvcc",
        "CUDACXX",
        "build-cuda",
        "install a CUDA toolkit, or name an nvcc",
        _nvcc,
        lambda _: "nvcc",
    ),
    "hip": _Backend(
        "a clang for AMD GPUs",
        "HIPCXX",
        "build-hip",
        "name the hipcc or clang of a ROCm",
        _hip,
        lambda name: next((k for k in ("zig", "hipcc") if name.startswith(k)), "clang"),
    ),
}
"""Backend -> its compiler; the others need none."""


def find_compiler(backend: str, named: str = "") -> Compiler | None:
    """The compiler of a backend's images: the one ``named``, else the first that is found.

    None where there is none, and `ToolchainError` where what is named is no program.
    """
    row = _BACKENDS[backend]
    if named:
        found = shutil.which(named)
        if found is None:
            raise ToolchainError(
                f"{row.variable} names {named}, which is no program that can be started; correct "
                f"it, or leave it out and tack looks for {row.name} by itself"
            )
        return Compiler(row.kind_of(Path(found).name), str(Path(found).absolute()))
    return next((each for each in row.candidates() if os.access(each.program, os.X_OK)), None)


def named_compiler(backend: str) -> str:
    """The compiler that the environment names for a backend, as CMake would see it; else empty."""
    return os.environ.get(_BACKENDS[backend].variable, "")


def plan_compilers(plan: Plan, named: Mapping[str, str]) -> dict[str, Compiler]:
    """The compilers that a plan needs, by backend; ``named`` are those that the user chose.

    `ToolchainError` where one is missing, with what wants it and how to get it.
    """
    found: dict[str, Compiler] = {}
    for backend, row in _BACKENDS.items():
        if any(target.backend == backend for target in plan.targets):
            compiler = find_compiler(backend, named.get(backend, ""))
            if compiler is None:
                raise ToolchainError(_missing(plan, backend, row))
            found[backend] = compiler
    return found


def _missing(plan: Plan, backend: str, row: _Backend) -> str:
    wanted = [target.arch for target in plan.targets if target.backend == backend]
    rows = sum(len(unit.sources) for unit in plan.units if unit.target.backend == backend)
    others = list(dict.fromkeys(t.backend for t in plan.targets if t.backend != backend))
    leave = f", or leave {backend} out with TARGETS {' '.join(others)}" if others else ""
    return (
        f"{plan.manifest.path}: targets.{backend}: {counted(rows, 'variant')} for "
        f"{', '.join(wanted)} need {row.name}, and there is none: python -m pip install "
        f'"tack-aot[{row.extra}]", or {row.others} in the environment variable '
        f"{row.variable}{leave}"
    )
