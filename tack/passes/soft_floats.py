"""Floats in integer arithmetic: division, square root and fused multiply-add, correctly rounded.

For targets that have them not, or not exactly. A magnitude is taken apart into a mantissa and an
exponent; what comes out has more bits than the type, the last of them sticky (it says that some
below it is set), and is rounded once, to nearest with ties to even, subnormals included.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from tack.ir.nodes import Expression, IRIf, IRSequentialFor
from tack.model.dtypes import DTYPES, DType, bf16, f32, f64, i32, i64, u64
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
    negate,
    operate,
    select,
)

if TYPE_CHECKING:
    from tack.passes.decompose import Block

__all__ = ["divide", "fused", "square_root"]


class _Format(NamedTuple):
    """A float type: what holds its values, the bits of its mantissa and of its exponent."""

    holder: DType
    digits: int
    exponent_bits: int

    @property
    def bits(self) -> DType:
        """The type of the bits of what holds it."""
        return DTYPES[f"u{self.holder.bits}"]

    @property
    def field(self) -> int:
        """Where the exponent stands in those bits."""
        return self.holder.bits - 1 - self.exponent_bits

    @property
    def bias(self) -> int:
        """The exponent of 1.0 there."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def least(self) -> int:
        """The exponent of the last place of subnormals."""
        return 2 - self.bias - self.digits

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return ((1 << self.exponent_bits) - 1) << self.field


_FORMATS: Final[dict[DType, _Format]] = {
    f32: _Format(f32, 24, 8),
    f64: _Format(f64, 53, 11),
    bf16: _Format(f32, 8, 8),
}


class _Parts(NamedTuple):
    """A number: its bits without the sign, its sign, and ``mantissa * 2 ** exponent``."""

    magnitude: Expression
    sign: Expression
    mantissa: Expression
    exponent: Expression


def _int(value: int) -> Expression:
    return constant(value, i32)


def _word(value: int) -> Expression:
    return constant(value, u64)


def _parts(x: Expression, hold: Hold) -> _Parts:
    """A float taken apart; an infinity or NaN is taken for a greater number."""
    form = _FORMATS[dtype_of(x)]
    bits = hold(bitcast(x, form.bits))
    top = constant(1 << (form.holder.bits - 1), form.bits)
    magnitude = hold(operate("&", bits, constant((1 << (form.holder.bits - 1)) - 1, form.bits)))
    field = hold(operate("shr", magnitude, constant(form.field, form.bits)))
    fraction = operate("&", magnitude, constant((1 << form.field) - 1, form.bits))
    normal = compare("!=", field, 0)
    implicit = select(normal, constant(1 << form.field, form.bits), constant(0, form.bits))
    mantissa = cast(operate("|", fraction, implicit), u64)
    place = select(normal, cast(field, i32), _int(1))
    exponent = operate("-", place, _int(form.bias + form.field))
    return _Parts(magnitude, operate("&", bits, top), hold(mantissa), hold(exponent))


def _sticky(condition: Expression) -> Expression:
    return select(condition, _word(1), _word(0))


def _width(value: Expression) -> Expression:
    """The bits that an integer, which is not 0, needs, as i32."""
    return operate("-", _int(64), cast(call("clz", value), i32))


def _shifted(op: str, value: Expression, count: Expression) -> Expression:
    return operate(op, value, cast(count, u64))


def _rounded(
    form: _Format, sign: Expression, value: Expression, exponent: Expression, hold: Hold
) -> Expression:
    """``value * 2 ** exponent`` with a sign, rounded; the last bit of the value is sticky.

    The value is not 0 and below ``2 ** 62``, and has more bits than the type unless it is exact.
    """
    value, exponent = hold(value), hold(exponent)
    last = hold(operate("+", exponent, operate("-", _width(value), _int(form.digits))))
    last = hold(select(compare("<", last, _int(form.least)), _int(form.least), last))
    dropped = hold(operate("-", last, exponent))
    dropped = hold(select(compare("<", dropped, _int(63)), dropped, _int(63)))
    down = compare(">", dropped, _int(0))
    count = hold(select(down, dropped, _int(1)))
    odd = operate("&", _shifted("shr", value, count), _word(1))
    half = _shifted("shl", _word(1), operate("-", count, _int(1)))
    raised = operate("+", operate("+", value, operate("-", half, _word(1))), odd)
    up = hold(select(down, _int(0), operate("-", _int(0), dropped)))
    up = hold(select(compare("<", up, _int(63)), up, _int(63)))
    kept = hold(select(down, _shifted("shr", raised, count), _shifted("shl", value, up)))
    above = hold(operate("-", last, _int(form.least)))
    limit = _int(1 << form.exponent_bits)
    above = hold(select(compare("<", above, limit), above, limit))
    joined = hold(operate("+", kept, _shifted("shl", cast(above, u64), _int(form.digits - 1))))
    dropped_bits = form.field - (form.digits - 1)
    infinity = _word(form.infinity >> dropped_bits)
    limited = select(compare("<", joined, infinity), joined, infinity)
    placed = operate("shl", limited, _word(dropped_bits)) if dropped_bits else limited
    return bitcast(operate("|", cast(placed, form.bits), sign), form.holder)


