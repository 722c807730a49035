"""The same programs in NumPy and SciPy, as one writes them there: no loop of a kernel is copied.

Each function takes arrays and gives new ones, in the type of its arguments. They are what the
kernels are checked against (in float64) and timed beside (in the type of the kernel).
"""

from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

__all__ = [
    "accelerations",
    "cells",
    "classified",
    "crowd",
    "densities",
    "discriminants",
    "distances",
    "escape_times",
    "means",
    "moved",
    "product_of",
    "pulls",
    "reacted",
    "sums_of_blocks",
    "traced",
]

Array = NDArray[Any]


def escape_times(xs: Array, ys: Array, limit: int) -> Array:
    """All points at once, and at each step those that are still inside."""
    points = [each.ravel() for each in np.meshgrid(xs, ys)]
    times = np.full(len(points[0]), limit, dtype=np.int32)
    alive = np.arange(len(times))
    x = np.zeros_like(points[0])
    y = np.zeros_like(x)
    for step in range(limit):
        outside = x * x + y * y > 4
        times[alive[outside]] = step
        alive, x, y = alive[~outside], x[~outside], y[~outside]
        a, b = (each[alive] for each in points)
        x, y = x * x - y * y + a, 2 * x * y + b
    return times.reshape(len(ys), len(xs))


