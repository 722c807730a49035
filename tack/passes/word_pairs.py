"""The arithmetic of 64-bit integers on pairs of 32-bit words.

The operations of the targets, as IR over u32; ``hold`` evaluates what is read more than once. Only
what differs for signed integers is told the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from tack.ir.nodes import Expression, IRConstant, IRIf, IRName, IRUnaryOp, IRWhile
from tack.model.dtypes import DType, bool_, f32, i32, u32, u64
from tack.passes.build import (
    Hold,
    bitcast,
    both,
    call,
    cast,
    compare,
    constant,
    dtype_of,
    either,
    literal,
    operate,
    select,
)
from tack.passes.constant_division import upper_product

if TYPE_CHECKING:
    from tack.passes.decompose import Block

__all__ = [
    "BINARY",
    "COUNTS",
    "ZERO",
    "Pair",
    "chosen",
    "compared",
    "from_float",
    "negated",
    "sign_word",
    "to_float",
]

ZERO: Final = constant(0, u32)


class Pair(NamedTuple):
    """Two expressions of u32."""

    low: Expression
    high: Expression


def _add(a: Pair, b: Pair, _: DType, out: Block) -> Pair:
    low = out.hold(operate("+", a.low, b.low))
    carry = cast(compare("<", low, b.low), u32)
    return Pair(low, operate("+", operate("+", a.high, b.high), carry))


def _subtract(a: Pair, b: Pair, _: DType, __: Block) -> Pair:
    borrow = cast(compare("<", a.low, b.low), u32)
    high = operate("-", operate("-", a.high, b.high), borrow)
    return Pair(operate("-", a.low, b.low), high)


def negated(a: Pair, hold: Hold) -> Pair:
    """``-a``."""
    low = hold(operate("-", ZERO, a.low))
    borrow = cast(compare("!=", a.low, 0), u32)
    return Pair(low, operate("-", operate("-", ZERO, a.high), borrow))


def _multiply(a: Pair, b: Pair, _: DType, out: Block) -> Pair:
    crossed = operate("+", operate("*", a.low, b.high), operate("*", a.high, b.low))
    high = operate("+", upper_product(a.low, b.low, out.hold), crossed)
    return Pair(operate("*", a.low, b.low), high)


def _by_words(op: str) -> Callable[[Pair, Pair, DType, Block], Pair]:
    return lambda a, b, _, out: Pair(operate(op, a.low, b.low), operate(op, a.high, b.high))


def _shift_left(a: Pair, count: Pair, _: DType, out: Block) -> Pair:
    far, near, rest = _counts(count, out.hold)
    shifted = out.hold(operate("shl", a.low, near))
    # In two steps, since a shift by 32 is undefined.
    moved = operate("shr", operate("shr", a.low, constant(1, u32)), rest)
    high = operate("|", operate("shl", a.high, near), moved)
    return chosen(far, Pair(ZERO, shifted), Pair(shifted, high))


def _shift_right(a: Pair, count: Pair, dtype: DType, out: Block) -> Pair:
    """Arithmetic of signed integers."""
    far, near, rest = _counts(count, out.hold)
    top: Expression = cast(a.high, i32) if dtype.is_signed else a.high
    shifted = out.hold(cast(operate("shr", top, cast(near, dtype_of(top))), u32))
    moved = operate("shl", operate("shl", a.high, constant(1, u32)), rest)
    low = operate("|", operate("shr", a.low, near), moved)
    return chosen(far, Pair(shifted, sign_word(a.high, dtype)), Pair(low, shifted))


def _counts(count: Pair, hold: Hold) -> tuple[Expression, Expression, Expression]:
    """Whether a count is 32 or more, the count within a word, and 31 less that."""
    known = literal(count.low)
    if known is not None:
        near = constant(known & 31, u32)
        return constant(known >= 32, bool_), near, constant(31 - (known & 31), u32)
    masked = hold(operate("&", count.low, constant(31, u32)))
    rest = hold(operate("-", constant(31, u32), masked))
    return hold(compare(">=", count.low, 32)), masked, rest


def sign_word(top: Expression, dtype: DType) -> Expression:
    """The word above ``top``: the bits of its sign, 0 of an unsigned type."""
    if not dtype.is_signed:
        return ZERO
    return cast(operate("shr", cast(top, i32), constant(31, i32)), u32)


def _is_negative(a: Pair) -> Expression:
    return compare("<", cast(a.high, i32), 0)


def chosen(condition: Expression, one: Pair, other: Pair) -> Pair:
    """One of two pairs."""
    if isinstance(condition, IRConstant):
        return one if condition.value else other
    return Pair(select(condition, one.low, other.low), select(condition, one.high, other.high))


def compared(op: str, a: Pair, b: Pair, dtype: DType) -> Expression:
    """``a op b``, for one of the six comparisons."""
    if op in ("==", "!="):
        join = both if op == "==" else either
        return join(compare(op, a.low, b.low), compare(op, a.high, b.high))
    tops = (cast(a.high, i32), cast(b.high, i32)) if dtype.is_signed else (a.high, b.high)
    level = both(compare("==", a.high, b.high), compare(op, a.low, b.low))
    return either(compare(op[0], *tops), level)


def _divide(a: Pair, b: Pair, dtype: DType, out: Block) -> Pair:
    return _long_division(a, b, dtype, out)[0]


def _rest(a: Pair, b: Pair, dtype: DType, out: Block) -> Pair:
    return _long_division(a, b, dtype, out)[1]


def _long_division(a: Pair, b: Pair, dtype: DType, out: Block) -> tuple[Pair, Pair]:
    """Quotient and remainder towards zero; of naturals bit by bit, unless they are words."""
    if not dtype.is_signed:
        return _of_naturals(a, b, out)
    flips, turns = out.hold(_is_negative(a)), out.hold(_is_negative(b))
    quotient, rest = _of_naturals(
        _held(chosen(flips, negated(a, out.hold), a), out.hold),
        _held(chosen(turns, negated(b, out.hold), b), out.hold),
        out,
    )
    differ = out.hold(compare("!=", flips, turns))
    return (
        chosen(differ, negated(quotient, out.hold), quotient),
        chosen(flips, negated(rest, out.hold), rest),
    )


def _held(a: Pair, hold: Hold) -> Pair:
    return Pair(hold(a.low), hold(a.high))


def _of_naturals(a: Pair, b: Pair, out: Block) -> tuple[Pair, Pair]:
    """Division of naturals: of words at once, else bit by bit.

    The quotient holds what is left of the dividend above, and its own bits below.
    """
    one, last, unsigned = constant(1, u32), constant(31, u32), u64
    quotient = _Local(out.evaluate(a.low), out.evaluate(a.high))
    rest = _Local(out.evaluate(ZERO), out.evaluate(ZERO))
    short, long = out.inner(), out.inner()
    short.assign(rest.low, operate("cmod", a.low, b.low))
    short.assign(quotient.low, operate("cdiv", a.low, b.low))
    left = long.evaluate(constant(64, i32))
    loop = long.inner()
    beyond = loop.hold(compare("!=", operate("shr", rest.high, last), 0))
    for each, entering in ((rest, operate("shr", quotient.high, last)), (quotient, ZERO)):
        top = operate("|", operate("shl", each.high, one), operate("shr", each.low, last))
        loop.assign(each.high, top)
        loop.assign(each.low, operate("|", operate("shl", each.low, one), entering))
    fits = loop.inner()
    less = _subtract(Pair(*rest), b, unsigned, fits)
    fits.assign(rest.high, less.high)
    fits.assign(rest.low, less.low)
    fits.assign(quotient.low, operate("|", quotient.low, one))
    enough = either(beyond, compared(">=", Pair(*rest), b, unsigned))
    loop.statements.append(IRIf(enough, fits.statements))
    loop.assign(left, operate("-", left, constant(1, i32)))
    long.statements.append(IRWhile(compare(">", left, 0), loop.statements))
    words = both(compare("==", a.high, 0), compare("==", b.high, 0))
    out.statements.append(IRIf(words, short.statements, long.statements))
    return Pair(*quotient), Pair(*rest)


class _Local(NamedTuple):
    """A pair that changes. Its upper word is set first: what is set reads the lower one."""

    low: IRName
    high: IRName


BINARY: Final[dict[str, Callable[[Pair, Pair, DType, Block], Pair]]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "cdiv": _divide,
    "cmod": _rest,
    "shl": _shift_left,
    "shr": _shift_right,
    "&": _by_words("&"),
    "|": _by_words("|"),
    "^": _by_words("^"),
}
"""Operator -> its result, of two pairs and their type; a count is a pair too."""


def _leading_zeros(a: Pair) -> Expression:
    below = operate("+", call("clz", a.low), constant(32, u32))
    return select(compare("!=", a.high, 0), call("clz", a.high), below)


def _trailing_zeros(a: Pair) -> Expression:
    above = operate("+", call("ctz", a.high), constant(32, u32))
    return select(compare("!=", a.low, 0), call("ctz", a.low), above)


COUNTS: Final[dict[str, Callable[[Pair], Expression]]] = {
    "popcount": lambda a: operate("+", call("popcount", a.low), call("popcount", a.high)),
    "clz": _leading_zeros,
    "ctz": _trailing_zeros,
}
"""Builtin -> the count, as a u32; of 0 the zeros are not asked for."""


def to_float(a: Pair, dtype: DType, source: DType, hold: Hold) -> Expression:
    """A pair as f32 or f64, rounded once."""
    if not source.is_signed:
        return _magnitude_to_float(a, dtype, hold)
    negative = hold(_is_negative(a))
    size = _held(chosen(negative, negated(a, hold), a), hold)
    value = hold(_magnitude_to_float(size, dtype, hold))
    return select(negative, IRUnaryOp("-", value, dtype), value)


def _magnitude_to_float(a: Pair, dtype: DType, hold: Hold) -> Expression:
    """A natural as a float.

    Of f64 the sum of the words is rounded. f32 rounds the upper 32 bits and whether there are lower
    ones, and the power of two that they lack is exact.
    """
    if dtype is not f32:
        upper = operate("*", cast(a.high, dtype), constant(2.0**32, dtype))
        return operate("+", upper, cast(a.low, dtype))
    zeros = hold(call("clz", operate("|", a.high, constant(1, u32))))
    moved = operate(
        "shr", operate("shr", a.low, constant(1, u32)), operate("-", constant(31, u32), zeros)
    )
    top = operate("|", operate("shl", a.high, zeros), moved)
    lower = cast(compare("!=", operate("shl", a.low, zeros), 0), u32)
    exponent = operate("-", constant(127 + 32, u32), zeros)
    scale = bitcast(operate("shl", exponent, constant(23, u32)), f32)
    scaled = operate("*", cast(operate("|", top, lower), f32), scale)
    return select(compare("!=", a.high, 0), scaled, cast(a.low, f32))


def from_float(x: Expression, dtype: DType, hold: Hold) -> Pair:
    """The whole part of a float that the type holds."""
    size = hold(call("abs", x)) if dtype.is_signed else hold(x)
    high = hold(cast(operate("*", size, constant(2.0**-32, size)), u32))
    upper = operate("*", cast(high, dtype_of(size)), constant(2.0**32, size))
    pair = Pair(hold(cast(operate("-", size, upper), u32)), high)
    if not dtype.is_signed:
        return pair
    return chosen(hold(compare("<", x, constant(0.0, x))), negated(pair, hold), pair)
