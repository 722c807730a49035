"""One kernel over two data structures: the points of a cell are computed, or looked up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tack

__all__ = ["ExplicitCells", "StructuredCells", "avg", "prebuilt"]


@tack.device_class
class StructuredCells:
    """The hexahedra of a grid of ``nx`` by ``ny`` by ``nz`` points; x runs fastest."""

    points_per_cell = 8

    def __init__(self, nx: int, ny: int, nz: int) -> None:
        self.nx, self.ny, self.nz = nx, ny, nz

    @property
    def count(self) -> int:
        """The number of cells."""
        return (self.nx - 1) * (self.ny - 1) * (self.nz - 1)

    @tack.func
    def get_point_id(self, c: tack.i64, v: tack.i64) -> Any:
        """The number of point ``v`` of cell ``c``: its coordinates follow from the two."""
        i = c % (self.nx - 1) + v % 2
        j = c // (self.nx - 1) % (self.ny - 1) + v // 2 % 2
        k = c // ((self.nx - 1) * (self.ny - 1)) + v // 4
        return i + self.nx * (j + self.ny * k)


@tack.device_class
class ExplicitCells:
    """Hexahedra whose points are listed: 8 numbers for each cell."""

    points_per_cell = 8

    def __init__(self, connectivity: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        self.connectivity = connectivity

    @property
    def count(self) -> int:
        """The number of cells."""
        return int(self.connectivity.size) // self.points_per_cell

    @tack.func
    def get_point_id(self, c: tack.i64, v: tack.i64) -> Any:
        """The number of point ``v`` of cell ``c``."""
        return self.connectivity[c * self.points_per_cell + v]


@tack.kernel
def avg(cs, data: tack.Array, out: tack.Array, n: tack.i64) -> None:
    """Store the mean of the point data of each of the ``n`` cells of ``cs`` in ``out``."""
    for c in range(n):
        total = 0.0
        for v in range(cs.points_per_cell):
            total = total + data[cs.get_point_id(c, v)]
        out[c] = total / float(cs.points_per_cell)


def prebuilt() -> Iterator[tuple[object, ...]]:
    """What the wheel ships of `avg`: both kinds of cells, for float32 and float64 data."""
    structured = tack.spec(StructuredCells, nx="i64", ny="i64", nz="i64")
    explicit = tack.spec(ExplicitCells, connectivity="i32[:]")
    for cells in (structured, explicit):
        for data in ("f32[:]", "f64[:]"):
            yield cells, data, data, "i64"
