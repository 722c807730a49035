"""Terms: the operations of which elementary functions are made, recorded as they are written.

A function of the family modules takes terms and gives one. Operators, comparisons and the functions
below make a new term of their operands; a Python number beside a term is a constant of its type.
Every operation has one meaning on every target, and no undefined case where the rules below are
kept:

- arithmetic on floats rounds each operation to the type; integers wrap;
- a count of ``<<`` and ``>>`` is a Python number or a term below the width; ``>>`` keeps the sign
  of signed types;
- `integer` takes floats whose whole part the integer type holds, which NaN is not: `select`
  something else first;
- both operands of an operator have one type; conditions are bool terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from tack.model.dtypes import DTYPES, DType, bool_, round_float

__all__ = [
    "Formula",
    "Guarded",
    "Term",
    "absolute",
    "as_float",
    "bits_of",
    "constant",
    "convert",
    "copysign",
    "floor",
    "from_bits",
    "guarded",
    "integer",
    "nearest",
    "select",
    "sqrt",
    "trace",
    "trunc",
]


class Term:
    """The result of one operation: its name, operands and type; ``value`` of a constant."""

    __slots__ = ("dtype", "op", "operands", "value")

    def __init__(
        self,
        op: str,
        operands: Sequence[Term],
        dtype: DType,
        value: int | float | Guarded | None = None,
    ) -> None:
        self.op = op
        self.operands = tuple(operands)
        self.dtype = dtype
        self.value = value

    def __add__(self, other: Number) -> Term:
        return self._binary("+", other)

    def __radd__(self, other: Number) -> Term:
        return constant(other, self)._binary("+", self)

    def __sub__(self, other: Number) -> Term:
        return self._binary("-", other)

    def __rsub__(self, other: Number) -> Term:
        return constant(other, self)._binary("-", self)

    def __mul__(self, other: Number) -> Term:
        return self._binary("*", other)

    def __rmul__(self, other: Number) -> Term:
        return constant(other, self)._binary("*", self)

    def __truediv__(self, other: Number) -> Term:
        return self._binary("/", other)

    def __rtruediv__(self, other: Number) -> Term:
        return constant(other, self)._binary("/", self)

    def __and__(self, other: Number) -> Term:
        return self._binary("&", other)

    def __or__(self, other: Number) -> Term:
        return self._binary("|", other)

    def __xor__(self, other: Number) -> Term:
        return self._binary("^", other)

    def __lshift__(self, count: Number) -> Term:
        return self._binary("shl", count)

    def __rshift__(self, count: Number) -> Term:
        return self._binary("shr", count)

    def __neg__(self) -> Term:
        return Term("neg", [self], self.dtype)

    def __invert__(self) -> Term:
        """Not a bool; of an integer all its bits are changed."""
        if self.dtype.is_bool:
            return Term("not", [self], bool_)
        return self ^ constant(self.dtype.wrap(-1), self)

    def __lt__(self, other: Number) -> Term:
        return self._compare("<", other)

    def __le__(self, other: Number) -> Term:
        return self._compare("<=", other)

    def __gt__(self, other: Number) -> Term:
        return self._compare(">", other)

    def __ge__(self, other: Number) -> Term:
        return self._compare(">=", other)

    def equals(self, other: Number) -> Term:
        """``self == other``, which Python keeps for itself."""
        return self._compare("==", other)

    def differs(self, other: Number) -> Term:
        """``self != other``; of a term with itself: whether it is NaN."""
        return self._compare("!=", other)

    def __bool__(self) -> bool:
        raise TypeError("a term has no truth value while it is written; use select()")

    def _binary(self, op: str, other: Number) -> Term:
        right = constant(other, self)
        if right.dtype is not self.dtype:
            raise TypeError(f"{self.dtype} {op} {right.dtype}: both have one type")
        return Term(op, [self, right], self.dtype)

    def _compare(self, op: str, other: Number) -> Term:
        return Term(op, [self, constant(other, self)], bool_)


Number: TypeAlias = Term | int | float


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A function that was traced: its parameters, and its results, one or several."""

    parameters: tuple[Term, ...]
    results: tuple[Term, ...]

    def terms(self) -> Iterator[Term]:
        """Every term that the results need, operands first, each once."""
        seen: set[int] = set()
        stack = [(term, False) for term in reversed(self.results)]
        while stack:
            term, ready = stack.pop()
            if ready:
                yield term
            elif id(term) not in seen:
                seen.add(id(term))
                stack.append((term, True))
                stack.extend((operand, False) for operand in reversed(term.operands))


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """What is computed only where a condition holds: a formula of the operands after it."""

    formula: Formula