def accelerations(positions: Array, masses: Array, softening: float) -> Array:
    """All pairs at once, a block of bodies at a time."""
    result = np.empty_like(positions)
    for block in np.array_split(np.arange(len(positions)), -(-len(positions) // 256)):
        apart = positions - positions[block, None]
        squares = np.einsum("ijk,ijk->ij", apart, apart) + positions.dtype.type(softening) ** 2
        result[block] = np.einsum("ij,ijk->ik", masses * squares**-1.5, apart)
    return result


def moved(positions: Array, velocities: Array, pulls: Array, dt: float) -> tuple[Array, Array]:
    """Positions and velocities after a step."""
    faster = velocities + dt * pulls
    return positions + dt * faster, faster


def pulls(positions: Array, masses: Array, softening: float) -> Array:
    """For each body the sum of the strengths of all pulls on it, in float64."""
    apart = cdist(positions, positions)
    result: Array = (apart * (apart**2 + softening**2) ** -1.5) @ masses.astype(np.float64)
    return result


STENCIL = np.array([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]])


def reacted(u: Array, v: Array, feed: float, kill: float, dt: float) -> tuple[Array, Array]:
    """Both chemicals after a step; SciPy convolves."""
    stencil = STENCIL.astype(u.dtype)
    rate = u * v**2
    spread_u, spread_v = (ndimage.convolve(each, stencil, mode="wrap") for each in (u, v))
    return u + dt * (spread_u - rate + feed * (1 - u)), v + dt * (
        spread_v / 2 + rate - (feed + kill) * v
    )


def classified(field: Array, level: float) -> tuple[Array, Array]:
    """The case of each cell, from bits packed; the cut edges, from where neighbours differ."""
    below = field < field.dtype.type(level)
    halves = slice(None, -1), slice(1, None)
    # (x, y) of the corners, in their order round a face.
    ring = ((0, 0), (1, 0), (1, 1), (0, 1))
    corners = [below[halves[z], halves[y], halves[x]] for z in (0, 1) for x, y in ring]
    cases = np.packbits(np.stack(corners), axis=0, bitorder="little")[0]
    cut = np.zeros(cases.shape, dtype=np.uint8)
    for axis in range(3):
        differ = np.diff(below, axis=axis)
        for sides in product(halves, repeat=2):
            places = list(sides)
            places.insert(axis, slice(None))
            cut += differ[tuple(places)]
    return cases, cut


def product_of(starts: Array, columns: Array, values: Array, x: Array) -> Array:
    """SciPy's product."""
    matrix = sparse.csr_array((values, columns, starts), shape=(len(starts) - 1, len(x)))
    result: Array = matrix @ x
    return result


def cells(positions: Array, reach: float, shape: tuple[int, int, int]) -> Array:
    """The number of each particle's cell."""
    places = np.floor(positions / positions.dtype.type(reach)).astype(np.int64)
    result: Array = np.ravel_multi_index(tuple(places.T[::-1]), shape[::-1])
    return result


def densities(positions: Array, reach: float, factor: float) -> Array:
    """Pairs of neighbours from a tree of SciPy's, each pair once."""
    pairs = cKDTree(positions).query_pairs(reach, output_type="ndarray")
    apart = positions[pairs[:, 0]] - positions[pairs[:, 1]]
    shares = (reach**2 - np.einsum("ij,ij->i", apart, apart)) ** 3
    ends = pairs.ravel()
    sums = np.bincount(ends, weights=np.repeat(shares, 2), minlength=len(positions))
    return np.asarray(factor * (sums + reach**6), dtype=positions.dtype)


def crowd(positions: Array, reach: float) -> int:
    """The greatest number of particles within reach of one, itself included."""
    # A little more, since a kernel rounds distances.
    lengths = cKDTree(positions).query_ball_point(positions, 1.001 * reach, return_length=True)
    return int(lengths.max())


def rays(shape: tuple[int, int], focal: float, real: Any) -> Array:
    """A vector through the middle of each pixel, not of length 1."""
    height, width = shape
    y, x = np.mgrid[:height, :width].astype(real)
    depth = np.full(shape, focal, dtype=real)
    return np.stack([(x + 0.5 - width / 2) / width, (y + 0.5 - height / 2) / width, depth], axis=-1)


def discriminants(spheres: Array, focal: float, shape: tuple[int, int]) -> Array:
    """For each sphere and pixel ``radius**2`` less the squared distance of ray and centre."""
    ahead = rays(shape, focal, spheres.dtype)
    across = [np.cross(ahead, sphere[:3]) for sphere in spheres]
    squares = np.stack([(each**2).sum(-1) for each in across]) / (ahead**2).sum(-1)
    result: Array = spheres[:, 3, None, None] ** 2 - squares
    return result


def traced(spheres: Array, focal: float, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Depth and normals, by the quadratic equation for each sphere in turn."""
    ahead = rays(shape, focal, spheres.dtype)
    a = (ahead**2).sum(-1)
    nearest = np.full(shape, np.inf, dtype=spheres.dtype)
    normals = np.zeros((*shape, 3), dtype=spheres.dtype)
    for sphere in spheres:
        centre, radius = sphere[:3], sphere[3]
        b = ahead @ centre
        with np.errstate(invalid="ignore"):
            t = (b - np.sqrt(b**2 - a * (centre @ centre - radius**2))) / a
        hit = t < nearest
        nearest[hit] = t[hit]
        normals[hit] = (t[hit, None] * ahead[hit] - centre) / radius
    return np.where(np.isfinite(nearest), nearest * np.sqrt(a), 0), normals


def distances(points: Array, centroids: Array) -> Array:
    """The squares of the distances of all points from all centroids, in float64."""
    result: Array = cdist(points, centroids, "sqeuclidean")
    return result


def sums_of_blocks(points: Array, labels: Array, block: int, clusters: int) -> tuple[Array, Array]:
    """The sum and the number of each cluster's points in each block."""
    ends = [*range(0, len(points), block), len(points)]
    chosen = labels[:, None] == np.arange(clusters)
    sums = [chosen[a:b].T.astype(points.dtype) @ points[a:b] for a, b in pairwise(ends)]
    counts = [chosen[a:b].sum(axis=0) for a, b in pairwise(ends)]
    return np.stack(sums), np.stack(counts)


def means(sums: Array, counts: Array, centroids: Array) -> Array:
    """The mean of each cluster, or its centroid if it is empty."""
    total = counts.sum(axis=0)[:, None]
    result: Array = np.where(total > 0, sums.sum(axis=0) / np.maximum(total, 1), centroids)
    return result.astype(centroids.dtype)