def _finite(parts: _Parts, form: _Format) -> Expression:
    return compare("<", parts.magnitude, constant(form.infinity, form.bits))


def _nonzero(parts: _Parts) -> Expression:
    return compare("!=", parts.magnitude, 0)


def _normalized(parts: _Parts, digits: int, hold: Hold) -> tuple[Expression, Expression]:
    """Mantissa and exponent, the former with ``digits`` bits, unless it is 0."""
    some = select(_nonzero(parts), parts.mantissa, _word(1))
    count = hold(operate("-", _int(digits), _width(some)))
    return (
        hold(_shifted("shl", parts.mantissa, count)),
        hold(operate("-", parts.exponent, count)),
    )


def divide(a: Expression, b: Expression, out: Block) -> Expression:
    """``a / b``: of two mantissas as many bits of the quotient as the type has, and two more."""
    dtype = dtype_of(a)
    form = _FORMATS[dtype]
    a, b = out.hold(a), out.hold(b)
    x, y = _parts(a, out.hold), _parts(b, out.hold)
    sign = out.hold(operate("^", x.sign, y.sign))
    has_no_quotient = either(  # 0 / 0, infinity / infinity, and NaN
        both(negate(_nonzero(x)), negate(_nonzero(y))),
        both(negate(_finite(x, form)), negate(_finite(y, form))),
    )
    has_nan = out.hold(either(_is_nan(x, form), _is_nan(y, form)))
    nan = select(has_nan, operate("+", a, b), _invalid(a))
    infinite = either(negate(_finite(x, form)), negate(_nonzero(y)))
    edge = select(infinite, constant(form.infinity, form.bits), constant(0, form.bits))
    special = bitcast(operate("|", edge, sign), dtype)
    result = out.evaluate(select(either(has_no_quotient, has_nan), nan, special))
    inner = out.inner()
    m, e = _normalized(x, form.digits, inner.hold)
    n, f = _normalized(y, form.digits, inner.hold)
    chunk = 63 - form.digits
    quotient, rest, count = inner.hold(operate("cdiv", m, n)), inner.hold(operate("cmod", m, n)), 0
    while count < form.digits + 1:
        step = min(chunk, form.digits + 1 - count)
        widened = inner.hold(operate("shl", rest, _word(step)))
        digit = operate("cdiv", widened, n)
        quotient = inner.hold(operate("|", operate("shl", quotient, _word(step)), digit))
        rest = inner.hold(operate("cmod", widened, n))
        count += step
    value = operate("|", operate("shl", quotient, _word(1)), _sticky(compare("!=", rest, 0)))
    exponent = operate("-", operate("-", e, f), _int(count + 1))
    inner.assign(result, _rounded(form, sign, value, exponent, inner.hold))
    ordinary = both(both(_finite(x, form), _finite(y, form)), both(_nonzero(x), _nonzero(y)))
    out.statements.append(IRIf(ordinary, inner.statements))
    return result


def _invalid(a: Expression) -> Expression:
    """The NaN that the target has for what is not defined; its sign differs between CPUs."""
    return operate("*", operate("-", a, a), constant(math.inf, a))


def _is_nan(parts: _Parts, form: _Format) -> Expression:
    return compare(">", parts.magnitude, constant(form.infinity, form.bits))


