"""Limits of GPUs: how large a workgroup may be, what its threads share, how many a grid has.

Sources. CUDA: "CUDA Programming Guide" 13, "Compute Capabilities", the tables of device and of
memory information; no device of compute capability 8.8 is listed there, so that it has what every
one has. HIP: "HIP Programming Guide", ``hipDeviceProp_t`` and ``hipModuleLaunchKernel`` (fewer than
2^32 threads along an axis); LLVM's ``AMDGPU.td`` (addressable local memory) and "User Guide for
AMDGPU Backend" (wavefronts, registers). Metal: Apple's "Metal Feature Set Tables"; a thread's place
in the grid is a ``uint3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tack.model.record import Record

__all__ = ["Axes", "Limits", "cuda_limits", "grid_of", "hip_limits", "least_of", "metal_limits"]

Axes = tuple[int, int, int]
"""A number for each of x, y and z."""

_KIB: Final = 1024
_WORD: Final = 2**32


class Limits(Record):
    """What a workgroup and a grid may have; None where that is not limited, or not published.

    ``local_max``: threads of a workgroup along each axis, ``local_prod_max``: in all.
    ``global_max``: workgroups of a grid along each axis, ``global_prod_max``: threads along each.
    ``shared_max``: bytes for the shared arrays of a workgroup, ``shared_static``: how many of these
    code may declare; more the launcher gives. ``registers`` of 32 bits of a thread,
    ``local_registers`` of a workgroup. ``lanes``: threads that run in step.
    """

    local_max: Axes
    local_prod_max: int
    shared_max: int
    shared_static: int
    lanes: int
    global_max: Axes | None = None
    global_prod_max: Axes | None = None
    registers: int | None = None
    local_registers: int | None = None


_CUDA_SHARED: Final = {
    75: 64,
    80: 163,
    86: 99,
    87: 163,
    88: 48,
    89: 99,
    90: 227,
    100: 227,
    103: 227,
    110: 227,
    120: 99,
    121: 99,
}
"""Compute capability -> KiB of shared memory that a workgroup may ask for."""

_GRID: Final = (2**31 - 1, 65535, 65535)


def cuda_limits(capability: int) -> Limits:
    """The limits of a compute capability, such as 90."""
    return Limits(
        local_max=(1024, 1024, 64),
        local_prod_max=1024,
        shared_max=_CUDA_SHARED[capability] * _KIB,
        shared_static=48 * _KIB,
        lanes=32,
        global_max=_GRID,
        registers=255,
        local_registers=64 * _KIB,
    )


_HIP_SHARED: Final = {"gfx950": 160}
"""Processor -> KiB of shared memory of a workgroup, where that is not 64."""

_HIP_REGISTERS: Final = {"gfx90a": 512, "gfx942": 512, "gfx950": 512}
"""Processor -> vector registers of a thread, where these are not 256."""


def hip_limits(processor: str) -> Limits:
    """The limits of a processor of AMD, such as gfx942."""
    shared = _HIP_SHARED.get(processor, 64) * _KIB
    return Limits(
        local_max=(1024, 1024, 1024),
        local_prod_max=1024,
        shared_max=shared,
        shared_static=shared,
        lanes=64 if processor.startswith("gfx9") else 32,
        global_max=_GRID,
        global_prod_max=(_WORD - 1, _WORD - 1, _WORD - 1),
        registers=_HIP_REGISTERS.get(processor, 256),
    )


def metal_limits() -> Limits:
    """The limits of every GPU that code for Metal runs on."""
    return Limits(
        local_max=(1024, 1024, 1024),
        local_prod_max=1024,
        shared_max=32 * _KIB,
        shared_static=0,
        lanes=32,
        global_prod_max=(_WORD - 1, _WORD - 1, _WORD - 1),
    )


def least_of(several: Sequence[Limits]) -> Limits:
    """What each of several devices allows, which differ in their memory and registers."""
    first = min(several, key=lambda each: (each.shared_max, each.registers or 0))
    others = {(each.local_max, each.global_max, each.global_prod_max) for each in several}
    assert len(others) == 1
    return first


def grid_of(
    extents: Sequence[int],
    local: Sequence[int],
    global_max: Axes | None = None,
    global_prod_max: Axes | None = None,
) -> Axes | None:
    """How many workgroups a launch has along x, y and z; None if there is nothing to run.

    ``extents`` are those of the parallel loop and ``local`` the size of a workgroup along each, the
    last fastest, which is along x. Threads step over the grid, so that one with fewer workgroups
    than there are groups of iterations runs them all; it has those that the limits allow.

    >>> grid_of((5, 1000), (1, 256))
    (4, 5, 1)
    >>> grid_of((2**40,), (256,), (2**31 - 1, 65535, 65535), (2**32 - 1,) * 3)
    (16777215, 1, 1)
    """
    grid = [1, 1, 1]
    axes = zip(reversed(extents), reversed(local), strict=True)
    for axis, (extent, size) in enumerate(axes):
        if extent <= 0:
            return None
        count = -(-extent // size)
        if global_max is not None:
            count = min(count, global_max[axis])
        if global_prod_max is not None:
            count = min(count, global_prod_max[axis] // size)
        grid[axis] = count
    return grid[0], grid[1], grid[2]