def constant(value: Number, like: Term | DType) -> Term:
    """A number as a term of a type, rounded to it; a term is given back."""
    if isinstance(value, Term):
        return value
    dtype = like if isinstance(like, DType) else like.dtype
    if dtype.is_bool:
        return Term("constant", [], dtype, bool(value))
    number = round_float(float(value), dtype) if dtype.is_float else value
    if dtype.is_integer and not dtype.holds(int(value)):
        raise ValueError(f"{value} is out of the range of {dtype}")
    return Term("constant", [], dtype, number)


def select(condition: Term, one: Number, other: Number) -> Term:
    """``one`` where the condition holds, else ``other``; both are computed."""
    like = one if isinstance(one, Term) else other
    assert isinstance(like, Term), "one of the two is a term"
    one, other = constant(one, like), constant(other, like)
    if one.dtype is not other.dtype:
        raise TypeError(f"{one.dtype} or {other.dtype}: both have one type")
    return Term("select", [condition, one, other], one.dtype)


def absolute(x: Term) -> Term:
    """A float without its sign."""
    return Term("abs", [x], x.dtype)


def copysign(x: Number, sign: Term) -> Term:
    """The float ``x`` with the sign of another."""
    return Term("copysign", [constant(x, sign), sign], sign.dtype)


def sqrt(x: Term) -> Term:
    """The correctly rounded square root."""
    return Term("sqrt", [x], x.dtype)


def nearest(x: Term) -> Term:
    """The whole number nearest to a float, halves to the even one, as a float."""
    return Term("round", [x], x.dtype)


def floor(x: Term) -> Term:
    """The greatest whole number not above a float, as a float."""
    return Term("floor", [x], x.dtype)


def trunc(x: Term) -> Term:
    """A float without its fraction."""
    return Term("trunc", [x], x.dtype)


def bits_of(x: Term) -> Term:
    """The bits of a float, as the unsigned integer of its width."""
    return Term("bitcast", [x], DTYPES[f"u{x.dtype.bits}"])


def from_bits(x: Term) -> Term:
    """The float that has the bits of an integer of its width."""
    return Term("bitcast", [x], DTYPES[f"f{x.dtype.bits}"])


def integer(x: Term) -> Term:
    """The whole part of a float, in range, as the signed integer of its width."""
    return Term("cast", [x], DTYPES[f"i{x.dtype.bits}"])


def as_float(x: Term) -> Term:
    """An integer as the float of its width, rounded once."""
    return Term("cast", [x], DTYPES[f"f{x.dtype.bits}"])


def convert(x: Term, dtype: DType) -> Term:
    """An integer or bool as another integer type: its low bits, or extended by its own sign."""
    if x.dtype is dtype:
        return x
    if x.dtype.is_float or dtype.is_float:
        raise TypeError(f"{x.dtype} as {dtype}: integers only")
    return Term("cast", [x], dtype)


def guarded(
    condition: Term,
    compute: Callable[..., tuple[Term, ...]],
    *args: Term,
    otherwise: Sequence[Term],
) -> tuple[Term, ...]:
    """``compute(*args)`` where the condition holds, else ``otherwise``; several results.

    The only branch that there is: for what is costly and seldom needed.
    """
    parameters = tuple(Term("parameter", [], arg.dtype) for arg in args)
    formula = Formula(parameters, tuple(compute(*parameters)))
    what = Term("guarded", [condition, *args, *otherwise], bool_, Guarded(formula))
    return tuple(Term("result", [what], term.dtype, index) for index, term in enumerate(otherwise))


@cache
def trace(function: Callable[..., Term], dtypes: tuple[DType, ...]) -> Formula:
    """The formula of a function at the types of its arguments."""
    parameters = tuple(Term("parameter", [], dtype) for dtype in dtypes)
    return Formula(parameters, (function(*parameters),))
