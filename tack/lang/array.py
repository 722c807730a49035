"""The type that annotates array parameters."""

from __future__ import annotations

__all__ = ["Array"]


class Array:
    """Annotation of an array parameter; the call decides its dtype and rank.

    To a type checker it is what a kernel may do with an array: index it, and ask its shape.
    """

    shape: tuple[int, ...]

    def __getitem__(self, index: object) -> float:
        raise TypeError("tack.Array annotates parameters; pass NumPy arrays to a kernel")

    def __setitem__(self, index: object, value: float) -> None:
        raise TypeError("tack.Array annotates parameters; pass NumPy arrays to a kernel")
