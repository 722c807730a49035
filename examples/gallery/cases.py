"""Calls of every kernel of the gallery: inputs from a seed, the same in NumPy, and a tolerance.

`cases` gives them at a size and a float type. The tolerances are bounds from a count of roundings
(``UNIT`` is the half of the type's ``eps``), not what happened to come out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import gallery
import numpy as np
import peers
from gallery import kmeans, marching_cubes, sph
from numpy.typing import NDArray

__all__ = ["LARGE", "SMALL", "TINY", "Case", "Sizes", "cases", "spheres_of"]

Array = NDArray[Any]
Results = tuple[Array, ...]


@dataclass(frozen=True)
class Sizes:
    """How large the inputs are."""

    pixels: tuple[int, int]
    limit: int
    bodies: int
    grid: tuple[int, int]
    field: int
    rows: int
    particles: int
    cells: tuple[int, int, int]
    spheres: int
    points: int
    clusters: int


LARGE = Sizes((400, 600), 200, 1500, (512, 512), 96, 60_000, 20_000, (16, 16, 16), 24, 200_000, 12)
"""What the demo runs and times."""

SMALL = Sizes((37, 41), 60, 131, (33, 47), 17, 301, 900, (4, 5, 6), 9, 2611, 7)
"""More than some vectors of numbers, and no multiple of one."""

TINY = Sizes((5, 6), 12, 7, (4, 5), 4, 9, 40, (2, 2, 3), 3, 30, 3)
"""What plain Python can run."""


def _differences(results: Results, exact: Results) -> float:
    """The greatest difference of an element from the exact one; NaN if there is a NaN."""
    found = [0.0]
    for result, true in zip(results, exact, strict=True):
        assert result.shape == true.shape
        found.append(float(np.abs(result.astype(np.float64) - true).max(initial=0)))
    return float(np.max(found))


@dataclass(frozen=True)
class Case:
    """One call of a kernel.

    ``peer`` gives what the arrays ``outputs`` (positions in ``arguments``) should hold afterwards,
    computed by NumPy in a float type; ``exact`` is the type for the check. ``difference`` is how
    far results are from that, at most ``tolerance``, for the ``reason`` given.
    """

    program: str
    kernel: Any
    arguments: tuple[Any, ...]
    outputs: tuple[int, ...]
    peer: Callable[[Any], Results]
    tolerance: float
    reason: str
    exact: Any = np.float64
    difference: Callable[[Results, Results], float] = field(default=_differences)

    def fresh(self) -> tuple[Any, ...]:
        """The arguments, arrays copied: kernels change them."""
        return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments)

    def results(self, arguments: tuple[Any, ...]) -> Results:
        """The arrays among ``arguments`` that the kernel fills."""
        return tuple(arguments[k] for k in self.outputs)

    def error(self, results: Results) -> float:
        """How far the results are from NumPy's."""
        return self.difference(results, self.peer(self.exact))


def cases(sizes: Sizes, real: Any, seed: int = 1) -> Iterator[Case]:
    """Every kernel of the gallery on arrays of type ``real``, each from a seed of its own."""
    for number, make in enumerate(_MAKERS):
        unit = float(np.finfo(real).eps) / 2
        yield from make(
            SimpleNamespace(
                sizes=sizes, real=real, unit=unit, random=np.random.default_rng([seed, number])
            )
        )


def _mandelbrot(given: SimpleNamespace) -> Iterator[Case]:
    height, width = given.sizes.pixels
    xs = np.linspace(-2.2, 0.8, width).astype(given.real)
    ys = np.linspace(-1.2, 1.2, height).astype(given.real)
    limit = given.sizes.limit
    yield Case(
        "Mandelbrot",
        gallery.mandelbrot.escape_times,
        (xs, ys, limit, np.empty((height, width), dtype=np.int32)),
        (3,),
        lambda real: (peers.escape_times(xs.astype(real), ys.astype(real), limit),),
        0.0,
        "the same operations in the same type, each correctly rounded",
        exact=given.real,
    )


