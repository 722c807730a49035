"""The types of expressions: dtypes, and weak types of what comes from literals alone.

A literal takes the type of what it meets, so until then it has a weak type. A weak integer knows
the least and greatest literal it may be, if only literals went in; it takes the integer type that
it meets if that holds them, else it counts as i64. Literals combine among themselves as Python
numbers do (``200 + 100`` is the literal 300), and what is weak without being a literal (it reads a
local) is computed in i64 or f64 and then converted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tack.ir.operations import (
    BIT_COUNTS,
    ELEMENTARY,
    GROUP_REDUCTIONS,
    PREDICATES,
    RANDOM,
    random_dtype,
)
from tack.model.dtypes import DType, as_operand, bool_, f32, f64, i64, promote, u64
from tack.model.spelling import article
from tack.passes import arithmetic

__all__ = ["Refusal", "Rules", "Type", "Weak", "is_float", "is_integer", "is_square"]


class Refusal(Exception):
    """The language refuses a combination of types; the text says so to the user."""


@dataclass(frozen=True, slots=True)
class Weak:
    """The type of a number that has not met a type.

    ``low`` and ``high`` bound an integer, None where not known. ``literal`` tells literals, what is
    computed from them alone, and a choice between them, from what was read.
    """

    floating: bool
    low: int | None = None
    high: int | None = None
    literal: bool = False

    @property
    def value(self) -> int | None:
        """The value of an integer literal."""
        return self.low if self.literal and self.low == self.high else None

    def loaded(self) -> Weak:
        """The type of reading a local of this type."""
        return Weak(self.floating, self.low, self.high)

    def __str__(self) -> str:
        what = "float" if self.floating else "integer"
        return f"{what} literal" if self.literal else what


Type = DType | Weak

_NATURAL: Final = {True: f64, False: i64}


def is_float(type_: Type) -> bool:
    """Whether a type is floating, weak floats included."""
    return type_.floating if isinstance(type_, Weak) else type_.is_float


def is_square(exponent: Type) -> bool:
    """Whether an exponent is the literal 2, so that the power is a product."""
    return isinstance(exponent, Weak) and exponent.value == 2


def is_integer(type_: Type) -> bool:
    """Whether a type is an integer, weak ones and bool included."""
    return not is_float(type_)


def _numeric(type_: Type) -> Type:
    """``type_`` as an operand of arithmetic: a bool on its own is i64, a float of 8 bits f32."""
    if isinstance(type_, Weak):
        return type_
    return i64 if type_.is_bool else as_operand(type_)


@dataclass(frozen=True, slots=True)
class Rules:
    """What type each operation works at, and what it gives, for one function."""

    default_float: DType

    def natural(self, type_: Type) -> DType:
        """The type that a value of ``type_`` is held in before it meets one."""
        if not isinstance(type_, Weak):
            return type_
        if type_.low is None or type_.high is None:
            return _NATURAL[type_.floating]
        for dtype in (i64, u64):
            if dtype.holds(type_.low) and dtype.holds(type_.high):
                return dtype
        raise Refusal(f"{_span(type_)} fits no integer type; the widest have 64 bits")

    def settled(self, type_: Type) -> DType:
        """The type of a local that was left weak without being a literal."""
        if isinstance(type_, Weak):
            return self.default_float if type_.floating else i64
        return type_

    def meet(self, a: Type, b: Type) -> Type:
        """The type that holds both: of two operands, or of one local's assignments."""
        if isinstance(a, Weak):
            return self._meet_weak(a, b)
        if isinstance(b, Weak):
            return self._meet_weak(b, a)
        common = promote(a, b)
        if common is None:
            raise Refusal(
                f"{a} and {b} have no common type that holds both; cast one of them: "
                f"tack.{a}(...) or tack.{b}(...)"
            )
        return common

    def _meet_weak(self, weak: Weak, other: Type) -> Type:
        if isinstance(other, Weak):
            literal = weak.literal and other.literal
            floating = weak.floating or other.floating
            bounds = (weak.low, weak.high, other.low, other.high)
            if floating or None in bounds:
                return Weak(floating, literal=literal)
            known = [bound for bound in bounds if bound is not None]
            return Weak(False, min(known), max(known), literal)
        if other.is_float:
            return as_operand(other)
        if weak.floating:
            return self.default_float
        if other.is_bool:
            return self.meet(i64, other)
        if weak.low is None or weak.high is None:
            return other
        if other.holds(weak.low) and other.holds(weak.high):
            return other
        if not (i64.holds(weak.low) and i64.holds(weak.high)):
            types = f"{other}, nor i64" if other is not i64 else "i64"
            raise Refusal(f"{_span(weak)} does not fit {types}")
        if other is u64:
            raise Refusal(
                f"{_span(weak)} does not fit u64, and no type holds both; cast one of them: "
                "tack.u64(...) or tack.i64(...)"
            )
        return self.meet(i64, other)

    def binary(self, op: str, a: Type, b: Type) -> tuple[Type, Type, Type]:
        """The types of left operand, right operand and result of ``a op b``."""
        if op == "**" and (is_float(a) or is_float(b)):
            return self._float_power(a, b)
        if isinstance(a, Weak) and isinstance(b, Weak):
            result: Type = self._weak_binary(op, a, b)
            return result, result, result
        if op in ("<<", ">>", "**"):
            self._integers(op, a, b)
            left = i64 if isinstance(a, Weak) else _numeric(a)
            right = i64 if isinstance(b, Weak) else _numeric(b)
            return left, right, left
        if op in ("&", "|", "^"):
            self._integers(op, a, b)
            common = self.meet(a, b)
        elif op == "/" and is_integer(a) and is_integer(b):
            common = f32
        else:
            common = _numeric(self.meet(a, b))
        return common, common, common

    def _float_power(self, a: Type, b: Type) -> tuple[Type, Type, Type]:
        """``a ** b`` of floats; of a square the exponent stays the literal 2."""
        if is_square(b):
            return _numeric(a), b, _numeric(a)
        common = _numeric(self.meet(a, b))
        if isinstance(a, Weak) and isinstance(b, Weak):
            common = Weak(True, literal=a.literal and b.literal)
        return common, common, common

    def _weak_binary(self, op: str, a: Weak, b: Weak) -> Weak:
        literal = a.literal and b.literal
        if a.floating or b.floating or op == "/":
            if op not in ("+", "-", "*", "/", "//", "%"):
                self._integers(op, a, b)
            return Weak(True, literal=literal)
        if a.value is None or b.value is None:
            return Weak(False, literal=literal)
        if op == "**" and b.value < 0:
            raise Refusal(NEGATIVE_EXPONENT)
        try:
            value = arithmetic.exact(op, a.value, b.value)
        except ValueError as error:
            raise Refusal(str(error)) from None
        return Weak(False, value, value, literal=True)

    def _integers(self, op: str, a: Type, b: Type) -> None:
        for type_ in (a, b):
            if is_float(type_):
                raise Refusal(
                    f"{op!r} takes integers, not {_article(type_)}; cast it: int(...), or to an "
                    "integer type"
                )

    def compared(self, a: Type, b: Type) -> DType:
        """The type at which two values are compared."""
        return as_operand(self.natural(self.meet(a, b)))

    def unary(self, op: str, a: Type) -> Type:
        """The type of ``-a`` or ``~a``, at which the operand is taken too."""
        if op == "~" and is_float(a):
            raise Refusal(f"'~' takes integers, not {_article(a)}; cast it: int(...)")
        if op == "~" and not isinstance(a, Weak) and a.is_bool:
            raise Refusal("'~' of a bool; write not")
        if not isinstance(a, Weak):
            return _numeric(a)
        if a.floating or a.value is None:
            return Weak(a.floating, literal=a.literal)
        value = -a.value if op == "-" else ~a.value
        return Weak(False, value, value, literal=True)

    def call(self, name: str, types: list[Type]) -> tuple[Type, Type]:
        """The types of the operands and of the result of a builtin."""
        if name in RANDOM:
            return u64, self._random(name, types)
        common = types[0]
        for type_ in types[1:]:
            common = self.meet(common, type_)
        if not isinstance(common, Weak):
            common = as_operand(common)
        return _CALLS[name](self, name, common)

    def _random(self, name: str, types: list[Type]) -> DType:
        """The type of a random number; the operands count modulo 2^64."""
        for what, type_ in zip(("a seed", "a counter"), types, strict=False):
            if is_float(type_):
                raise Refusal(f"{what} is an integer, not {_article(type_)}; cast it: int(...)")
            self.natural(type_)
        for type_ in types[2:]:
            self.bound(type_, "a bound of randint")
        return random_dtype(name)

    def store(self, value: Type, dtype: DType, what: str) -> None:
        """Refuses a value that ``what``, which has ``dtype``, does not take without a cast."""
        if isinstance(value, Weak) and not value.floating and not dtype.is_float:
            self.natural(value)  # one that no integer type holds is refused
        fits = dtype.is_float or is_integer(value)
        if dtype.is_bool:
            fits = value is dtype
        if not fits:
            word = "bool" if dtype.is_bool else f"tack.{dtype}"
            raise Refusal(f"{what} is {dtype} and this is {_article(value)}; cast it: {word}(...)")

    def index(self, type_: Type, what: str) -> None:
        """Refuses what cannot be an index; a bool, which NumPy takes for a mask, too."""
        self._whole(type_, what, NO_MASK)

    def _whole(self, type_: Type, what: str, advice: str) -> None:
        if type_ is bool_:
            raise Refusal(f"{what} is an integer, not a bool; {advice}")
        if is_float(type_):
            raise Refusal(
                f"{what} is an integer, not {_article(type_)}; write // or cast it: int(...)"
            )
        if isinstance(type_, Weak) and type_.low is not None and type_.high is not None:
            for value in (type_.low, type_.high):
                if not i64.holds(value):
                    raise Refusal(f"{what} is i64, which does not hold {value}")

    def bound(self, type_: Type, what: str) -> None:
        """Refuses what cannot be a bound of a loop."""
        self._whole(type_, what, "cast it: int(...)")
        if type_ is u64:
            raise Refusal(f"{what} is i64, which does not hold every u64; cast it: tack.i64(...)")


