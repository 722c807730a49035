"""Averages point data over both kinds of cells, and checks them against NumPy."""

from __future__ import annotations

import cells
import numpy as np

import tack


def corners(grid: cells.StructuredCells) -> np.ndarray:
    """The points of every cell, by slicing the numbers of the points: 8 for each cell."""
    points = np.arange(grid.nx * grid.ny * grid.nz).reshape(grid.nz, grid.ny, grid.nx)
    halves = (slice(None, -1), slice(1, None))
    found = [points[z, y, x].ravel() for z in halves for y in halves for x in halves]
    return np.stack(found, axis=1)


def main() -> None:
    """Runs every prebuilt variant and says how far it is from NumPy."""
    grid = cells.StructuredCells(31, 23, 17)
    points = corners(grid)
    mesh = cells.ExplicitCells(points.astype(np.int32).ravel())
    random = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        data = random.random(grid.nx * grid.ny * grid.nz).astype(dtype)
        expected = data.astype(np.float64)[points].mean(axis=1)
        for kind in (grid, mesh):
            out = np.zeros(kind.count, dtype)
            cells.avg(kind, data, out, kind.count)
            error = float(np.abs(out - expected).max())
            if error > 8 * np.finfo(dtype).eps:
                raise SystemExit(f"{type(kind).__name__}, {out.dtype}: wrong by {error}")
            chosen = tack.explain(cells.avg, kind, data, out, kind.count).chosen
            assert chosen is not None
            print(f"{type(kind).__name__}, {out.dtype}: within {error:.1e}; {chosen}")


if __name__ == "__main__":
    main()
