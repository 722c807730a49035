"""Measures how far the elementary functions are from the exact values, in units in the last place.

``python tests/accuracy.py [--all] [--docs] [FUNCTION...]`` prints the rows of the table of
docs/arithmetic.md, or writes them there. f32 is compared with doubles: of one operand at every n-th
of all its values (``--all``: at every one); f64 with the extended precision of the C library
(``accuracy.c``), and where functions are hard to compute with mpmath (``exact``). Kernels run
compiled; what is compared with are other people's functions. A function of one f32 takes about 130
seconds of one core at all its values.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import functools
import math
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import exact
import numpy as np

import tack
from tack.ir.operations import ELEMENTARY

__all__ = ["BOUNDS", "PAGE", "Worst", "measure", "rows", "sampled"]

Floats = np.ndarray[Any, np.dtype[Any]]

BOUNDS: Final[dict[str, tuple[float, float]]] = {
    name: (1.0, 1.0 if name in ("cos", "exp", "log", "pow", "sin") else 2.0) for name in ELEMENTARY
}
"""Function -> the greatest error that is promised of f32 and of f64."""

PAGE: Final = Path(__file__).parent.parent / "docs" / "arithmetic.md"

MARKERS: Final = ("<!-- made by tests/accuracy.py -->", "<!-- until here -->")
"""What stands on the page before the table and after it."""

BLOCK: Final = 1 << 18
"""Arguments that are computed at once: they stay in the cache of a core."""

TASK: Final = 1 << 24
"""Arguments of one task of a process."""


@dataclass(slots=True)
class Worst:
    """The greatest error so far, where it is, and of how many arguments."""

    ulps: float = 0.0
    at: tuple[float, ...] = ()
    count: int = 0

    def add(self, other: Worst) -> None:
        """Takes the worse of the two."""
        self.count += other.count
        if other.ulps > self.ulps:
            self.ulps, self.at = other.ulps, other.at


@functools.cache
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


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tack-accuracy-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _library() -> ctypes.CDLL:
    folder = _folder()
    source = Path(__file__).with_suffix(".c")
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", folder / "accuracy.so", source, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "accuracy.so"))


def errors_of(name: str, result: Floats, *args: Floats) -> Worst:
    """The greatest error of results."""
    compare = getattr(_library(), f"{name}_f{8 * result.itemsize}")
    worst, at = ctypes.c_double(-1), ctypes.c_int64(0)
    given = [each.ctypes.data_as(ctypes.c_void_p) for each in (args[0], args[-1], result)]
    compare(*given, ctypes.c_int64(len(result)), ctypes.byref(worst), ctypes.byref(at))
    where = tuple(float(each[at.value]) for each in args)
    return Worst(worst.value, where, len(result))


def measure(name: str, *args: Floats) -> Worst:
    """The greatest error of one function over arrays of arguments."""
    result = np.empty_like(args[0])
    kernel_of(name)(result, *args)
    return errors_of(name, result, *args)


def every(name: str, start: int, step: int) -> Worst:
    """Over a task's part of all f32 by their bits, NaN and infinities included."""
    worst = Worst()
    for first in range(start, min(start + TASK * step, 1 << 32), BLOCK * step):
        bits = np.arange(first, min(first + BLOCK * step, 1 << 32), step, np.int64)
        worst.add(measure(name, bits.astype(np.uint32).view(np.float32)))
    return worst


def sampled(name: str, dtype: Any, seed: int, count: int = BLOCK) -> Worst:
    """Over arguments drawn by bits, near 0, 1, halves and multiples of pi/2, and the edges."""
    random = np.random.default_rng(seed)
    args = [_drawn(random, np.dtype(dtype), count) for _ in range(ELEMENTARY[name])]
    if seed == 0:
        with np.errstate(over="ignore"):
            edges = np.array(EDGES).astype(dtype)
        grid = np.meshgrid(*[edges] * len(args))
        for arg, edge in zip(args, grid, strict=True):
            arg[: edge.size] = edge.ravel()
    return measure(name, *args)


def _drawn(random: np.random.Generator, dtype: np.dtype[Any], count: int) -> Floats:
    bits = 8 * dtype.itemsize
    anything = random.integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True)
    fine = 2.0 ** -random.integers(0, bits - 10, count)
    with np.errstate(over="ignore"):
        kinds = [
            anything.astype(f"u{dtype.itemsize}").view(dtype),
            random.uniform(-1, 1, count).astype(dtype),
            (1 + random.normal(0, 1, count) * fine).astype(dtype),
            random.uniform(-750, 750, count).astype(dtype),
            (random.integers(-(2**20), 2**20, count) * (math.pi / 2)).astype(dtype),
            (random.integers(-200, 200, count) / 2).astype(dtype),
            np.exp(random.uniform(-12, 12, count)).astype(dtype),
        ]
    return np.choose(random.integers(0, len(kinds), count), kinds)


