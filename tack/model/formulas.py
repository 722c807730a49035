"""The formulas of vectors and matrices, with the order of every operation.

Written once over anything that has operators: NumPy's numbers in plain Python, and the terms that
lowering makes IR of. Sums run from left to right. A vector is a sequence, a matrix one of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["cross", "determinant", "dot", "inverse", "product", "transpose"]

Row = Sequence[Any]
Rows = Sequence[Row]


def dot(a: Row, b: Row) -> Any:
    """``(a0 * b0 + a1 * b1) + a2 * b2``, and so on."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def cross(a: Row, b: Row) -> list[Any]:
    """The cross product of two vectors of 3."""
    return [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]


def transpose(m: Rows) -> list[list[Any]]:
    """Rows as columns."""
    return [list(column) for column in zip(*m, strict=True)]


def product(a: Rows, b: Rows) -> list[list[Any]]:
    """``a @ b``: each element the `dot` of a row and a column."""
    return [[dot(row, column) for column in transpose(b)] for row in a]


def determinant(m: Rows) -> Any:
    """Expanded along the first row: ``(m00 * c0 - m01 * c1) + m02 * c2``, c of the same kind."""
    if len(m) == 2:
        return m[0][0] * m[1][1] - m[0][1] * m[1][0]
    total = m[0][0] * determinant(_minor(m, 0, 0))
    for column in range(1, len(m)):
        term = m[0][column] * determinant(_minor(m, 0, column))
        total = total - term if column % 2 else total + term
    return total


def inverse(m: Rows, whole: Any) -> list[list[Any]]:
    """The adjugate divided by the determinant ``whole``, element by element."""
    size = len(m)

    def element(row: int, column: int) -> Any:
        minor = _minor(m, column, row)
        cofactor = minor[0][0] if size == 2 else determinant(minor)
        return (-cofactor if (row + column) % 2 else cofactor) / whole

    return [[element(row, column) for column in range(size)] for row in range(size)]


def _minor(m: Rows, row: int, column: int) -> list[list[Any]]:
    """``m`` without one row and one column."""
    return [
        [value for j, value in enumerate(values) if j != column]
        for i, values in enumerate(m)
        if i != row
    ]