NO_MASK: Final = "write int(...) for a number, and an if where it is a mask"

NEGATIVE_EXPONENT: Final = (
    "an integer to a negative power is not an integer; cast the base to a float and divide"
)


def _span(weak: Weak) -> str:
    return f"{weak.low}" if weak.low == weak.high else f"a literal of {weak.low} to {weak.high}"


def _article(type_: Type) -> str:
    if isinstance(type_, Weak):
        return f"a float{' literal' if type_.literal else ''}" if type_.floating else "an integer"
    return article(type_.name)


def _loaded(type_: Type) -> Type:
    return type_.loaded() if isinstance(type_, Weak) else type_


def _absolute(_: Rules, __: str, common: Type) -> tuple[Type, Type]:
    type_ = Weak(common.floating) if isinstance(common, Weak) else _numeric(common)
    return type_, type_


def _choosing(_: Rules, __: str, common: Type) -> tuple[Type, Type]:
    type_ = _loaded(_numeric(common))
    return type_, type_


def _combining(rules: Rules, _: str, common: Type) -> tuple[Type, Type]:
    type_ = rules.settled(_numeric(common))
    return type_, type_


def _root(rules: Rules, _: str, common: Type) -> tuple[Type, Type]:
    if is_integer(common):
        return f32, f32
    type_ = rules.settled(common)
    return type_, type_