_SIZES: Final = [
    *(0.0, 1.0, 0.5, 2.0, 1.5, 3.0, 10.0, 0.1, 1 / 3, math.pi, math.e, math.pi / 2, math.pi / 4),
    *(5e-324, 1.401298464324817e-45, 1.1754943508222875e-38, 2.2250738585072014e-308),
    *(3.4028234663852886e38, 1.7976931348623157e308, 16777216.0, 16777217.0),
    *(88.72283, 88.72284, 103.97, 104.0, 127.0, 128.0, 149.0, 150.0, 0.99999994, 1.0000001),
    *(709.782712893384, 709.7827128933841, 745.1332191019411, 745.1332191019412, 1024.0, 1074.0),
    *(math.inf, math.nan),
]
EDGES: Final = [sign * size for sign in (1.0, -1.0) for size in _SIZES]


def hard(name: str) -> Worst:
    """Over f64 for which the C library is no judge, against mpmath."""
    worst = Worst()
    if name in ("cos", "sin", "tan"):
        args = exact.near_quarter_turns(np.float64)
        result = np.empty_like(args)
        kernel_of(name)(result, args)
        for x, y in zip(args, result, strict=True):
            worst.add(Worst(exact.error(name, y, x), (float(x),), 1))
    return worst


def _tasks(name: str, step: int, samples: int) -> tuple[list[Any], list[Any]]:
    """What is to be called for f32, and for f64."""
    blocks = range(max(1, samples // BLOCK))
    wide = [functools.partial(sampled, name, np.float64, seed) for seed in blocks]
    wide.append(functools.partial(hard, name))
    narrow = [functools.partial(sampled, name, np.float32, seed) for seed in blocks]
    if ELEMENTARY[name] == 1:
        starts = range(0, 1 << 32, TASK * step)
        regular = [functools.partial(every, name, start, step) for start in starts]
        narrow = regular if step == 1 else regular + narrow
    return narrow, wide


def _greatest(pool: ProcessPoolExecutor, tasks: list[Any]) -> Worst:
    worst = Worst()
    for found in pool.map(_called, tasks):
        worst.add(found)
    return worst


def _called(task: Any) -> Worst:
    found: Worst = task()
    return found


def cell(worst: Worst) -> str:
    """An error as the table tells it: rounded up, and of how many arguments."""
    which = "all" if worst.count == 1 << 32 else f"{worst.count:,} samples"
    ulps = worst.ulps if math.isinf(worst.ulps) else math.ceil(worst.ulps * 1000) / 1000
    return f"{ulps:.3f} of {which}"


def rows(text: str) -> dict[str, tuple[float, float]]:
    """Function -> the errors of f32 and f64 that a page tells."""
    inside = text.partition(MARKERS[0])[2].partition(MARKERS[1])[0]
    found = re.findall(r"^\| `(\w+)` \| ([\d.]+) of .* \| ([\d.]+) of .* \|$", inside, re.MULTILINE)
    return {name: (float(one), float(other)) for name, one, other in found}


def written(text: str, new: dict[str, str]) -> str:
    """A page with new rows in its table; those of other functions stay."""
    before, rest = text.split(MARKERS[0])
    inside, after = rest.split(MARKERS[1])
    lines = dict(re.findall(r"^(\| `(?P<name>\w+)` .*)$", inside, re.MULTILINE))
    kept = {name: line for line, name in lines.items()} | new
    table = ["| function | f32 | f64 |", "|---|---|---|"]
    table += [kept[name] for name in ELEMENTARY if name in kept]
    return "\n".join([f"{before}{MARKERS[0]}", *table, f"{MARKERS[1]}{after}"])


def main() -> None:
    """Prints or writes a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", help="those to measure; else all")
    parser.add_argument("--all", action="store_true", help="at every f32")
    parser.add_argument("--docs", action="store_true", help=f"write the table of {PAGE.name}")
    parser.add_argument("--step", type=int, default=251, help="else at every n-th")
    parser.add_argument("--samples", type=int, default=1 << 24, help="of what is sampled")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    step = 1 if options.all else options.step
    # What other formulas were compiled to is not to be found.
    os.environ["TACK_CACHE_DIR"] = str(_folder() / "cache")
    _library()  # which forked processes have as well
    new = {}
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:
        for name in options.functions or ELEMENTARY:
            worst = [_greatest(pool, tasks) for tasks in _tasks(name, step, options.samples)]
            new[name] = f"| `{name}` | {cell(worst[0])} | {cell(worst[1])} |"
            places = "; ".join(", ".join(map(repr, each.at)) for each in worst)
            sys.stdout.write(f"{new[name]}  {places}\n")
            sys.stdout.flush()
    if options.docs:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main()
