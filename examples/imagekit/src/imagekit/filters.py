"""The functions that users of imagekit call: they check, allocate and launch."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imagekit import handwritten, kernels

__all__ = [
    "blur",
    "gaussian_weights",
    "luminance",
    "median",
    "row_sums",
    "sobel",
    "tone",
    "unsharp",
]

Image = NDArray[np.uint8] | NDArray[np.float32]
Kernel = Callable[..., None]

# What each function launches, by the type of its image.
_SOBEL: dict[str, Kernel] = {"uint8": kernels.sobel_u8, "float32": kernels.sobel}
_UNSHARP: dict[str, Kernel] = {"uint8": kernels.unsharp_u8, "float32": kernels.unsharp}
_LUMINANCE: dict[str, Kernel] = {"uint8": kernels.luminance_u8, "float32": kernels.luminance}
_TONE: dict[str, Kernel] = {"uint8": kernels.tone_u8, "float32": kernels.tone}
_SUM_TYPE: dict[str, type[np.generic]] = {"uint8": np.uint64, "float32": np.float64}


def gaussian_weights(sigma: float) -> NDArray[np.float32]:
    """The normalized weights of a Gaussian of ``sigma`` pixels, cut off at four of them."""
    if not sigma > 0.0:
        raise ValueError(f"sigma must be positive, not {sigma}")
    radius = int(4.0 * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (offsets / sigma) ** 2)
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def blur(image: Image, sigma: float) -> Image:
    """``image`` of shape (h, w) or (h, w, channels) under a Gaussian of ``sigma`` pixels."""
    source = _checked(image, ranks=(2, 3))
    blurred = _blurred(source, sigma)
    if source.dtype != np.uint8:
        return blurred
    target = np.empty_like(source)
    kernels.quantize(blurred.reshape(-1), target.reshape(-1))
    return target


def sobel(image: Image) -> Image:
    """Gradient magnitude of a grey ``image`` (h, w); uint8 results stop at 255."""
    source = _checked(image, ranks=(2,))
    target = np.empty_like(source)
    _SOBEL[source.dtype.name](source, target)
    return target


def unsharp(image: Image, sigma: float, amount: float) -> Image:
    """``image`` with its difference from a blur of ``sigma`` pixels added ``amount`` times."""
    source = _checked(image, ranks=(2, 3))
    blurred = _blurred(source, sigma)
    target = np.empty_like(source)
    _UNSHARP[source.dtype.name](source.reshape(-1), blurred.reshape(-1), amount, target.reshape(-1))
    return target


def luminance(rgb: Image) -> Image:
    """The luminance (h, w) of an image (h, w, 3), by ITU-R BT.709."""
    source = _checked(rgb, ranks=(3,))
    if source.shape[2] != 3:
        raise ValueError(f"an RGB image has shape (h, w, 3), not {source.shape}")
    target = np.empty(source.shape[:2], dtype=source.dtype)
    _LUMINANCE[source.dtype.name](source.reshape(-1, 3), target.reshape(-1))
    return target


def median(image: Image) -> Image:
    """A grey ``image`` (h, w) without specks: each pixel the median of 3 by 3."""
    source = _checked(image, ranks=(2,))
    target = np.empty_like(source)
    handwritten.median(source, target)
    return target


def tone(image: Image) -> Image:
    """``image`` brightened by a square-root tone curve."""
    source = _checked(image, ranks=(2, 3))
    target = np.empty_like(source)
    _TONE[source.dtype.name](source.reshape(-1), target.reshape(-1))
    return target


def row_sums(image: Image) -> NDArray[Any]:
    """The sum of each row of a grey ``image`` (h, w): uint64 for uint8, float64 for float32."""
    source = _checked(image, ranks=(2,))
    sums = np.empty(source.shape[0], dtype=_SUM_TYPE[source.dtype.name])
    kernels.row_sums(source, sums)
    return sums


def _checked(image: Image, ranks: tuple[int, ...]) -> Image:
    """``image``, C-contiguous, of one of the ranks and of a type that has kernels."""
    if image.dtype.name not in _TONE:
        raise TypeError(f"an image is uint8 or float32, not {image.dtype.name}")
    if image.ndim not in ranks:
        wanted = " or ".join(str(rank) for rank in ranks)
        raise ValueError(f"an image of {wanted} dimensions is needed, not {image.ndim}")
    return image if image.flags.c_contiguous else image.copy()


def _blurred(source: Image, sigma: float) -> NDArray[np.float32]:
    """``source`` under a Gaussian, not yet rounded; a row of pixels is a row of numbers here."""
    weights = gaussian_weights(sigma)
    channels = source.shape[2] if source.ndim == 3 else 1
    table = source.reshape(source.shape[0], -1)
    rows = np.empty(table.shape, dtype=np.float32)
    kernels.blur_rows(table, weights, channels, rows)
    blurred = np.empty_like(rows)
    kernels.blur_columns(rows, weights, blurred)
    return blurred.reshape(source.shape)
