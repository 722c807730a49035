"""What is read back from an image, whatever it is an image of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tack.model.bundle import Resources

__all__ = ["ImageFacts"]


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The architecture that an image is for, what it needs beside, its entry points by symbol."""

    arch: str
    needs: str
    entries: Mapping[str, Resources]
