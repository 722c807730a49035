"""Floats of 16 bits by way of f32, as IR: to and from their bits, and rounding to their precision.

A value of such a type is held in an f32, which represents all of them. An f32 is rounded to
nearest, ties to even, subnormals included; what comes from wider arithmetic is first rounded to
odd, which leaves the last rounding as it would have been (Boldo and Melquiond, "Emulation of a FMA
and correctly rounded sums: proved algorithms using rounding to odd", 2008). Only integer operations
and plain f32 and f64 arithmetic are used, so that every target and CPU level gives the same bits.
"""

from __future__ import annotations

import math

from tack.ir.nodes import Expression
from tack.model.dtypes import DType, bf16, f16, f32, f64, i32, u16, u32, u64
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

__all__ = ["from_bits", "fused", "of_float", "of_integer", "round_to", "to_bits"]

_LEAST_NORMAL = 2.0**-14
_GREATEST = 65504.0
_HALF_OF_F32 = 0x3F000000
"""The bits of 0.5, whose last place in f32 is the least subnormal of f16."""


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
    size = hold(call("abs", x))
    half = constant(0.5, f32)
    fine = operate("-", operate("+", size, half), half)
    coarse = bitcast(_mask(_rounding_up(hold(bitcast(size, u32)), 13), 0xFFFFE000), f32)
    least, greatest = constant(_LEAST_NORMAL, f32), constant(_GREATEST, f32)
    rounded = hold(select(compare("<", size, least), fine, coarse))
    limited = select(compare(">", rounded, greatest), constant(math.inf, f32), rounded)
    return select(compare("==", x, x), call("copysign", limited, x), x)


def to_bits(dtype: DType, x: Expression, hold: Hold) -> Expression:
    """The bits of an f32 rounded to ``dtype``, as u16; one NaN for all."""
    x = hold(x)
    bits = hold(bitcast(x, u32))
    if dtype is bf16:
        rounded = cast(_right(_rounding_up(bits, 16), 16), u16)
        return select(compare("==", x, x), rounded, constant(0x7FC0, u16))
    size = hold(_mask(bits, 0x7FFFFFFF))
    raised = operate("+", bitcast(size, f32), constant(0.5, f32))
    fine = operate("-", bitcast(raised, u32), constant(_HALF_OF_F32, u32))
    rebased = hold(operate("-", size, constant(0x38000000, u32)))
    coarse = _right(_rounding_up(rebased, 13), 13)
    rounded = hold(select(compare("<", size, 0x38800000), fine, coarse))
    limited = select(compare("<", rounded, 0x7C00), rounded, constant(0x7C00, u32))
    number = select(compare(">", size, 0x7F800000), constant(0x7E00, u32), limited)
    return cast(operate("|", number, _mask(_right(bits, 16), 0x8000)), u16)


def from_bits(dtype: DType, bits: Expression, hold: Hold) -> Expression:
    """The f32 that is equal to the ``dtype`` of these bits, a u16."""
    wide = cast(bits, u32)
    if dtype is bf16:
        return bitcast(operate("shl", wide, constant(16, u32)), f32)
    wide = hold(wide)
    size = hold(_mask(wide, 0x7FFF))
    finite = compare("<", size, 0x7C00)
    bias = select(finite, constant(0x38000000, u32), constant(0x70000000, u32))
    coarse = bitcast(operate("+", operate("shl", size, constant(13, u32)), bias), f32)
    fine = operate("*", cast(cast(size, i32), f32), constant(2.0**-24, f32))
    magnitude = bitcast(select(compare("<", size, 0x400), fine, coarse), u32)
    sign = operate("shl", _mask(wide, 0x8000), constant(16, u32))
    return bitcast(operate("|", magnitude, sign), f32)


def of_float(dtype: DType, x: Expression, hold: Hold) -> Expression:
    """An f32 or f64 rounded to ``dtype`` once."""
    return round_to(dtype, _odd_f32(x, hold) if dtype_of(x) is f64 else x, hold)


def of_integer(dtype: DType, x: Expression, hold: Hold) -> Expression:
    """An integer or bool rounded to ``dtype`` once."""
    source = dtype_of(x)
    if source.bits <= 16 or dtype is f16:  # f32 has it exactly, or f16 has infinity for it
        return round_to(dtype, cast(x, f32), hold)
    return round_to(dtype, _kept_f32(hold(x), source, hold), hold)


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


def fused(dtype: DType, a: Expression, b: Expression, c: Expression, hold: Hold) -> Expression:
    """``a * b + c`` of f32 that hold ``dtype``, rounded to it once.

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
    return of_float(dtype, bitcast(_odd(bits, below, above, beyond), wide), hold)
