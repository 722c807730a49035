"""Density of a fluid of particles (smoothed particle hydrodynamics), neighbours by a grid of cells.

M. Mueller, D. Charypar, M. Gross: Particle-based fluid simulation for interactive applications,
SCA 2003, with its kernel "poly6". Cells are as wide as the kernel reaches, so that neighbours lie
in the 27 cells around a particle; the particles of a cell lie together.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tack

__all__ = ["cell_grid", "density", "find_cells", "poly6"]


def poly6(reach: float) -> float:
    """The factor that makes the kernel's integral 1."""
    return 315.0 / (64.0 * math.pi * reach**9)


@tack.kernel
def find_cells(positions, reach, width, height, cells):
    """The number of each particle's cell; a row of cells runs along the first axis."""
    for i in range(positions.shape[0]):
        x = int(positions[i, 0] / reach)
        y = int(positions[i, 1] / reach)
        z = int(positions[i, 2] / reach)
        cells[i] = (z * height + y) * width + x


@tack.kernel
def density(positions, starts, reach, width, height, depth, factor, densities):
    """The density at each particle, for particles of mass 1 that are sorted by cell.

    Cell ``c`` holds the particles ``starts[c]`` to ``starts[c + 1]``.
    """
    for i in range(positions.shape[0]):
        x = int(positions[i, 0] / reach)
        y = int(positions[i, 1] / reach)
        z = int(positions[i, 2] / reach)
        total = 0.0
        for cell_z in range(max(z - 1, 0), min(z + 2, depth)):
            for cell_y in range(max(y - 1, 0), min(y + 2, height)):
                # Three cells along a row are one range of particles.
                row = (cell_z * height + cell_y) * width
                first = starts[row + max(x - 1, 0)]
                last = starts[row + min(x + 2, width)]
                for j in range(first, last):
                    dx = positions[j, 0] - positions[i, 0]
                    dy = positions[j, 1] - positions[i, 1]
                    dz = positions[j, 2] - positions[i, 2]
                    within = reach * reach - (dx * dx + dy * dy + dz * dz)
                    if within > 0.0:
                        total += within * within * within
        densities[i] = factor * total


def cell_grid(
    positions: NDArray[Any], reach: float, shape: tuple[int, int, int]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The positions sorted by cell, and where each of the ``shape`` (x, y, z) cells starts."""
    width, height, depth = shape
    cells = np.empty(len(positions), dtype=np.int32)
    find_cells(positions, reach, width, height, cells)
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(width * height * depth + 1))
    return positions[order], starts.astype(np.int32)
