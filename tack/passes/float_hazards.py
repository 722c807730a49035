"""Float operations that C has not, or leaves undefined, as IR.

What is read more than once is held in temporaries.
"""

from __future__ import annotations

from tack.ir.nodes import Expression, IRConstant
from tack.model.dtypes import DType
from tack.passes import arithmetic
from tack.passes.build import (
    Hold,
    both,
    call,
    cast,
    compare,
    constant,
    dtype_of,
    either,
    operate,
    select,
)

__all__ = [
    "add",
    "float_floor_divide",
    "float_remainder",
    "pick",
    "square",
    "subtract",
    "to_integer",
]


def float_floor_divide(a: Expression, b: Expression, hold: Hold) -> Expression:
    """``a // b`` by CPython's ``float_floor_div``; by zero what ``a / b`` is."""
    a, b, zero = hold(a), hold(b), constant(0.0, a)
    rest = hold(call("fmod", a, b))
    raw = hold(operate("/", operate("-", a, rest), b))
    off = both(compare("!=", rest, zero), _signs_differ(b, rest))
    quotient = hold(select(off, operate("-", raw, constant(1.0, a)), raw))
    floored = hold(call("floor", quotient))
    # The quotient is nearly whole: what is left of it decides which whole number it is.
    near = compare(">", operate("-", quotient, floored), constant(0.5, a))
    whole = select(near, operate("+", floored, constant(1.0, a)), floored)
    ratio = hold(operate("/", a, b))
    signed_zero = call("copysign", zero, ratio)
    result = select(compare("!=", quotient, zero), whole, signed_zero)
    return select(compare("==", b, zero), ratio, result)


def float_remainder(a: Expression, b: Expression, hold: Hold) -> Expression:
    """``a % b`` by CPython's ``float_rem``; by zero NaN."""
    b, zero = hold(b), constant(0.0, a)
    rest = hold(call("fmod", a, b))
    signed = select(_signs_differ(b, rest), operate("+", rest, b), rest)
    return select(compare("!=", rest, zero), signed, call("copysign", zero, b))


def square(a: Expression, _: Expression, hold: Hold) -> Expression:
    """``a ** 2``, the only power of floats that is no call of pow."""
    a = hold(a)
    return operate("*", a, a)


def add(a: Expression, b: Expression, hold: Hold) -> Expression:
    """``a + b``, as `subtract`: gcc makes ``x - y`` of ``x + -y`` first."""
    if _is_zero(a) or _is_zero(b):
        a, b = hold(a), hold(b)
    return operate("+", a, b)


def subtract(a: Expression, b: Expression, hold: Hold) -> Expression:
    """``a - b``; what is taken from a literal zero is held in a local.

    gcc 12 takes ``0.0 - x`` for ``-x`` where it sees that x is no -0.0, such as an integer that is
    cast: but 0.0 - 0.0 is 0.0. Through a local it does not look.
    """
    return operate("-", a, hold(b) if _is_zero(a) else b)


def _is_zero(node: Expression) -> bool:
    return isinstance(node, IRConstant) and node.value == 0


def _signs_differ(b: Expression, rest: Expression) -> Expression:
    zero = constant(0.0, b)
    return compare("!=", compare("<", b, zero), compare("<", rest, zero))


def pick(
    function: str, a: Expression, b: Expression, hold: Hold, *, finite: bool = False
) -> Expression:
    """``min(a, b)`` or ``max(a, b)``: b if it is beyond a, or if a is NaN; else a.

    So a number is preferred over NaN, and the first of equals is taken, -0.0 and 0.0 included. If
    only ``finite`` numbers matter, NaN is not looked for.
    """
    a, b = hold(a), hold(b)
    beyond = compare("<", b, a) if function == "min" else compare("<", a, b)
    if dtype_of(a).is_float and not finite:
        return select(either(beyond, compare("!=", a, a)), b, a)
    return select(beyond, b, a)


def to_integer(value: Expression, dtype: DType, hold: Hold) -> Expression:
    """The integer of ``dtype`` towards zero: saturates, and NaN is 0.

    Both limits are floats exactly: the least value, and the power of two above the greatest. What
    is cast is never between -1 and 0, nor -0.0: gcc 12 with ``-fno-trapping-math`` turns a cast to
    an integer and back into a rounding, which keeps the sign of zero.
    """
    source, value = dtype_of(value), hold(value)
    low, beyond = constant(float(dtype.minimum), source), constant(float(dtype.maximum + 1), source)
    zero = constant(0.0, source)
    counts = compare(">=", call("abs", value), constant(1.0, source))  # NaN does not
    if arithmetic.convert(dtype.maximum, source) == dtype.maximum:
        # The greatest value is a float too, so limiting comes first and the cast needs no branch.
        high = constant(float(dtype.maximum), source)
        raised = hold(select(compare(">", value, low), value, low))
        limited = select(compare("<", raised, high), raised, high)
        if dtype.is_signed:
            limited = select(counts, hold(limited), zero)
        return cast(hold(limited), dtype)
    if dtype.is_signed:
        value = hold(select(counts, value, zero))
    inside = select(compare("<", value, beyond), cast(value, dtype), constant(dtype.maximum, dtype))
    return select(compare(">", value, low), inside, constant(dtype.minimum, dtype))
