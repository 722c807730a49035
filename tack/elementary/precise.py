"""Numbers of twice the precision: the unevaluated sum of two floats, of which ``low`` is small.

Error-free sums and products by Knuth and Dekker (T. J. Dekker, "A floating-point technique for
extending the available precision", Numerische Mathematik 18, 1971), without fused operations:
targets that lack them would be slow. Nothing here may overflow: a factor of a product stays below
2^100 (f32) or 2^990 (f64).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tack.elementary.term import Number, Term, constant, select

__all__ = ["Double", "choose", "double", "polynomial", "product", "quick_sum", "split", "sum_of"]


@dataclass(frozen=True, slots=True)
class Double:
    """``high + low`` where ``low`` is at most half a unit in the last place of ``high``."""

    high: Term
    low: Term

    def __add__(self, other: Double | Number) -> Double:
        """The sum, to about twice the precision where the two do not cancel."""
        if not isinstance(other, Double):
            total = sum_of(self.high, other)
            return quick_sum(total.high, total.low + self.low)
        total = sum_of(self.high, other.high)
        return quick_sum(total.high, total.low + (self.low + other.low))

    def __sub__(self, other: Double) -> Double:
        return self + -other

    def __neg__(self) -> Double:
        return Double(-self.high, -self.low)

    def __mul__(self, other: Double | Number) -> Double:
        """The product, to about twice the precision."""
        if not isinstance(other, Double):
            raw = product(self.high, other)
            return quick_sum(raw.high, raw.low + self.low * other)
        raw = product(self.high, other.high)
        return quick_sum(raw.high, raw.low + (self.high * other.low + self.low * other.high))

    def __truediv__(self, other: Double) -> Double:
        """The quotient, to about twice the precision."""
        ratio = self.high / other.high
        back = product(ratio, other.high)
        rest = (self.high - back.high) - back.low + self.low - ratio * other.low
        return quick_sum(ratio, rest / other.high)

    @property
    def value(self) -> Term:
        """The float nearest to it."""
        return self.high + self.low


def double(value: float | tuple[float, float], like: Term) -> Double:
    """A constant: a Python float, or the sum of two, as two floats of the type."""
    high, low = value if isinstance(value, tuple) else (value, 0.0)
    top = constant(high, like)
    assert isinstance(top.value, float)
    return Double(top, constant((high - top.value) + low, like))


def sum_of(a: Term, b: Number) -> Double:
    """``a + b`` exactly."""
    total = a + b
    shadow = total - a
    return Double(total, (a - (total - shadow)) + (constant(b, a) - shadow))


def quick_sum(a: Term, b: Term) -> Double:
    """``a + b`` exactly, where ``abs(a) >= abs(b)`` or ``a`` is 0."""
    total = a + b
    return Double(total, b - (total - a))


def split(a: Term) -> tuple[Term, Term]:
    """``a`` as two floats of half as many bits."""
    scaled = a * (4097.0 if a.dtype.bits == 32 else 134217729.0)
    high = scaled - (scaled - a)
    return high, a - high


def product(a: Term, b: Number) -> Double:
    """``a * b`` exactly, but for results next to the subnormals."""
    b = constant(b, a)
    total = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    return Double(total, al * bl - (((total - ah * bh) - al * bh) - ah * bl))


def polynomial(coefficients: Sequence[float], x: Term) -> Term:
    """``c0 + x * (c1 + x * (c2 + ...))``, each operation rounded."""
    *others, last = coefficients
    value: Number = last
    for coefficient in reversed(others):
        value = x * value + coefficient
    return constant(value, x)


def choose(condition: Term, one: Double, other: Double) -> Double:
    """``one`` where the condition holds, else ``other``."""
    return Double(select(condition, one.high, other.high), select(condition, one.low, other.low))
