"""A sparse matrix times a vector; the matrix in compressed rows (CSR), as SciPy keeps it."""

import tack

__all__ = ["multiply"]


@tack.kernel
def multiply(starts, columns, values, x, y):
    """Row ``i`` has the entries from ``starts[i]`` to ``starts[i + 1]``."""
    for row in range(y.shape[0]):
        total = 0.0
        for entry in range(starts[row], starts[row + 1]):
            total += values[entry] * x[columns[entry]]
        y[row] = total
