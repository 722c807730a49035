"""Numeric programs that people publish, each a module; every kernel ships compiled in the wheel.

>>> import numpy as np
>>> from gallery import mandelbrot
>>> times = np.zeros((1, 3), dtype=np.int32)
>>> mandelbrot.escape_times(np.array([-1.0, 0.0, 2.0]), np.array([0.5]), 50, times)
>>> times
array([[ 5, 50,  1]], dtype=int32)
"""

from gallery import (
    gray_scott,
    kmeans,
    mandelbrot,
    marching_cubes,
    nbody,
    sparse,
    sph,
    spheres,
)

__all__ = [
    "gray_scott",
    "kmeans",
    "mandelbrot",
    "marching_cubes",
    "nbody",
    "sparse",
    "sph",
    "spheres",
]