def _floats(rules: Rules, name: str, common: Type) -> tuple[Type, Type]:
    if is_integer(common):
        raise Refusal(f"{name} takes floats, not {_article(common)}; cast one: tack.f64(...)")
    type_ = rules.settled(common)
    return type_, type_


def _asking(rules: Rules, name: str, common: Type) -> tuple[Type, Type]:
    if is_integer(common):
        raise Refusal(f"{name} takes floats, not {_article(common)}: every integer is finite")
    return rules.settled(common), bool_


def _bits(rules: Rules, name: str, common: Type) -> tuple[Type, Type]:
    if is_float(common):
        raise Refusal(f"{name} takes integers, not {_article(common)}; cast it: tack.u32(...)")
    type_ = rules.natural(_numeric(common))
    return type_, type_


_CALLS: Final = {
    "abs": _absolute,
    "min": _choosing,
    "max": _choosing,
    "floor": _choosing,
    "ceil": _choosing,
    "trunc": _choosing,
    "sqrt": _root,
    "fma": _floats,
    "fmod": _floats,
    "copysign": _floats,
    "round": _choosing,
    **dict.fromkeys(PREDICATES, _asking),
    "sign": _absolute,
    "step": _choosing,
    "mix": _floats,
    **dict.fromkeys(BIT_COUNTS, _bits),
    **dict.fromkeys(GROUP_REDUCTIONS, _combining),
    **dict.fromkeys(ELEMENTARY, _root),
}
"""Builtin -> its rule: the promoted type of the operands to their type and the result's."""