def square_root(a: Expression, out: Block) -> Expression:
    """``sqrt(a)``, digit by digit: zeros are their own, and what lies below has NaN."""
    dtype = dtype_of(a)
    form = _FORMATS[dtype]
    a = out.hold(a)
    x = _parts(a, out.hold)
    below = both(compare("!=", x.sign, 0), _nonzero(x))
    result = out.evaluate(select(below, _invalid(a), a))
    inner = out.inner()
    m, e = _normalized(x, form.digits, inner.hold)
    odd = inner.hold(operate("&", e, _int(1)))
    e = inner.hold(operate("-", e, odd))
    # Two digits of the radicand come at a time: those of m, then zeros.
    width, steps = form.digits + 2 - form.digits % 2, form.digits + 2
    feed, root, rest = (inner.local(u64) for _ in range(3))
    inner.assign(feed, operate("shl", _shifted("shl", m, odd), _word(64 - width)))
    inner.assign(root, _word(0))
    inner.assign(rest, _word(0))
    loop = inner.inner()
    widened = loop.hold(
        operate("|", operate("shl", rest, _word(2)), operate("shr", feed, _word(62)))
    )
    trial = loop.hold(operate("|", operate("shl", root, _word(2)), _word(1)))
    fits = loop.hold(compare(">=", widened, trial))
    digit = select(fits, _word(1), _word(0))
    loop.assign(feed, operate("shl", feed, _word(2)))
    loop.assign(rest, select(fits, operate("-", widened, trial), widened))
    loop.assign(root, operate("|", operate("shl", root, _word(1)), digit))
    number = inner.local(i64, "step")
    start, end, one = (constant(each, i64) for each in (0, steps, 1))
    inner.statements.append(IRSequentialFor(number.name, start, end, one, loop.statements))
    value = operate("|", operate("shl", root, _word(1)), _sticky(compare("!=", rest, 0)))
    exponent = operate("-", operate("shr", e, _int(1)), _int(steps - width // 2 + 1))
    zero = constant(0, form.bits)
    inner.assign(result, _rounded(form, zero, value, exponent, inner.hold))
    counts = both(both(_finite(x, form), _nonzero(x)), compare("==", x.sign, 0))
    out.statements.append(IRIf(counts, inner.statements))
    return result


_WIDE: Final = 53
"""The bits of each factor of `fused`, whatever its type. Numbers are ``high * 2 ** 56 + low`` with
as many bits in ``high``: the product has twice as many, and 3 more are spare."""

_LOW: Final = 56


def fused(dtype: DType, a: Expression, b: Expression, c: Expression, out: Block) -> Expression:
    """``a * b + c`` rounded once to ``dtype``; bf16 is held in f32, as the operands are."""
    form, given = _FORMATS[dtype], _FORMATS[dtype_of(a)]
    a, b, c = out.hold(a), out.hold(b), out.hold(c)
    x, y, z = (_parts(each, out.hold) for each in (a, b, c))
    factors = out.hold(both(_finite(x, given), _finite(y, given)))
    result = out.evaluate(select(factors, c, operate("+", operate("*", a, b), c)))
    inner = out.inner()
    hold = inner.hold
    sign, product = hold(operate("^", x.sign, y.sign)), _product(x, y, hold)
    high, place = _normalized(z, _WIDE, hold)
    addend = _Wide(high, _word(0), hold(operate("-", place, _int(_LOW))))
    product, addend = _unless_zero(product, hold), _unless_zero(addend, hold)
    above = compare(">", product.exponent, addend.exponent)
    level = compare("==", product.exponent, addend.exponent)
    first = hold(either(above, both(level, compare(">=", product.high, addend.high))))
    great = _chosen(first, product, addend, hold)
    small = _aligned(_chosen(first, addend, product, hold), great.exponent, hold)
    same = hold(compare("==", sign, z.sign))
    total = _combined(same, great, small, hold)
    value, exponent = _gathered(total, hold)
    its_sign = select(first, sign, z.sign)
    zero = bitcast(operate("&", sign, z.sign), form.holder)  # of opposite numbers +0.0
    nothing = hold(compare("==", value, 0))
    inner.assign(result, zero)
    some = inner.inner()
    some.assign(result, _rounded(form, some.hold(its_sign), value, exponent, some.hold))
    inner.statements.append(IRIf(negate(nothing), some.statements))
    out.statements.append(IRIf(both(factors, _finite(z, given)), inner.statements))
    return result


class _Wide(NamedTuple):
    """``(high * 2 ** 56 + low) * 2 ** exponent``."""

    high: Expression
    low: Expression
    exponent: Expression


def _product(x: _Parts, y: _Parts, hold: Hold) -> _Wide:
    """The product of two numbers, in full."""
    (m, e), (n, f) = (_normalized(each, _WIDE, hold) for each in (x, y))
    upper = [hold(operate("shr", each, _word(27))) for each in (m, n)]
    lower = [hold(operate("&", each, _word((1 << 27) - 1))) for each in (m, n)]
    across = hold(operate("+", operate("*", upper[0], lower[1]), operate("*", lower[0], upper[1])))
    part = operate("shl", operate("&", across, _word((1 << 26) - 1)), _word(27))
    low = hold(operate("+", operate("*", lower[0], lower[1]), part))
    above = operate("shl", operate("*", upper[0], upper[1]), _word(1))
    above = operate("+", above, operate("shr", across, _word(26)))
    high = hold(operate("+", above, operate("shr", low, _word(_WIDE))))
    low = hold(operate("&", low, _word((1 << _WIDE) - 1)))
    short = hold(compare("<", high, _word(1 << (_WIDE - 1))))  # of 105 bits, not 106
    raised = operate("|", operate("shl", high, _word(1)), operate("shr", low, _word(_WIDE - 1)))
    placed = operate("shl", low, select(short, _word(4), _word(3)))
    exponent = operate("-", operate("+", e, f), select(short, _int(4), _int(3)))
    mask = _word((1 << _LOW) - 1)
    return _Wide(
        hold(select(short, raised, high)), hold(operate("&", placed, mask)), hold(exponent)
    )


def _unless_zero(number: _Wide, hold: Hold) -> _Wide:
    """The number, or where it is 0 one that is far below all others."""
    far = select(compare("!=", number.high, 0), number.exponent, _int(-9999))
    return number._replace(exponent=hold(far))


def _chosen(condition: Expression, one: _Wide, other: _Wide, hold: Hold) -> _Wide:
    return _Wide(*(hold(select(condition, a, b)) for a, b in zip(one, other, strict=True)))


def _aligned(number: _Wide, exponent: Expression, hold: Hold) -> _Wide:
    """The number with a greater exponent; what is shifted out is gathered in the last bit."""
    distance = hold(operate("-", exponent, number.exponent))
    distance = hold(select(compare("<", distance, _int(110)), distance, _int(110)))
    far = hold(compare(">=", distance, _int(_LOW)))
    dropped = both(far, compare("!=", number.low, 0))
    low = hold(select(far, number.high, number.low))
    high = hold(select(far, _word(0), number.high))
    count = hold(operate("-", distance, select(far, _int(_LOW), _int(0))))
    mask = hold(operate("-", _shifted("shl", _word(1), count), _word(1)))
    lost = hold(either(dropped, compare("!=", operate("&", low, mask), 0)))
    carried = _shifted("shl", operate("&", high, mask), operate("-", _int(_LOW), count))
    moved = operate("|", _shifted("shr", low, count), carried)
    return _Wide(
        hold(_shifted("shr", high, count)), hold(operate("|", moved, _sticky(lost))), exponent
    )


def _combined(same: Expression, great: _Wide, small: _Wide, hold: Hold) -> _Wide:
    """The sum of two numbers of the same exponent, or the difference."""
    mask, carry = _word((1 << _LOW) - 1), _word(1 << _LOW)
    added = hold(operate("+", great.low, small.low))
    taken = hold(operate("-", operate("|", great.low, carry), small.low))
    low = hold(select(same, added, taken))
    top = operate("shr", low, _word(_LOW))
    sum_ = operate("+", great.high, small.high)
    rest = operate("-", operate("-", great.high, small.high), _word(1))
    high = hold(operate("+", select(same, sum_, rest), top))
    return _Wide(high, hold(operate("&", low, mask)), great.exponent)


def _gathered(number: _Wide, hold: Hold) -> tuple[Expression, Expression]:
    """The upper bits of a number, 57 to 61 unless it is exact, the last one sticky."""
    some = select(compare("!=", number.high, 0), number.high, _word(1))
    count = hold(operate("-", _int(61), _width(some)))
    count = hold(select(compare("<", count, _int(_LOW)), count, _int(_LOW)))
    dropped = hold(operate("-", _int(_LOW), count))
    kept = hold(_shifted("shr", number.low, dropped))
    lost = compare("!=", _shifted("shl", kept, dropped), number.low)
    value = operate("|", _shifted("shl", number.high, count), operate("|", kept, _sticky(lost)))
    return hold(value), hold(operate("+", number.exponent, dropped))
