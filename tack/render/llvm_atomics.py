"""Atomics as LLVM code: one instruction where that has the meaning of the language, else a loop.

LLVM's ``fmin`` and ``fmax`` leave the sign of a zero open, so that floats go through the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from llvmlite import ir

from tack.model.dtypes import DType
from tack.render.llvm_code import Code, value_type

__all__ = ["atomic"]

_ORDER: Final = "monotonic"

_OF_INTEGERS: Final = {
    "add": "add",
    "sub": "sub",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "exchange": "xchg",
}


def atomic(
    code: Code, op: str, dtype: DType, address: ir.Value, values: Sequence[ir.Value]
) -> ir.Value:
    """Changes the element at ``address``, and gives what it was.

    ``values`` are the value, and of ``cas`` in front of it what is expected. Floats are exchanged
    and compared as their bits.
    """
    builder, kind, bits = code.builder, value_type(dtype), ir.IntType(dtype.bits)
    if op == "cas" or (op == "exchange" and dtype.is_float):
        words = [builder.bitcast(value, bits) if dtype.is_float else value for value in values]
        if op == "cas":
            pair = builder.cmpxchg(address, *words, _ORDER, _ORDER)
            word = builder.extract_value(pair, 0)
        else:
            word = builder.atomic_rmw("xchg", address, *words, _ORDER)
        return builder.bitcast(word, kind) if dtype.is_float else word
    (value,) = values
    if dtype.is_float:
        return _loop(code, dtype, address, lambda old: _of_floats(builder, op, old, value))
    signless = op if dtype.is_signed or op not in ("min", "max") else f"u{op}"
    return builder.atomic_rmw(_OF_INTEGERS.get(op, signless), address, value, _ORDER)


def _of_floats(builder: ir.IRBuilder, op: str, old: ir.Value, value: ir.Value) -> ir.Value:
    """What an operation makes of an element; min and max prefer a number over NaN."""
    if op in ("add", "sub"):
        return builder.fadd(old, value) if op == "add" else builder.fsub(old, value)
    less = (value, old) if op == "min" else (old, value)
    beyond = builder.fcmp_ordered("<", *less)
    missing = builder.fcmp_unordered("!=", old, old)
    return builder.select(builder.or_(beyond, missing), value, old)


def _loop(
    code: Code, dtype: DType, address: ir.Value, change: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Tries again until nobody else changed the element meanwhile."""
    builder, kind, bits = code.builder, value_type(dtype), ir.IntType(dtype.bits)
    first = builder.load_atomic(address, _ORDER, dtype.itemsize, typ=bits)
    before = builder.block
    retry, done = code.block("atomic_retry"), code.block("atomic_done")
    builder.branch(retry)
    code.enter(retry)
    seen = builder.phi(bits)
    seen.add_incoming(first, before)
    old = builder.bitcast(seen, kind)
    changed = builder.bitcast(change(old), bits)
    pair = builder.cmpxchg(address, seen, changed, _ORDER, _ORDER)
    seen.add_incoming(builder.extract_value(pair, 0), retry)
    builder.cbranch(builder.extract_value(pair, 1), done, retry)
    code.enter(done)
    return old
