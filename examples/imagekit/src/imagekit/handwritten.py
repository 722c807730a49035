"""A kernel whose computation its author wrote, for CPUs and GPUs alike, in median.j2."""

import tack

__all__ = ["median"]


@tack.source_kernel(
    c="median.j2", cuda="median.j2", hip="median.j2", metal="median.j2", writes="target"
)
def median(image: tack.Array, target: tack.Array) -> None:
    """The median of each pixel of (h, w) and its eight neighbours."""
    for y, x in tack.ndrange(image.shape[0], image.shape[1]):
        ...
