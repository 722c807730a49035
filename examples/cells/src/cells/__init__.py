"""Cell averages of point data, over a structured grid and over explicit cells."""

from cells.kernels import ExplicitCells, StructuredCells, avg

__all__ = ["ExplicitCells", "StructuredCells", "avg"]