def _nbody(given: SimpleNamespace) -> Iterator[Case]:
    count, softening, dt = given.sizes.bodies, 0.125, 0.0625
    positions, velocities = given.random.normal(size=(2, count, 3)).astype(given.real)
    masses = given.random.uniform(0.5, 1.5, count).astype(given.real)
    pulls = given.random.normal(size=(count, 3)).astype(given.real)
    total = float(peers.pulls(positions, masses, softening).max())
    yield Case(
        "n-body",
        gallery.nbody.accelerate,
        (positions, masses, softening, np.empty_like(positions)),
        (3,),
        lambda real: (peers.accelerations(positions.astype(real), masses.astype(real), softening),),
        (count + 16) * given.unit * total,
        "a sum of n terms, each of at most 16 roundings",
    )
    yield Case(
        "n-body",
        gallery.nbody.move,
        (positions, velocities, pulls, dt),
        (0, 1),
        lambda real: peers.moved(
            positions.astype(real), velocities.astype(real), pulls.astype(real), dt
        ),
        8 * given.unit * float(np.abs([positions, velocities, pulls]).max()),
        "4 roundings of at most twice the greatest value",
    )


def _gray_scott(given: SimpleNamespace) -> Iterator[Case]:
    u, v = given.random.uniform(size=(2, *given.sizes.grid)).astype(given.real)
    rates = 0.0375, 0.0625, 1.0
    yield Case(
        "Gray-Scott",
        gallery.gray_scott.react,
        (u, v, *rates, np.empty_like(u), np.empty_like(v)),
        (5, 6),
        lambda real: peers.reacted(u.astype(real), v.astype(real), *map(real, rates)),
        32 * given.unit,
        "at most 32 roundings of values between -1 and 1",
    )


def _marching_cubes(given: SimpleNamespace) -> Iterator[Case]:
    side = given.sizes.field
    z, y, x = np.mgrid[:side, :side, :side] * (6.0 / side)
    gyroid = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
    values = (gyroid + given.random.normal(scale=0.2, size=gyroid.shape)).astype(given.real)
    cubes = np.empty((side - 1,) * 3, dtype=np.uint8)
    yield Case(
        "marching cubes",
        marching_cubes.classify,
        (values, 0.25, marching_cubes.cut_edges(), cubes, np.empty_like(cubes)),
        (3, 4),
        lambda real: peers.classified(values.astype(real), 0.25),
        0.0,
        "comparisons are exact",
    )


def _sparse(given: SimpleNamespace) -> Iterator[Case]:
    rows = given.sizes.rows
    lengths = given.random.integers(0, 24, rows)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = given.random.integers(0, rows, starts[-1]).astype(np.int32)
    values = given.random.uniform(-1, 1, starts[-1]).astype(given.real)
    x = given.random.uniform(-1, 1, rows).astype(given.real)
    yield Case(
        "sparse product",
        gallery.sparse.multiply,
        (starts, columns, values, x, np.empty(rows, dtype=given.real)),
        (4,),
        lambda real: (peers.product_of(starts, columns, values.astype(real), x.astype(real)),),
        24 * given.unit * 24,
        "rows of fewer than 24 products, none greater than 1",
    )


def _sph(given: SimpleNamespace) -> Iterator[Case]:
    reach, shape = 0.0625, given.sizes.cells
    width, height, depth = shape
    extents = np.array(shape) * reach
    scattered = given.random.uniform(0, 1, (given.sizes.particles, 3)) * extents * 0.999
    scattered = scattered.astype(given.real)
    yield Case(
        "SPH",
        sph.find_cells,
        (scattered, reach, width, height, np.empty(len(scattered), dtype=np.int32)),
        (4,),
        lambda real: (peers.cells(scattered.astype(real), reach, shape),),
        0.0,
        "the reach is a power of two, so the quotients are exact",
    )
    order = np.argsort(peers.cells(scattered, reach, shape), kind="stable")
    positions = scattered[order]
    cells = peers.cells(positions, reach, shape)
    starts = np.searchsorted(cells, np.arange(width * height * depth + 1)).astype(np.int32)
    factor = sph.poly6(reach)
    crowd = peers.crowd(positions, reach)
    yield Case(
        "SPH",
        sph.density,
        (positions, starts, reach, *shape, factor, np.empty(len(positions), dtype=given.real)),
        (7,),
        lambda real: (peers.densities(positions.astype(real), reach, factor),),
        (crowd + 32) * given.unit * crowd * factor * reach**6,
        "a sum over the particles within reach, each term of at most 32 roundings",
    )


