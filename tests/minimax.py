"""Where the polynomials of the elementary functions come from.

``python tests/minimax.py [NAME...]`` prints the coefficients of the tables below, as the modules of
``tack.elementary`` hold them, and the error that is left; and other constants. Each polynomial is
the best one on its interval (E. Remez, 1934; here on a grid of Chebyshev nodes), found again after
each coefficient was rounded, lowest first, so that those above make up for the rounding
(N. Brisebarre, J.-M. Muller and A. Tisserand, "Computing machine-efficient polynomial
approximations", 2006, do so better).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import mpmath
from mpmath import mp, mpf

from tack.model.dtypes import f32, round_float

__all__ = ["CONSTANTS", "POLYNOMIALS", "Polynomial", "fit", "rounded"]

DIGITS: Final = 60

Function = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """What is approximated: ``weight * (polynomial - function)`` is to be small on the interval."""

    function: Function
    weight: Function
    low: float
    high: float
    terms: int
    """How many coefficients it has."""
    bits: int
    """Of the floats that the coefficients are: 32 or 64."""


def rounded(value: Any, bits: int) -> float:
    """The f32 or f64 nearest to a number."""
    with mp.workprec(24 if bits == 32 else 53):
        near = float(+value)
    return round_float(near, f32) if bits == 32 else near


def fit(wanted: Polynomial) -> tuple[list[float], float]:
    """The coefficients, lowest first, and the greatest weighted error that they leave."""
    with mp.workdps(DIGITS):
        count = 24 * (wanted.terms + 1)
        low, high = mpf(wanted.low), mpf(wanted.high)
        grid = [
            (low + high) / 2 + (high - low) / 2 * mpmath.cos(mp.pi * k / count)
            for k in range(count + 1)
        ]
        grid = [z for z in reversed(grid) if abs(z) > mpf(10) ** -9]
        exact = [wanted.function(z) for z in grid]
        weights = [abs(wanted.weight(z)) for z in grid]
        at_once = [
            rounded(each, wanted.bits) for each in _remez(grid, exact, weights, wanted.terms)
        ]
        values, scaled, found = exact, weights, []
        for terms in range(wanted.terms, 0, -1):
            found.append(rounded(_remez(grid, values, scaled, terms)[0], wanted.bits))
            # What is left for the others, with a factor of z taken out.
            values = [(value - found[-1]) / z for value, z in zip(values, grid, strict=True)]
            scaled = [weight * abs(z) for weight, z in zip(scaled, grid, strict=True)]

        def error(coefficients: list[float]) -> float:
            return float(
                max(
                    weight * abs(_value(coefficients, z) - value)
                    for z, value, weight in zip(grid, exact, weights, strict=True)
                )
            )

        # Where weights span many powers of ten, the later searches may lose their way.
        best = min(found, at_once, key=error)
        return best, error(best)


def _value(coefficients: Sequence[Any], z: Any) -> Any:
    value = mpf(0)
    for coefficient in reversed(coefficients):
        value = value * z + coefficient
    return value


def _remez(grid: list[Any], values: list[Any], weights: list[Any], terms: int) -> list[Any]:
    """The coefficients of the polynomial whose greatest error on the grid is least."""
    usable = [k for k, weight in enumerate(weights) if weight > 0]
    chosen = [usable[round(k * (len(usable) - 1) / terms)] for k in range(terms + 1)]
    best: list[Any] = []
    for _ in range(30):
        rows = mpmath.matrix(terms + 1)
        right = mpmath.matrix(terms + 1, 1)
        for row, k in enumerate(chosen):
            # Rows about as great as each other: weights may span many powers of ten.
            scale = weights[k] if weights[k] < 1 else mpf(1)
            for power in range(terms):
                rows[row, power] = scale * grid[k] ** power
            rows[row, terms] = (-1) ** row * scale / weights[k]
            right[row] = scale * values[k]
        *best, level = mpmath.lu_solve(rows, right)
        errors = [
            weight * (_value(best, z) - value)
            for z, value, weight in zip(grid, values, weights, strict=True)
        ]
        chosen, before = _extrema(errors, terms + 1), chosen
        worst = max(abs(error) for error in errors)
        if len(chosen) < terms + 1:
            return best
        if chosen == before or worst < abs(level) * mpf("1.0001"):
            break
    return best


def _value(coefficients: Sequence[Any], z: Any) -> Any:
    """The polynomial with these coefficients, lowest first."""
    total = mpf(0)
    for each in reversed(coefficients):
        total = total * z + each
    return total


def _extrema(errors: Sequence[Any], count: int) -> list[int]:
    """Where the error is greatest, with signs in turn: ``count`` places in order, if there are."""
    places: list[int] = []
    for k, error in enumerate(errors):
        if error == 0:
            continue
        if not places or (error > 0) != (errors[places[-1]] > 0):
            places.append(k)
        elif abs(error) > abs(errors[places[-1]]):
            places[-1] = k
    while len(places) > count:
        # Both ends may go; inside, a neighbour would have the same sign: so pairs go.
        if len(places) == count + 1:
            del places[0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1]
        else:
            least = min(
                range(len(places) - 1),
                key=lambda k: max(abs(errors[places[k]]), abs(errors[places[k + 1]])),
            )
            del places[least : least + 2]
    return places


def _quarter(bits: int) -> float:
    """The square of the greatest angle that reduction leaves, a little beyond pi/4."""
    return 0.6175 if bits == 32 else 0.61690


def _sine(terms: int, bits: int) -> Polynomial:
    """``sin(x) = x + x * z * polynomial(z)`` where ``z = x * x``; relative."""
    return Polynomial(
        lambda z: (mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        lambda z: z * mpmath.sqrt(z) / mpmath.sin(mpmath.sqrt(z)),
        0.0,
        _quarter(bits),
        terms,
        bits,
    )


def _cosine(terms: int, bits: int) -> Polynomial:
    """``cos(x) = 1 - z / 2 + z * z * polynomial(z)`` where ``z = x * x``; relative."""
    return Polynomial(
        lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mpmath.cos(mpmath.sqrt(z)),
        0.0,
        _quarter(bits),
        terms,
        bits,
    )


def _arctangent(terms: int, bits: int) -> Polynomial:
    """``atan(x) = x + x * z * polynomial(z)`` where ``z = x * x``, up to tan(pi/8); relative."""
    return Polynomial(
        lambda z: (mpmath.atan(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        lambda z: z * mpmath.sqrt(z) / mpmath.atan(mpmath.sqrt(z)),
        0.0,
        0.1717,
        terms,
        bits,
    )


def _arcsine(terms: int, bits: int) -> Polynomial:
    """``asin(x) = x + x * z * polynomial(z)`` where ``z = x * x``, up to 1/2; relative."""
    return Polynomial(
        lambda z: (mpmath.asin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        lambda z: z * mpmath.sqrt(z) / mpmath.asin(mpmath.sqrt(z)),
        0.0,
        0.25,
        terms,
        bits,
    )


_LARGEST_POWER: Final = (0.3467**2) * 1.001
"""The square of half of ln 2, a little more: what is left of the argument of exp."""


def _even(terms: int, bits: int) -> Polynomial:
    """``cosh(x) = 1 + z * polynomial(z)`` where ``z = x * x``; absolute."""
    return Polynomial(
        lambda z: (mpmath.cosh(mpmath.sqrt(z)) - 1) / z,
        lambda z: z,
        0.0,
        _LARGEST_POWER,
        terms,
        bits,
    )


def _odd(terms: int, bits: int) -> Polynomial:
    """``sinh(x) = x + x * z * polynomial(z)`` where ``z = x * x``; absolute."""
    return Polynomial(
        lambda z: (mpmath.sinh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z,
        lambda z: z * mpmath.sqrt(z),
        0.0,
        _LARGEST_POWER,
        terms,
        bits,
    )


def _logarithm(known: int, terms: int, bits: int) -> Polynomial:
    """``atanh(s) = s * (1 + z / 3 + ...)`` where ``z = s * s``, after ``known`` terms; relative.

    ``s`` is ``(m - 1) / (m + 1)`` of a number from sqrt(1/2) to sqrt(2).
    """

    def left(z: Any) -> Any:
        s = mpmath.sqrt(z)
        given = sum(z**k / (2 * k + 1) for k in range(known))
        return (mpmath.atanh(s) / s - given) / z**known

    return Polynomial(left, lambda z: z**known, 0.0, 0.02945, terms, bits)


def _cube_root(terms: int) -> Polynomial:
    """``cbrt(1 + z)`` from 1 to 2; relative."""
    return Polynomial(
        lambda z: mpmath.cbrt(1 + z), lambda z: 1 / mpmath.cbrt(1 + z), 0.0, 1.0, terms, 32
    )


def _error_near_zero(terms: int, bits: int) -> Polynomial:
    """``erf(x) = x + x * (z - root) * polynomial(z)`` where ``z = x * x``, to 7/8; relative.

    ``erf(x) = x`` at the square root of ``root``.
    """
    with mp.workdps(DIGITS):
        root = mpmath.findroot(lambda x: mpmath.erf(x) / x - 1, 0.62) ** 2

    def left(z: Any) -> Any:
        x = mpmath.sqrt(z)
        return (mpmath.erf(x) / x - 1) / (z - root)

    return Polynomial(
        left,
        lambda z: (z - root) * mpmath.sqrt(z) / mpmath.erf(mpmath.sqrt(z)),
        0.0,
        0.766,
        terms,
        bits,
    )


def _error_tail(terms: int, bits: int) -> Polynomial:
    """``erfc(x) = exp(-x * x) * polynomial((x - 2) / (x + 2))``, from 7/8 on; absolute."""

    def argument(t: Any) -> Any:
        return 2 * (1 + t) / (1 - t)

    return Polynomial(
        lambda t: mpmath.exp(argument(t) ** 2) * mpmath.erfc(argument(t)),
        lambda t: mpmath.exp(-(argument(t) ** 2)),
        -0.3914,
        0.334 if bits == 32 else 0.5001,
        terms,
        bits,
    )


POLYNOMIALS: Final[dict[str, Polynomial]] = {
    "exponential.EVEN[32]": _even(3, 32),
    "exponential.EVEN[64]": _even(6, 64),
    "exponential.ODD[32]": _odd(3, 32),
    "exponential.ODD[64]": _odd(5, 64),
    "logarithm.SERIES[32]": _logarithm(1, 3, 32),
    "logarithm.SERIES[64]": _logarithm(1, 7, 64),
    "power.SERIES[32]": _logarithm(2, 3, 32),
    "power.SERIES[64]": _logarithm(3, 7, 64),
    "roots.CUBE_ROOT": _cube_root(4),
    "error_function.NEAR_ZERO[32]": _error_near_zero(6, 32),
    "error_function.NEAR_ZERO[64]": _error_near_zero(12, 64),
    "error_function.TAIL[32]": _error_tail(6, 32),
    "error_function.TAIL[64]": _error_tail(14, 64),
    "trigonometric.SINE[32]": _sine(4, 32),
    "trigonometric.SINE[64]": _sine(6, 64),
    "trigonometric.COSINE[32]": _cosine(3, 32),
    "trigonometric.COSINE[64]": _cosine(6, 64),
    "inverse_trigonometric.ARCTANGENT[32]": _arctangent(5, 32),
    "inverse_trigonometric.ARCTANGENT[64]": _arctangent(11, 64),
    "inverse_trigonometric.ARCSINE[32]": _arcsine(6, 32),
    "inverse_trigonometric.ARCSINE[64]": _arcsine(13, 64),
}
"""The constant of ``tack.elementary`` that holds the coefficients -> what they approximate."""


def _halves(value: Any) -> tuple[float, float]:
    """A number as the sum of two f64."""
    high = rounded(value, 64)
    return high, rounded(value - high, 64)


def _pieces(value: Any, bits: int, last: int) -> tuple[float, ...]:
    """A number from 1 to 2 as a sum: three numbers of some bits, and what is left, rounded."""
    found = []
    for number in (1, 2, 3):
        unit = mpf(2) ** (1 - bits * number)
        found.append(mpmath.floor(value / unit) * unit)
        value -= found[-1]
    return (*map(float, found), rounded(value, last))


with mp.workprec(2000):
    CONSTANTS: Final[dict[str, Any]] = {
        "reduction.TWO_OVER_PI": int(mpmath.floor(2 / mp.pi * mpf(2) ** 1216)),
        "reduction.HALF_PI": _halves(mp.pi / 2),
        "reduction.PIECES[32]": _pieces(mp.pi / 2, 13, 32),
        "reduction.PIECES[64]": _pieces(mp.pi / 2, 33, 64),
        **{
            f"inverse_trigonometric.QUARTERS[{count}]": _halves(count * mp.pi / 4)
            for count in (1, 2, 3, 4)
        },
        "inverse_trigonometric.TAN_EIGHTH": rounded(mpmath.tan(mp.pi / 8), 64),
    }
"""A constant of ``tack.elementary`` -> its value."""


def main() -> None:
    """Prints what the modules hold."""
    for name in sys.argv[1:] or [*CONSTANTS, *POLYNOMIALS]:
        if name in CONSTANTS:
            sys.stdout.write(f"{name} = {CONSTANTS[name]!r}\n")
            continue
        found, error = fit(POLYNOMIALS[name])
        lines = "".join(f"    {each!r},\n" for each in found)
        sys.stdout.write(f"{name} = (  # error {error:.3g}\n{lines})\n")


if __name__ == "__main__":
    main()
