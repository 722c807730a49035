"""Floats of 8 and 16 bits by way of f32, as IR: from and to their bits, and rounding.

A value of such a type is held in an f32, which represents all of them. An f32 is rounded to
nearest, ties to even, subnormals included; what comes from wider arithmetic is first rounded to
odd, which leaves the last rounding as it would have been (Boldo and Melquiond, "Emulation of a FMA
and correctly rounded sums: proved algorithms using rounding to odd", 2008). Only integer operations
and plain f32 and f64 arithmetic are used, so that every target and CPU level gives the same bits.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from tack.ir.nodes import Expression
from tack.model.dtypes import DTYPES, NARROW, DType, bf16, f16, f32, f64, i32, u16, u32, u64
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
    operate,
    select,
)

__all__ = [
    "bits_of",
    "from_bits",
    "near_float",
    "near_fused",
    "near_integer",
    "round_to",
    "to_bits",
]

_F32_MANTISSA: Final = 23
_F32_BIAS: Final = 127


def bits_of(dtype: DType) -> DType:
    """The unsigned integer type that holds the bits of a ``dtype``."""
    return DTYPES[f"u{dtype.bits}"]


class _Layout:
    """The numbers of a type whose exponent is shorter than that of f32.

    ``mantissa`` counts the bits of its fraction, ``dropped`` those that an f32 has more. The bits
    of infinity, or of the only NaN where there is none, are ``top``. ``rebase`` is what the
    exponent of an f32 is too high by, where it stands. The last place of the f32 ``raising`` is the
    ``least`` subnormal.
    """

    def __init__(self, dtype: DType) -> None:
        facts = NARROW[dtype.name]
        self.mantissa = facts.precision - 1
        self.dropped = _F32_MANTISSA - self.mantissa
        bias = 1 - self.mantissa - facts.least
        self.rebase = (_F32_BIAS - bias) << _F32_MANTISSA
        self.least, self.least_normal = 2.0**facts.least, 2.0 ** (1 - bias)
        self.raising = 2.0 ** (facts.least + _F32_MANTISSA)
        self.greatest, self.beyond = facts.greatest, facts.beyond
        self.sign = 1 << (dtype.bits - 1)
        fraction = (1 << self.mantissa) - 1
        self.top = self.sign - 1 - (fraction if math.isinf(facts.beyond) else 0)
        self.nan = self.top | (fraction + 1) >> 1
        self.lead = 32 - dtype.bits
        """Bits of 32 above those of the type."""


def _f32_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def _plus(left: Expression, number: int) -> Expression:
    return operate("+", left, constant(number, left))


def _mask(left: Expression, number: int) -> Expression:
    return operate("&", left, constant(number, left))


def _right(left: Expression, count: int) -> Expression:
    return operate("shr", left, constant(count, left))


def _rounding_up(bits: Expression, dropped: int) -> Expression:
    """``bits`` with what carries into those above the lowest ``dropped`` ones, by ties to even."""
    odd = _mask(_right(bits, dropped), 1)
    return operate("+", bits, _plus(odd, (1 << (dropped - 1)) - 1))


def round_to(dtype: DType, x: Expression, hold: Hold) -> Expression:
    """An f32 rounded to ``dtype``, as an f32."""
    x = hold(x)
    if dtype is bf16:
        rounded = bitcast(_mask(_rounding_up(hold(bitcast(x, u32)), 16), 0xFFFF0000), f32)
        return select(compare("==", x, x), rounded, x)
    layout = _Layout(dtype)
    size = hold(call("abs", x))
    raising = constant(layout.raising, f32)
    fine = operate("-", operate("+", size, raising), raising)
    kept = 0xFFFFFFFF >> layout.dropped << layout.dropped
    coarse = bitcast(_mask(_rounding_up(hold(bitcast(size, u32)), layout.dropped), kept), f32)
    least, greatest = constant(layout.least_normal, f32), constant(layout.greatest, f32)
    rounded = hold(select(compare("<", size, least), fine, coarse))
    limited = select(compare(">", rounded, greatest), constant(layout.beyond, f32), rounded)
    return select(compare("==", x, x), call("copysign", limited, x), x)


def to_bits(dtype: DType, x: Expression, hold: Hold) -> Expression:
    """The bits of an f32 rounded to ``dtype``, as an unsigned integer; one NaN for all."""
    x = hold(x)
    bits = hold(bitcast(x, u32))
    if dtype is bf16:
        rounded = cast(_right(_rounding_up(bits, 16), 16), u16)
        return select(compare("==", x, x), rounded, constant(0x7FC0, u16))
    layout = _Layout(dtype)
    size = hold(_mask(bits, 0x7FFFFFFF))
    raised = operate("+", bitcast(size, f32), constant(layout.raising, f32))
    fine = operate("-", bitcast(raised, u32), constant(_f32_bits(layout.raising), u32))
    rebased = hold(operate("-", size, constant(layout.rebase, u32)))
    coarse = _right(_rounding_up(rebased, layout.dropped), layout.dropped)
    is_fine = compare("<", size, _f32_bits(layout.least_normal))
    rounded = hold(select(is_fine, fine, coarse))
    limited = select(compare("<", rounded, layout.top), rounded, constant(layout.top, u32))
    number = select(compare(">", size, 0x7F800000), constant(layout.nan, u32), limited)
    sign = _mask(_right(bits, layout.lead), layout.sign)
    return cast(operate("|", number, sign), bits_of(dtype))


def from_bits(dtype: DType, bits: Expression, hold: Hold) -> Expression:
    """The f32 that is equal to the ``dtype`` of these bits, an unsigned integer."""
    wide = cast(bits, u32)
    if dtype is bf16:
        return bitcast(operate("shl", wide, constant(16, u32)), f32)
    layout = _Layout(dtype)
    wide = hold(wide)
    size = hold(_mask(wide, layout.sign - 1))
    # What is no number gets the highest exponent of f32 in place of its own.
    special = 0x7F800000 - (layout.top >> layout.mantissa << _F32_MANTISSA)
    is_number = compare("<", size, layout.top)
    bias = select(is_number, constant(layout.rebase, u32), constant(special, u32))
    shift = constant(layout.dropped, u32)
    coarse = bitcast(operate("+", operate("shl", size, shift), bias), f32)
    fine = operate("*", cast(cast(size, i32), f32), constant(layout.least, f32))
    magnitude = bitcast(select(compare("<", size, 1 << layout.mantissa), fine, coarse), u32)
    sign = operate("shl", _mask(wide, layout.sign), constant(layout.lead, u32))
    return bitcast(operate("|", magnitude, sign), f32)


def near_float(x: Expression, hold: Hold) -> Expression:
    """The f32 that rounds to a narrow float as ``x`` does, an f32 or f64."""
    return _odd_f32(x, hold) if dtype_of(x) is f64 else x


def near_integer(dtype: DType, x: Expression, hold: Hold) -> Expression:
    """The f32 that rounds to ``dtype`` as ``x`` does, an integer or bool."""
    source = dtype_of(x)
    if source.bits <= 16 or dtype is not bf16:  # f32 has it exactly, or it is beyond the range
        return cast(x, f32)
    return _kept_f32(hold(x), source, hold)


def _kept_f32(x: Expression, source: DType, hold: Hold) -> Expression:
    """An f32 that rounds to far fewer bits as ``x`` does: its 24 highest, the last one sticky."""
    negative = compare("<", x, 0) if source.is_signed else None
    magnitude = cast(x, u64)
    if negative is not None:
        unsigned_zero = constant(0, u64)
        magnitude = select(negative, operate("-", unsigned_zero, magnitude), magnitude)
    size = hold(magnitude)
    beyond = operate("-", constant(40, u64), call("clz", size))
    count = hold(select(compare(">=", size, 1 << 24), beyond, constant(0, u64)))
    kept = hold(operate("shr", size, count))
    is_rounded = compare("!=", operate("shl", kept, count), size)
    gathered = operate("|", kept, select(is_rounded, constant(1, u64), constant(0, u64)))
    exponent = operate("+", cast(count, u32), constant(127, u32))
    scale = bitcast(operate("shl", exponent, constant(23, u32)), f32)
    value = operate("*", cast(hold(gathered), f32), scale)
    if negative is None:
        return value
    result = hold(value)
    return select(negative, operate("*", result, constant(-1.0, f32)), result)


def _odd_f32(x: Expression, hold: Hold) -> Expression:
    """An f64 as f32, by rounding to odd: the one of two neighbours whose last bit is set."""
    x = hold(x)
    near = hold(cast(x, f32))
    back, bits = hold(cast(near, f64)), hold(bitcast(near, u32))
    beyond = compare("<", call("abs", back), call("abs", x))
    return bitcast(_odd(bits, compare("<", back, x), compare(">", back, x), beyond), f32)


def _odd(bits: Expression, below: Expression, above: Expression, beyond: Expression) -> Expression:
    """The bits of a rounded value, or of its neighbour on the other side of the exact one.

    The rounded value lies ``below`` or ``above`` the exact one, or is it; ``beyond`` says that the
    exact one is greater in magnitude.
    """
    even = compare("==", _mask(bits, 1), 0)
    neighbour = select(beyond, _plus(bits, 1), operate("-", bits, constant(1, bits)))
    return select(both(even, either(below, above)), neighbour, bits)


def near_fused(dtype: DType, a: Expression, b: Expression, c: Expression, hold: Hold) -> Expression:
    """The f32 that rounds to ``dtype`` as ``a * b + c`` does, of f32 that hold such values.

    For f32 it is that sum, rounded once.

    The product is exact in f64, and of f16 in f32. What its sum with ``c`` loses is computed
    (Knuth's two-sum), and rounds the sum to odd.
    """
    wide, bits_of = (f32, u32) if dtype is f16 else (f64, u64)
    product = hold(operate("*", cast(a, wide), cast(b, wide)))
    addend = hold(cast(c, wide))
    total = hold(operate("+", product, addend))
    part = hold(operate("-", total, product))
    lost = hold(
        operate(
            "+",
            operate("-", product, operate("-", total, part)),
            operate("-", addend, part),
        )
    )
    zero = constant(0.0, wide)
    below, above = compare(">", lost, zero), compare("<", lost, zero)
    beyond = compare("==", below, compare(">", total, zero))
    bits = hold(bitcast(total, bits_of))
    odd = bitcast(_odd(bits, below, above, beyond), wide)
    return cast(odd, f32) if dtype is f32 else near_float(odd, hold)
