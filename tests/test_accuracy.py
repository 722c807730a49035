"""The elementary functions are as accurate as docs/arithmetic.md says."""

from __future__ import annotations

from typing import Any

import accuracy
import numpy as np
import pytest

from tack.ir.operations import ELEMENTARY

TOLD = accuracy.rows(accuracy.PAGE.read_text(encoding="utf-8"))


def test_the_page_tells_of_each_function() -> None:
    assert list(TOLD) == list(ELEMENTARY)


@pytest.mark.parametrize("name", ELEMENTARY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_are_within_what_is_told_and_promised(name: str, dtype: Any) -> None:
    told, bound = (each[name][dtype is np.float64] for each in (TOLD, accuracy.BOUNDS))
    assert accuracy.sampled(name, dtype, 0).ulps <= told <= bound


def test_errors_are_measured_in_units_of_the_exact_value() -> None:
    def found(result: float, of: float) -> float:
        return accuracy.errors_of("asin", np.array([result], np.float32), np.array([of], "f")).ulps

    assert found(np.nan, 2.0) == 0
    assert found(1.0, 2.0) == np.inf
    assert found(np.nan, 0.5) == np.inf
    assert found(0.0, -0.0) == np.inf
    assert found(-0.0, -0.0) == 0
    # pi/2 lies 0.3667 units below the f32 nearest to it, and is in [1, 2).
    near = np.float32(np.pi / 2)
    assert abs(found(near, 1.0) - 0.36668) < 1e-4
    assert abs(found(np.nextafter(near, np.float32(0)), 1.0) - 0.63332) < 1e-4
    assert found(1e-45, 1e-45) == 0
    assert found(3e-45, 1e-45) == 1


def test_infinity_counts_as_the_power_of_two_beyond_the_greatest_number() -> None:
    greatest = np.finfo(np.float32).max

    def found(result: float, of: float) -> float:
        args = np.array([of], "f"), np.array([1.0], "f")
        return accuracy.errors_of("pow", np.array([result], np.float32), *args).ulps

    assert found(np.inf, greatest) == 1
    assert found(greatest, np.inf) == np.inf
    assert found(np.inf, np.inf) == 0


def test_a_table_keeps_the_rows_of_what_was_not_measured() -> None:
    start, end = accuracy.MARKERS
    page = f"a\n{start}\n| `cos` | 0.5 of all | 0.6 of 7 samples |\n| `sin` | old |\n{end}\nz\n"
    new = accuracy.written(page, {"sin": "| `sin` | 0.700 of all | 0.800 of 9 samples |"})
    assert accuracy.rows(new) == {"cos": (0.5, 0.6), "sin": (0.7, 0.8)}
    assert new.startswith(f"a\n{start}\n")
    assert new.endswith(f"\n{end}\nz\n")
