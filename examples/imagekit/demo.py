"""Runs imagekit on a photograph, checks every result against NumPy and SciPy, and times both.

The photograph lies in the installed scikit-image; nothing is downloaded. Each filter leaves a
picture with the image before and after it. The process fails if a result is wrong, if no prebuilt
variant answers a call, or, with ``--no-compiler``, if a compiler could have been found.
"""

import argparse
import importlib.util
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import imagekit
import numpy as np
from imagekit import handwritten, kernels
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

import tack

__all__ = ["main"]

Array = NDArray[Any]
Kernel = Any  # what @tack.kernel makes has no public name

SIGMA = 2.0
AMOUNT = 1.5
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])

# How far a result may lie from the exact value: uint8 by its rounding, sums of integers not at all.
TOLERANCES = {"uint8": 0.501, "uint64": 0.0, "float32": 1e-5, "float64": 1e-9}

COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "icx", "tcc", "zig", "nvcc", "hipcc")
HEADING = ("kernel", "signature", "variant", "ms", "NumPy ms", "speed-up")
BUILD_MODULES = ("jinja2", "llvmlite", "scikit_build_core", "cmake", "ninja", "ziglang")


@dataclass(frozen=True)
class Case:
    """One kernel call and the same in NumPy.

    ``peer`` computes the exact result in the given float type; the last argument is the output.
    """

    kernel: Kernel
    arguments: tuple[Any, ...]
    peer: Callable[[Any], Array]

    @property
    def output(self) -> Array:
        """The array that the kernel fills."""
        output: Array = self.arguments[-1]
        return output


@dataclass(frozen=True)
class Picture:
    """What a filter of the public functions made of an image, and what NumPy and SciPy say."""

    name: str
    before: Array
    after: Array
    exact: Array


def photograph(name: str) -> NDArray[np.uint8]:
    """A picture that ships with scikit-image, as uint8 RGB; scikit-image is not imported."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        sys.exit("the photograph is in scikit-image, which is not installed")
    with Image.open(Path(spec.origin).parent / "data" / name) as picture:
        return np.asarray(picture.convert("RGB"))


def cases(rgb: Array) -> Iterator[Case]:
    """Every kernel, called on ``rgb`` of type uint8 or float32."""
    wide = rgb.dtype.type
    top = np.iinfo(wide).max if rgb.dtype.kind == "u" else 1
    suffix = "_u8" if rgb.dtype.kind == "u" else ""
    weights = imagekit.gaussian_weights(SIGMA)
    grey = imagekit.luminance(rgb)
    flat = rgb.reshape(-1)
    pixels = rgb.reshape(-1, 3)
    table = rgb.reshape(len(rgb), -1)
    rows = np.empty(table.shape, dtype=np.float32)
    smooth = ndimage.gaussian_filter(rgb, (SIGMA, SIGMA, 0), output=np.float32, mode="nearest")
    smooth = smooth.reshape(-1)

    def kernel(name: str) -> Kernel:
        return getattr(kernels, name + suffix)

    def along(axis: int, source: Array, real: Any) -> Array:
        image = source.reshape(rgb.shape)
        sums: Array = ndimage.correlate1d(image, weights, axis=axis, output=real, mode="nearest")
        return sums.reshape(source.shape)

    def magnitude(real: Any) -> Array:
        down, across = (ndimage.sobel(grey, axis, output=real, mode="nearest") for axis in (0, 1))
        lengths: Array = np.hypot(down, across)
        return lengths

    def sharpened(real: Any) -> Array:
        value = flat.astype(real)
        limited: Array = np.clip(value + real(AMOUNT) * (value - smooth.astype(real)), 0, top)
        return limited

    yield Case(kernels.blur_rows, (table, weights, 3, rows), partial(along, 1, table))
    # The second pass reads what the first one has just stored in rows.
    yield Case(kernels.blur_columns, (rows, weights, np.empty_like(rows)), partial(along, 0, rows))
    if suffix:
        yield Case(kernels.quantize, (smooth, np.empty_like(flat)), smooth.astype)
    yield Case(kernel("sobel"), (grey, np.empty_like(grey)), magnitude)
    yield Case(kernel("unsharp"), (flat, smooth, AMOUNT, np.empty_like(flat)), sharpened)
    yield Case(
        kernel("luminance"),
        (pixels, np.empty(len(pixels), dtype=wide)),
        lambda real: pixels.astype(real) @ LUMINANCE.astype(real),
    )
    yield Case(
        kernel("tone"),
        (flat, np.empty_like(flat)),
        lambda real: np.sqrt(flat.astype(real) * real(top)),
    )
    yield Case(
        handwritten.median,
        (grey, np.empty_like(grey)),
        lambda real: ndimage.median_filter(grey.astype(real), 3, mode="nearest"),
    )
    total = np.uint64 if rgb.dtype.kind == "u" else np.float64
    yield Case(
        kernels.row_sums,
        (grey, np.empty(len(grey), dtype=total)),
        lambda real: grey.sum(axis=1, dtype=total),
    )


def pictures(rgb: Array) -> Iterator[Picture]:
    """Every public filter on ``rgb`` of type uint8 or float32."""
    exact = rgb.astype(np.float64)
    top = 255.0 if rgb.dtype.kind == "u" else 1.0
    smooth = ndimage.gaussian_filter(exact, (SIGMA, SIGMA, 0), mode="nearest")
    grey = imagekit.luminance(rgb)
    slopes = [ndimage.sobel(grey.astype(np.float64), axis, mode="nearest") for axis in (0, 1)]
    yield Picture("blur", rgb, imagekit.blur(rgb, SIGMA), smooth)
    yield Picture("sobel", grey, imagekit.sobel(grey), np.hypot(*slopes))
    yield Picture(
        "unsharp",
        rgb,
        imagekit.unsharp(rgb, SIGMA, AMOUNT),
        np.clip(exact + AMOUNT * (exact - smooth), 0, top),
    )
    yield Picture("luminance", rgb, grey, exact @ LUMINANCE)
    middle = ndimage.median_filter(grey, 3, mode="nearest")
    yield Picture("median", grey, imagekit.median(grey), middle)
    yield Picture("tone", rgb, imagekit.tone(rgb), np.sqrt(exact * top))
    yield Picture("row-sums", grey, imagekit.row_sums(grey), grey.sum(axis=1, dtype=np.float64))


def wrong(result: Array, exact: Array) -> str:
    """How ``result`` disagrees with ``exact``, or an empty text."""
    if result.dtype == np.uint8:
        exact = np.clip(exact, 0, 255)
    scale = max(1.0, float(np.abs(exact).max()))
    tolerance = TOLERANCES[result.dtype.name] * (scale if result.dtype.kind == "f" else 1.0)
    error = np.abs(result.astype(np.float64) - exact)
    if result.shape == exact.shape and bool((error <= tolerance).all()):
        return ""
    return f"off by {error.max():.3g}, {tolerance:.3g} is allowed"


def rounded(value: Array, dtype: Any) -> Array:
    """``value`` in ``dtype``, as a user of NumPy rounds and limits it."""
    if dtype == np.uint8:
        value = np.rint(np.clip(value, 0, 255))
    return value.astype(np.dtype(dtype), copy=False)


def as_numpy(case: Case) -> Array:
    """What a user of NumPy and SciPy would run instead of the kernel."""
    return rounded(case.peer(np.float32), case.output.dtype)


def milliseconds(
    ours: Callable[[], object], peer: Callable[[], object], pairs: int
) -> tuple[float, float]:
    """Median times of two calls, measured in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs):
        for call, taken in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[0]), statistics.median(times[1])


