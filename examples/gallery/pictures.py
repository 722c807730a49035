"""Pictures that the gallery's kernels make, as arrays of uint8 RGB."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import spheres_of
from gallery import gray_scott, kmeans, mandelbrot, marching_cubes, nbody, sph, spheres
from numpy.typing import NDArray

__all__ = ["pictures"]

Array = NDArray[Any]
Image = NDArray[np.uint8]


def pictures() -> Iterator[tuple[str, Image]]:
    """The name and the pixels of each picture."""
    for make in (_mandelbrot, _nbody, _gray_scott, _marching_cubes, _sph, _spheres, _kmeans):
        yield make.__name__.strip("_").replace("_", "-"), make(np.random.default_rng(1))


def coloured(values: Array) -> Image:
    """Values from 0 to 1 as colours from dark blue through orange to nearly white."""
    steps = np.linspace(0, 1, 5)
    ramp = np.array([[8, 8, 40], [80, 40, 140], [220, 80, 60], [250, 190, 70], [255, 252, 235]])
    channels = [np.interp(values, steps, ramp[:, k]) for k in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def hues(numbers: Array, count: int) -> Array:
    """A colour for each of ``count`` numbers, in values from 0 to 1."""
    turns = numbers[..., None] / count + np.array([0.0, 1 / 3, 2 / 3])
    return np.asarray(0.55 + 0.45 * np.cos(2 * np.pi * turns))


def scattered(x: Array, y: Array, side: int = 480) -> Array:
    """How many points (from 0 to 1) fall into each pixel, from 0 to 1 by a root."""
    counts, _, _ = np.histogram2d(y, x, bins=side, range=((0, 1), (0, 1)))
    return np.asarray(np.minimum(1.0, 0.35 * np.sqrt(counts)))


def _mandelbrot(_: np.random.Generator) -> Image:
    times = np.empty((480, 640), dtype=np.int32)
    ys = np.linspace(-1.2, 1.2, times.shape[0])
    mandelbrot.escape_times(np.linspace(-2.2, 1.0, times.shape[1]), ys, 200, times)
    return coloured(np.where(times == 200, 0.0, (times / 200) ** 0.4))


def _nbody(random: np.random.Generator) -> Image:
    """Two clouds that turn and have met; the tracks of their bodies."""
    count = 400
    side = np.where(np.arange(count) % 2, 1.0, -1.0)
    positions = random.normal(scale=0.25, size=(count, 3))
    velocities = np.cross(np.array([0.0, 0.0, 1.6]), positions)
    positions[:, 0] += 1.2 * side
    velocities[:, 1] += 0.35 * side
    masses = np.full(count, 1.0 / count)
    accelerations = np.empty_like(positions)
    light = np.zeros((480, 480))
    for _ in range(240):
        nbody.step(positions, velocities, masses, accelerations, 0.05, 0.02)
        x, y = (0.5 + positions[:, :2] / 4).T
        light = np.maximum(light * 0.985, scattered(x, y, len(light)))
    return coloured(light**0.5)


def _gray_scott(random: np.random.Generator) -> Image:
    """Four thousand steps from a few specks of the second chemical."""
    u = np.ones((240, 320), dtype=np.float32)
    v = np.zeros_like(u)
    for y, x in random.integers(8, (232, 312), (20, 2)):
        u[y - 5 : y + 5, x - 5 : x + 5] = 0.5
        v[y - 5 : y + 5, x - 5 : x + 5] = 0.25
    other_u, other_v = np.empty_like(u), np.empty_like(v)
    for _ in range(2000):
        gray_scott.react(u, v, 0.0545, 0.062, 1.0, other_u, other_v)
        gray_scott.react(other_u, other_v, 0.0545, 0.062, 1.0, u, v)
    return np.repeat(np.repeat(coloured(np.minimum(1.0, 2.5 * v)), 2, axis=0), 2, axis=1)


def _marching_cubes(_: np.random.Generator) -> Image:
    """A slice through a gyroid; each of the 256 cases has its colour."""
    z, y, x = np.mgrid[:4, :161, :161] * (4 * np.pi / 160)
    field = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
    cubes = np.empty(tuple(n - 1 for n in field.shape), dtype=np.uint8)
    marching_cubes.classify(field, 0.2, marching_cubes.cut_edges(), cubes, np.empty_like(cubes))
    colours = 255 * hues(cubes[0].astype(float) * 89 % 256, 256)
    colours[cubes[0] == 0] = 12
    colours[cubes[0] == 255] = 243
    return np.repeat(np.repeat(colours.astype(np.uint8), 3, axis=0), 3, axis=1)


def _sph(random: np.random.Generator) -> Image:
    """Particles of a slab, gathered in a ring, coloured by their density."""
    reach = 0.0625
    count = 40_000
    angles = random.uniform(0, 2 * np.pi, count)
    radii = 0.33 + random.normal(scale=0.04, size=count)
    positions = np.empty((count, 3), dtype=np.float32)
    positions[:, 0] = 0.5 + radii * np.cos(angles)
    positions[:, 1] = 0.5 + radii * np.sin(angles) * (0.75 + 0.25 * np.sin(3 * angles))
    positions[:, 2] = random.uniform(0, 0.24, count)
    shape = (16, 16, 4)
    positions, starts = sph.cell_grid(positions, reach, shape)
    densities = np.empty(count, dtype=np.float32)
    sph.density(positions, starts, reach, *shape, sph.poly6(reach), densities)
    image = np.zeros((480, 480), dtype=np.float32)
    columns, rows = (np.clip(positions[:, :2].T, 0, 0.999) * 480).astype(int)
    np.maximum.at(image, (rows, columns), densities / densities.max())
    return coloured(image)


def _spheres(random: np.random.Generator) -> Image:
    """Depth on the left; on the right the normals under a light."""
    balls = spheres_of(random, 25)
    depth = np.empty((480, 480))
    normals = np.empty((480, 480, 3))
    spheres.trace(balls, 1.1, depth, normals)
    seen = depth > 0
    near, far = depth[seen].min(), depth.max()
    left = coloured(np.where(seen, 1.0 - 0.8 * (depth - near) / (far - near), 0.0))
    light = np.array([-0.5, -0.6, -0.62])
    shade = np.where(seen, 0.12 + 0.88 * np.maximum(0.0, normals @ light), 0.0)
    right = 255 * np.minimum(1.0, shade[..., None] * (0.6 + 0.4 * (normals * [1, 1, -1] + 1) / 2))
    return np.concatenate([left, right.astype(np.uint8)], axis=1)


def _kmeans(random: np.random.Generator) -> Image:
    """Points after a dozen steps, coloured by cluster; the centroids are white."""
    clusters = 9
    centres = random.uniform(0.12, 0.88, (clusters, 2))
    points = centres[random.integers(0, clusters, 30_000)]
    points += random.normal(scale=0.045, size=points.shape)
    centroids = points[:clusters].copy()
    labels = np.empty(len(points), dtype=np.int32)
    for _ in range(12):
        kmeans.step(points, centroids, labels)
    image = np.full((480, 480, 3), 16, dtype=np.uint8)
    columns, rows = (np.clip(points.T, 0, 0.999) * 480).astype(int)
    image[rows, columns] = (255 * hues(labels.astype(float), clusters)).astype(np.uint8)
    for x, y in (centroids * 480).astype(int):
        image[max(y - 4, 0) : y + 5, max(x - 4, 0) : x + 5] = 255
    return image
