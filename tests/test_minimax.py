"""The numbers in ``tack.elementary`` are what ``minimax.py`` makes."""

from __future__ import annotations

import importlib
import re
from typing import Any

import mpmath
import pytest
from minimax import CONSTANTS, POLYNOMIALS, Polynomial, fit


def held(name: str) -> Any:
    """What a module has under ``module.NAME`` or ``module.NAME[key]``."""
    match = re.fullmatch(r"(\w+)\.(\w+)(?:\[(\d+)\])?", name)
    assert match is not None
    value = getattr(importlib.import_module(f"tack.elementary.{match[1]}"), match[2])
    return value[int(match[3])] if match[3] else value


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_coefficients_are_those_that_the_script_makes(name: str) -> None:
    assert tuple(fit(POLYNOMIALS[name])[0]) == held(name)


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_that_the_script_makes(name: str) -> None:
    assert CONSTANTS[name] == held(name)


def test_the_best_polynomial_of_a_known_function() -> None:
    # Of degree 1 for the square on [0, 1] it is x - 1/8, which is off by 1/8 (Chebyshev).
    wanted = Polynomial(lambda z: z * z, lambda z: mpmath.mpf(1), 0.0, 1.0, 2, 64)
    (low, high), error = fit(wanted)
    assert abs(low + 0.125) < 1e-3
    assert abs(high - 1) < 1e-3
    assert abs(error - 0.125) < 1e-3
