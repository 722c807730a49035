"""Measures how far the elementary functions are from the exact values, in units in the last place.

``python tests/accuracy.py [--all] [FUNCTION...]`` writes the table of docs/arithmetic.md. f32 is
compared with doubles: of one operand at every n-th of all its values (``--all``: at every one), f64
with NumPy's extended precision, where this machine has that. Kernels run compiled; what is compared
with are other people's functions.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import tack
from tack.ir.nodes import ELEMENTARY

Floats = np.ndarray[Any, np.dtype[Any]]

_ERF: Final = np.frompyfunc(math.erf, 1, 1)

REFERENCES: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(
        np,
        {"pow": "power"}.get(name, name.replace("a", "arc", 1) if name[0] == "a" else name),
        None,
    )
    or {
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "erf": lambda x: _ERF(x.astype(np.float64)).astype(np.float64),
    }[name]
    for name in ELEMENTARY
}
"""Function -> the same of NumPy, or of the C library."""

BLOCK: Final = 1 << 20


@dataclass(slots=True)
class Worst:
    """The greatest error so far, and where it is."""

    ulps: float = 0.0
    at: tuple[float, ...] = ()

    def add(self, other: Worst) -> None:
        """Takes the worse of the two."""
        if other.ulps > self.ulps:
            self.ulps, self.at = other.ulps, other.at


def kernel_of(name: str) -> Any:
    """A kernel that computes one function of each element."""
    function = getattr(tack, name)

    def one(out: tack.Array, x: tack.Array) -> None:
        for i in range(out.shape[0]):
            out[i] = function(x[i])

    def two(out: tack.Array, x: tack.Array, y: tack.Array) -> None:
        for i in range(out.shape[0]):
            out[i] = function(x[i], y[i])

    return tack.kernel(one if ELEMENTARY[name] == 1 else two)


def errors(name: str, result: Floats, args: tuple[Floats, ...]) -> Floats:
    """The distance of results from the reference, in ulps; infinite where one is wrong in kind."""
    dtype = result.dtype
    wide = np.float64 if dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = np.asarray(REFERENCES[name](*(each.astype(wide) for each in args)), wide)
        rounded = exact.astype(dtype)
        info = np.finfo(dtype)
        exponent = np.maximum(np.frexp(np.abs(exact))[1] - 1, info.minexp)
        unit = np.ldexp(wide(1), exponent - info.nmant)
        ulps = np.abs(result.astype(wide) - exact) / unit
    same = (result == rounded) & (np.signbit(result) == np.signbit(rounded))
    same |= np.isnan(result) & np.isnan(rounded)
    ordinary = np.isfinite(result) & np.isfinite(exact) & (np.abs(exact) < info.max)
    # Beyond the greatest number both it and infinity are one unit away.
    edge = (
        (np.abs(exact) >= info.max)
        & (np.abs(result) >= info.max)
        & (np.sign(result) == np.sign(exact))
    )
    ulps = np.where(same & ~ordinary, 0.0, np.where(ordinary, ulps, np.where(edge, 1.0, np.inf)))
    zero = (exact == 0) & (np.signbit(result) != np.signbit(exact))
    with np.errstate(over="ignore"):
        return np.where(zero, np.inf, ulps).astype(np.float64)


def measure(name: str, kernel: Any, *args: Floats) -> Worst:
    """The greatest error of one function over arrays of arguments."""
    result = np.empty_like(args[0])
    kernel(result, *args)
    ulps = errors(name, result, args)
    worst = int(np.argmax(ulps))
    return Worst(float(ulps[worst]), tuple(float(each[worst]) for each in args))


def all_floats(step: int) -> Iterator[tuple[Floats]]:
    """Every ``step``-th f32, NaN and infinities included, in blocks."""
    for start in range(0, 1 << 32, BLOCK * step):
        bits = np.arange(start, min(start + BLOCK * step, 1 << 32), step, np.int64)
        yield (bits.astype(np.uint32).view(np.float32),)


def sampled(name: str, dtype: Any, blocks: int) -> Iterator[tuple[Floats, ...]]:
    """Arguments drawn by bits, near 0, 1, halves and multiples of pi/2, and the edges."""
    random = np.random.default_rng(len(name))
    bits = 8 * np.dtype(dtype).itemsize
    for block in range(blocks):
        args = []
        for _ in range(ELEMENTARY[name]):
            any_bits = (
                random.integers(0, 1 << bits, BLOCK, np.uint64).astype(f"u{bits // 8}").view(dtype)
            )
            kinds = [
                any_bits,
                random.normal(0, 1, BLOCK).astype(dtype),
                (
                    1 + random.normal(0, 1, BLOCK) * 2.0 ** -random.integers(0, bits - 10, BLOCK)
                ).astype(dtype),
                random.uniform(-750, 750, BLOCK).astype(dtype),
                (random.integers(-(2**20), 2**20, BLOCK) * (math.pi / 2)).astype(dtype),
                (random.integers(-200, 200, BLOCK) / 2).astype(dtype),
                np.exp(random.uniform(-12, 12, BLOCK)).astype(dtype),
            ]
            args.append(random.permuted(np.choose(random.integers(0, len(kinds), BLOCK), kinds)))
        if block == 0:
            edges = np.array(EDGES, dtype)
            grid = np.meshgrid(*[edges] * len(args))
            for arg, edge in zip(args, grid, strict=True):
                arg[: edge.size] = edge.ravel()
        yield tuple(args)


EDGES: Final = [
    sign * value
    for sign in (1.0, -1.0)
    for value in (
        *(
            0.0,
            1.0,
            0.5,
            2.0,
            1.5,
            3.0,
            10.0,
            0.1,
            1 / 3,
            math.pi,
            math.e,
            math.pi / 2,
            math.pi / 4,
        ),
        *(
            1.401298464324817e-45,
            1.1754943508222875e-38,
            3.4028234663852886e38,
            16777216.0,
            16777217.0,
        ),
        *(88.72283, 88.72284, 103.97, 104.0, 127.0, 128.0, 149.0, 150.0, 0.99999994, 1.0000001),
        *(math.inf, math.nan),
    )
]


def main() -> None:
    """Writes a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", help="those to measure; else all")
    parser.add_argument("--all", action="store_true", help="at every f32")
    parser.add_argument("--step", type=int, default=251, help="else at every n-th")
    parser.add_argument("--blocks", type=int, default=8, help="of 2^20 samples")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for name in options.functions or ELEMENTARY:
        row = [f"`{name}`"]
        for dtype in (np.float32, np.float64):
            if dtype is np.float32 and ELEMENTARY[name] == 1:
                sets = all_floats(1 if options.all else options.step)
            else:
                sets = sampled(name, dtype, options.blocks)
            worst = greatest(name, sets, options.jobs)
            row += [f"{worst.ulps:.3f}", ", ".join(map(repr, worst.at))]
        sys.stdout.write("| " + " | ".join(row) + " |\n")


def greatest(name: str, sets: Iterator[tuple[Floats, ...]], jobs: int) -> Worst:
    """The greatest error of one function over many sets of arguments, a few at a time."""
    kernel, worst = kernel_of(name), Worst()
    with ThreadPoolExecutor(jobs) as threads:
        while chunk := list(itertools.islice(sets, 2 * jobs)):
            for found in threads.map(lambda args: measure(name, kernel, *args), chunk):
                worst.add(found)
    return worst


if __name__ == "__main__":
    main()