def as_bytes(image: Array) -> Array:
    """An image, or the sums of rows as bars, as uint8 RGB."""
    if image.ndim == 1:
        columns = np.arange(len(image))
        image = (columns < len(image) * image[:, None] / image.max()).astype(np.float32)
    if image.dtype != np.uint8:
        image = rounded(255.0 * image, np.dtype(np.uint8))
    return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)


def save(picture: Picture, path: Path) -> None:
    """Writes the image before and after the filter, side by side."""
    before, after = as_bytes(picture.before), as_bytes(picture.after)
    gap = np.full((before.shape[0], 8, 3), 255, dtype=np.uint8)
    Image.fromarray(np.concatenate([before, gap, after], axis=1)).save(path)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in aligned columns, the first row as their heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def compilers() -> list[str]:
    """What could compile here: commands on PATH and modules that can be imported."""
    commands = [path for name in COMPILERS if (path := shutil.which(name))]
    modules = [name for name in BUILD_MODULES if importlib.util.find_spec(name)]
    return commands + modules


def run_kernels(images: Sequence[Array], pairs: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows of the table, one a kernel and type, and what was wrong."""
    rows: list[tuple[str, ...]] = [HEADING]
    faults: list[str] = []
    for case in (case for image in images for case in cases(image)):
        name = case.kernel.__name__
        chosen = tack.explain(case.kernel, *case.arguments).chosen
        if chosen is None:
            faults.append(f"{name}: no prebuilt variant answered")
            continue
        call = partial(case.kernel, *case.arguments)
        call()
        if fault := wrong(case.output, case.peer(np.float64)):
            faults.append(f"{name} ({chosen.signature}): {fault}")
        ours, peer = milliseconds(call, partial(as_numpy, case), pairs)
        times = f"{ours:.3f}", f"{peer:.3f}", f"{peer / ours:.2f}"
        rows.append((name, str(chosen.signature), str(chosen.target), *times))
    return rows, faults


def run_filters(images: Sequence[Array], folder: Path) -> tuple[int, list[str]]:
    """The number of pictures written into ``folder``, and what was wrong."""
    faults: list[str] = []
    count = 0
    for picture in (picture for image in images for picture in pictures(image)):
        name = f"{picture.name}-{picture.before.dtype.name}"
        if fault := wrong(picture.after, picture.exact):
            faults.append(f"{name}: {fault}")
        save(picture, folder / f"{name}.png")
        count += 1
    return count, faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs everything; 0 when every result is right."""
    parser = argparse.ArgumentParser(description="imagekit on a photograph, checked and timed")
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--photograph", default="astronaut.png", help="file of scikit-image's data")
    parser.add_argument("--pairs", type=int, default=15, help="timed pairs of calls a kernel")
    parser.add_argument("--no-compiler", action="store_true", help="fail if a compiler is found")
    options = parser.parse_args(arguments)

    if options.no_compiler and (found := compilers()):
        print(f"no compiler should be here, but there is {', '.join(found)}")
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    rgb = photograph(options.photograph)
    images = (rgb, rgb.astype(np.float32) / np.float32(255))

    rows, faults = run_kernels(images, options.pairs)
    print(f"{options.photograph}: {' x '.join(map(str, rgb.shape))}, sigma {SIGMA}\n")
    print(table(rows))
    count, more = run_filters(images, options.output)
    print(f"\n{count} pictures, each before and after, in {options.output}")

    faults += more
    for fault in faults:
        print(f"WRONG: {fault}")
    print(f"{len(faults)} wrong" if faults else "every result agrees with NumPy and SciPy")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
