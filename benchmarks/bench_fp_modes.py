"""What the floating-point modes gain: a sum of products and a polynomial, compiled at the call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import measure
import numpy as np

import tack

TERMS, SUMS, VALUES = 20_000, 50, 20_000


def kernels(mode: str) -> tuple[Any, Any]:
    """The two kernels in a floating-point mode."""

    @tack.kernel(fp=mode)
    def total(x: tack.Array, y: tack.Array, out: tack.Array) -> None:
        for i in range(out.shape[0]):
            sum_: tack.f32 = 0
            for j in range(x.shape[0]):
                sum_ += x[j] * y[j]
            out[i] = sum_

    @tack.kernel(fp=mode)
    def polynomial(x: tack.Array, out: tack.Array) -> None:
        for i in range(out.shape[0]):
            a = x[i]
            value = a * 0.1 + 0.2
            value = value * a + 0.3
            value = value * a + 0.4
            value = value * a + 0.5
            value = value * a + 0.6
            value = value * a + 0.7
            value = value * a + 0.8
            out[i] = value * a + 0.9

    return total, polynomial


def subject(kernel: Any, *arrays: np.ndarray[Any, Any], expected: Any) -> Callable[[], float]:
    """Seconds of one call, after a check of what it computes."""
    kernel(*arrays)
    np.testing.assert_allclose(arrays[-1], expected, rtol=1e-4)

    def once() -> float:
        begin = time.perf_counter()
        kernel(*arrays)
        return time.perf_counter() - begin

    return once


def main() -> None:
    """Times each kernel in each mode."""
    options = measure.arguments(__doc__, rounds=51)
    random = np.random.default_rng(1)
    x, y = random.random((2, TERMS), np.float32)
    dot = np.dot(x.astype(float), y.astype(float))
    values = np.polyval(np.arange(1, 10) / 10, x[:VALUES].astype(float))
    made = {mode: kernels(mode) for mode in ("strict", "contract", "fast")}
    sums, results = np.zeros(SUMS, np.float32), np.zeros(VALUES, np.float32)
    for title, number, arrays, expected in (
        ("a sum of products, f32", 0, (x, y, sums), dot),
        ("a polynomial, f32", 1, (x[:VALUES], results), values),
    ):
        subjects = {
            mode: subject(both[number], *arrays, expected=expected) for mode, both in made.items()
        }
        table = measure.table(title, "ms", "strict", measure.rounds(subjects, options.rounds))
        print(table)
        if options.json:
            table.write(options.json)


if __name__ == "__main__":
    main()
