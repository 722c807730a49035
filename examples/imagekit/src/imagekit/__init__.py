"""Image filters for uint8 and float32 images; every kernel ships compiled in the wheel.

>>> import numpy as np
>>> import imagekit
>>> imagekit.tone(np.array([[0, 64, 255]], dtype=np.uint8))
array([[  0, 128, 255]], dtype=uint8)
"""

from imagekit.filters import (
    blur,
    gaussian_weights,
    luminance,
    median,
    row_sums,
    sobel,
    tone,
    unsharp,
)

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