def spheres_of(random: np.random.Generator, count: int) -> Array:
    """Spheres (x, y, z, radius) in a row of columns before the camera, apart from each other."""
    across = int(np.ceil(np.sqrt(count)))
    places = np.stack(np.divmod(np.arange(count), across)[::-1], axis=1) - (across - 1) / 2
    spheres = np.empty((count, 4))
    spheres[:, :2] = 2.0 * places + random.uniform(-0.3, 0.3, (count, 2))
    spheres[:, 2] = random.uniform(10.0, 14.0, count)
    spheres[:, 3] = random.uniform(0.4, 0.65, count)
    return spheres


def _spheres(given: SimpleNamespace) -> Iterator[Case]:
    shape, focal, margin = given.sizes.pixels, 1.25, 0.01
    spheres = spheres_of(given.random, given.sizes.spheres).astype(given.real)
    centres = np.linalg.norm(spheres[:, :3].astype(np.float64), axis=1)

    def difference(results: Results, exact: Results) -> float:
        near = np.abs(peers.discriminants(spheres.astype(np.float64), focal, shape)) < margin
        clear = ~near.any(axis=0)
        return _differences(tuple(r[clear] for r in results), tuple(e[clear] for e in exact))

    yield Case(
        "spheres",
        gallery.spheres.trace,
        (spheres, focal, np.empty(shape, given.real), np.empty((*shape, 3), given.real)),
        (2, 3),
        lambda real: peers.traced(spheres.astype(real), real(focal), shape),
        # The root is taken of a difference of squares of distances, and normals divide by a radius.
        (16 * given.unit * centres.max() ** 2 / (2 * margin**0.5) + 16 * given.unit * centres.max())
        / float(spheres[:, 3].min()),
        "16 roundings of squared distances under a root; rims, where it is near 0, left out",
        difference=difference,
    )


def _kmeans(given: SimpleNamespace) -> Iterator[Case]:
    count, clusters, block = given.sizes.points, given.sizes.clusters, kmeans.BLOCK
    centres = given.random.uniform(-1, 1, (clusters, 2))
    points = centres[given.random.integers(0, clusters, count)]
    points = (points + given.random.normal(scale=0.15, size=points.shape)).astype(given.real)
    centroids = points[:clusters].copy()
    labels = np.empty(count, dtype=np.int32)
    farthest = float(peers.distances(points, centroids).max())

    def nearest(real: Any) -> Results:
        return (peers.distances(points.astype(real), centroids.astype(real)).argmin(axis=1),)

    def farther(results: Results, exact: Results) -> float:
        squares = peers.distances(points.astype(np.float64), centroids.astype(np.float64))
        chosen, least = (np.take_along_axis(squares, a[0][:, None], 1) for a in (results, exact))
        return float((chosen - least).max())

    yield Case(
        "k-means",
        kmeans.assign,
        (points, centroids, labels),
        (2,),
        nearest,
        16 * given.unit * farthest,
        "how much farther than the nearest one the chosen centroid is: two squares of 8 roundings",
        difference=farther,
    )
    (found,) = nearest(np.float64)
    labels = found.astype(np.int32)
    blocks = -(-count // block)
    sums = np.empty((blocks, clusters, 2), dtype=given.real)
    counts = np.empty((blocks, clusters), dtype=np.int32)
    greatest = float(np.abs(points).max())
    full, numbers = peers.sums_of_blocks(points, labels, block, clusters)
    numbers = numbers.astype(np.int32)
    most = int(numbers.max())
    yield Case(
        "k-means",
        kmeans.sum_blocks,
        (points, labels, block, sums, counts),
        (3, 4),
        lambda real: peers.sums_of_blocks(points.astype(real), labels, block, clusters),
        most * given.unit * most * greatest,
        "sums of as many points as a cluster has in a block",
    )
    yield Case(
        "k-means",
        kmeans.add_blocks,
        (full, numbers, centroids),
        (2,),
        lambda real: (peers.means(full.astype(real), numbers, centroids.astype(real)),),
        (blocks + 1) * given.unit * greatest * 2,
        "a sum over the blocks and a quotient; no mean is greater than the greatest point",
    )


_MAKERS = (
    _mandelbrot,
    _nbody,
    _gray_scott,
    _marching_cubes,
    _sparse,
    _sph,
    _spheres,
    _kmeans,
)
