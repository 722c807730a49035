"""Builtins that are made of simpler operations, as IR.

What is read more than once is held in temporaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tack.ir.nodes import Expression
from tack.model.dtypes import DType, u32, unsigned
from tack.passes import float_hazards
from tack.passes.build import Hold, call, cast, compare, constant, dtype_of, operate, select

__all__ = ["COMPOSED"]


def _is_nan(x: Expression, hold: Hold) -> Expression:
    x = hold(x)
    return compare("!=", x, x)


def _is_infinite(x: Expression, _: Hold) -> Expression:
    return compare("==", call("abs", x), constant(math.inf, x))


def _is_finite(x: Expression, _: Hold) -> Expression:
    return compare("<", call("abs", x), constant(math.inf, x))  # which NaN is not


def _sign(x: Expression, hold: Hold) -> Expression:
    """1, 0 or -1; 0.0 for both zeros, and NaN for NaN."""
    x, dtype = hold(x), dtype_of(x)
    positive = compare(">", x, constant(0, x))
    if not dtype.is_float:
        up = cast(positive, dtype)
        return operate("-", up, cast(compare("<", x, 0), dtype)) if dtype.is_signed else up
    ordered = select(compare("==", x, x), constant(0.0, x), x)
    negative = select(compare("<", x, constant(0.0, x)), constant(-1.0, x), ordered)
    return select(positive, constant(1.0, x), negative)


def _step(edge: Expression, x: Expression, _: Hold) -> Expression:
    """0 where x lies below the edge, else 1."""
    return select(compare("<", x, edge), constant(0, x), constant(1, x))


def _mix(a: Expression, b: Expression, t: Expression, hold: Hold) -> Expression:
    """``a * (1 - t) + b * t``."""
    t = hold(t)
    rest = operate("-", constant(1.0, t), t)
    return float_hazards.add(operate("*", a, rest), operate("*", b, t), hold)


def _wide(x: Expression) -> tuple[Expression, DType]:
    """The bits of ``x`` in the least type that targets count bits of."""
    bits = cast(x, unsigned(dtype_of(x)))
    dtype = max(dtype_of(bits), u32, key=lambda each: each.bits)
    return cast(bits, dtype), dtype


def _popcount(x: Expression, hold: Hold) -> Expression:
    bits = hold(_wide(x)[0])  # else gcc warns that a signed operand of it changes its sign
    return cast(call("popcount", bits), dtype_of(x))


def _leading_zeros(x: Expression, hold: Hold) -> Expression:
    """The width for 0, which targets may leave undefined."""
    bits, dtype = _wide(x)
    bits = hold(bits)
    zeros = select(compare("!=", bits, 0), call("clz", bits), constant(dtype.bits, dtype))
    beyond = dtype.bits - dtype_of(x).bits
    counted = operate("-", zeros, constant(beyond, dtype)) if beyond else zeros
    return cast(counted, dtype_of(x))


def _trailing_zeros(x: Expression, hold: Hold) -> Expression:
    """The width for 0: of a narrow type by a bit that stands above its own."""
    bits, dtype = _wide(x)
    width = dtype_of(x).bits
    if width < dtype.bits:
        return cast(call("ctz", operate("|", bits, constant(1 << width, dtype))), dtype_of(x))
    bits = hold(bits)
    zeros = select(compare("!=", bits, 0), call("ctz", bits), constant(width, dtype))
    return cast(zeros, dtype_of(x))


COMPOSED: Final[dict[str, Callable[..., Expression]]] = {
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "isfinite": _is_finite,
    "sign": _sign,
    "step": _step,
    "mix": _mix,
    "popcount": _popcount,
    "clz": _leading_zeros,
    "ctz": _trailing_zeros,
}
"""Builtin -> what gives its value from its operands and the block's ``hold``."""
