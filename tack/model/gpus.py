"""GPU architectures: what each can hold and run, and where code for it may run.

CUDA: "CUDA C++ Programming Guide" 13.0, section "Compute Capabilities", and "CUDA Compiler Driver
NVCC" 13.0, "GPU Feature List" for the family (f) and architecture (a) specific targets. HIP: "User
Guide for AMDGPU Backend" of LLVM, table "AMDGPU Processors", and the ISA documents of CDNA and
RDNA. Metal: "Metal Feature Set Tables" and "Metal Shading Language Specification", Apple, 2024.
"""

from __future__ import annotations

import re
from typing import Final

from tack.model.record import Record

__all__ = ["GPUS", "Gpu", "runs_on"]


class Gpu(Record):
    """One architecture: limits in threads, bytes and registers, and types with arithmetic.

    ``lanes`` run in step. ``grid`` are the greatest numbers of blocks along x, y and z, ``block``
    those of threads, ``threads`` those of a whole block. ``shared`` bytes can be declared,
    ``shared_most`` asked for at a launch. ``registers`` are those of a thread. ``native`` are the
    narrow floats that it computes with; ``lacks`` are scalar types that it has not.
    """

    lanes: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int
    shared: int
    shared_most: int
    registers: int
    native: frozenset[str]
    lacks: frozenset[str] = frozenset()


_KIB: Final = 1024
_CUDA_GRID: Final = (2**31 - 1, 65535, 65535)
_HIP_GRID: Final = (2**31 - 1, 65535, 65535)
_METAL_GRID: Final = (2**31 - 1, 2**31 - 1, 2**31 - 1)
_F16: Final = frozenset({"f16"})
_BOTH: Final = frozenset({"f16", "bf16"})
_WITH_FP8: Final = _BOTH | {"f8e4m3", "f8e5m2"}


def _cuda(shared_most: int, native: frozenset[str]) -> Gpu:
    limits = (32, _CUDA_GRID, (1024, 1024, 64), 1024, 48 * _KIB)
    return Gpu(*limits, shared_most * _KIB, 255, native)


def _hip(lanes: int, native: frozenset[str], shared: int = 64) -> Gpu:
    limits = (lanes, _HIP_GRID, (1024, 1024, 1024), 1024, shared * _KIB)
    return Gpu(*limits, shared * _KIB, 512 if lanes == 64 else 256, native)


def _metal(native: frozenset[str]) -> Gpu:
    limits = (32, _METAL_GRID, (1024, 1024, 1024), 1024, 32 * _KIB, 32 * _KIB, 128)
    return Gpu(*limits, native, frozenset({"f64"}))


_CUDA: Final = {
    "sm_75": _cuda(64, _F16),
    "sm_80": _cuda(163, _BOTH),
    "sm_86": _cuda(99, _BOTH),
    "sm_87": _cuda(163, _BOTH),
    "sm_88": _cuda(99, _BOTH),
    "sm_89": _cuda(99, _WITH_FP8),
    "sm_90": _cuda(227, _WITH_FP8),
    "sm_100": _cuda(227, _WITH_FP8),
    "sm_103": _cuda(227, _WITH_FP8),
    "sm_110": _cuda(227, _WITH_FP8),
    "sm_120": _cuda(99, _WITH_FP8),
    "sm_121": _cuda(99, _WITH_FP8),
}

_SPECIFIC: Final = {
    "sm_90": "a",
    **dict.fromkeys(("sm_100", "sm_103", "sm_110", "sm_120", "sm_121"), "af"),
}
"""Architecture -> the suffixes of its specific targets."""

GPUS: Final[dict[str, dict[str, Gpu]]] = {
    "cuda": {
        **_CUDA,
        **{
            f"{name}{suffix}": _CUDA[name]
            for name, suffixes in _SPECIFIC.items()
            for suffix in suffixes
        },
    },
    "hip": {
        "gfx906": _hip(64, _F16),
        "gfx908": _hip(64, _F16),
        "gfx90a": _hip(64, _F16),
        "gfx942": _hip(64, _F16),
        "gfx950": _hip(64, _BOTH, shared=160),
        "gfx1010": _hip(32, _F16),
        "gfx1030": _hip(32, _F16),
        "gfx1100": _hip(32, _F16),
        "gfx1101": _hip(32, _F16),
        "gfx1102": _hip(32, _F16),
        "gfx1150": _hip(32, _F16),
        "gfx1151": _hip(32, _F16),
        "gfx1200": _hip(32, _BOTH),
        "gfx1201": _hip(32, _BOTH),
    },
    "metal": {
        "metal3.0": _metal(_F16),
        "metal3.1": _metal(_BOTH),
        "metal3.2": _metal(_BOTH),
    },
}
"""Backend -> architecture -> what it is. Of Metal an architecture is the language's version."""


def runs_on(backend: str, arch: str, device: str) -> bool:
    """Whether code for ``arch`` runs on a device of architecture ``device`` of the same backend.

    A CUDA image runs on devices of its major version and no lower minor one; a family one on the
    devices of its family, which are those of the major version from its own on; an architecture
    specific one on that device alone. Text of a Metal version is compiled by that one and later.
    """
    if device not in GPUS[backend]:
        return False
    if backend == "cuda":
        major, minor, suffix = _cuda_version(arch)
        device_major, device_minor, _ = _cuda_version(device)
        if suffix == "a":
            return (major, minor) == (device_major, device_minor)
        return major == device_major and minor <= device_minor
    if backend == "metal":
        return _metal_version(arch) <= _metal_version(device)
    return arch == device


def _cuda_version(arch: str) -> tuple[int, int, str]:
    match = re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch)
    assert match is not None, arch
    return int(match[1]), int(match[2]), match[3]


def _metal_version(arch: str) -> tuple[int, ...]:
    return tuple(map(int, arch.removeprefix("metal").split(".")))
