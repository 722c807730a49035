"""The first pass of marching cubes: which of the 256 cases each cell of a field is.

W. E. Lorensen, H. E. Cline: Marching cubes, SIGGRAPH 1987. The corners are numbered as P. Bourke
does in "Polygonising a scalar field": 0 to 3 round the lower face, 4 to 7 above them.
"""

import numpy as np
from numpy.typing import NDArray

import tack

__all__ = ["EDGES", "classify", "cut_edges"]

EDGES = (
    *((0, 1), (1, 2), (2, 3), (3, 0)),
    *((4, 5), (5, 6), (6, 7), (7, 4)),
    *((0, 4), (1, 5), (2, 6), (3, 7)),
)
"""The edges of a cell, by the corners that they join."""


def cut_edges() -> NDArray[np.uint8]:
    """For each case the number of edges that the surface cuts: the vertices that a cell gives."""
    counts = [sum((case >> a ^ case >> b) & 1 for a, b in EDGES) for case in range(256)]
    return np.array(counts, dtype=np.uint8)


@tack.func
def below(field, level, z, y, x):
    """1 if the field is below the level at (z, y, x), else 0."""
    return 1 if field[z, y, x] < level else 0


@tack.kernel
def classify(field, level, table, cases, vertices):
    """The case of each cell, and what ``table`` says about it."""
    for z, y, x in tack.ndrange(cases.shape[0], cases.shape[1], cases.shape[2]):
        case = below(field, level, z, y, x)
        case |= below(field, level, z, y, x + 1) << 1
        case |= below(field, level, z, y + 1, x + 1) << 2
        case |= below(field, level, z, y + 1, x) << 3
        case |= below(field, level, z + 1, y, x) << 4
        case |= below(field, level, z + 1, y, x + 1) << 5
        case |= below(field, level, z + 1, y + 1, x + 1) << 6
        case |= below(field, level, z + 1, y + 1, x) << 7
        cases[z, y, x] = case
        vertices[z, y, x] = table[case]
