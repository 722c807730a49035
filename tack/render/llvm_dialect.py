"""The tables of the LLVM dialect: which instruction or function each operation is.

Nothing here needs llvmlite. Instructions are named as the methods of its ``IRBuilder`` are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tack.ir.operations import MATH_CALLS
from tack.model.dtypes import DType
from tack.render.libm import LIBRARY

__all__ = [
    "BINARY",
    "CLEAR",
    "DECLARATION_OF_CLEAR",
    "DECLARATION_OF_PRINTF",
    "FLAGGED",
    "FUNCTIONS",
    "NATIVE",
    "PRINTF",
    "RELAXED",
    "conversion",
    "declaration",
]

_OF_INTEGERS: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "&": "and_",
    "^": "xor",
    "|": "or_",
    "shl": "shl",
}

BINARY: Final[Mapping[str, Mapping[str, str]]] = {
    "bool": {"&": "and_", "^": "xor", "|": "or_"},
    "int": {**_OF_INTEGERS, "cdiv": "sdiv", "cmod": "srem", "shr": "ashr"},
    "uint": {**_OF_INTEGERS, "cdiv": "udiv", "cmod": "urem", "shr": "lshr"},
    "float": {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"},
}
"""Kind of dtype -> operator of `tack.ir.nodes.TARGET_BINARY` -> instruction.

Integers wrap, since no instruction says ``nsw`` or ``nuw``; floats follow IEEE 754 to the letter,
since none has a fast-math flag, but for those that are relaxed.
"""

RELAXED: Final = ("reassoc", "nsz", "arcp", "contract", "afn")
"""The flags of an instruction that may be regrouped and fused. Not ``nnan`` and ``ninf``, by which
a NaN or an infinity would make everything undefined that depends on it."""

_FLOATS: Final = {"f32": "float", "f64": "double"}

_INTRINSICS: Final = {
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "sqrt": "sqrt",
    "fma": "fma",
    "mulacc": "fmuladd",
    "copysign": "copysign",
    "round": "rint",
}

_AS_INTRINSICS: Final = frozenset({"cos", "log2", "pow", "sin"})

NATIVE: Final = {
    (function, dtype): f"llvm.{function}.{dtype}" if function in _AS_INTRINSICS else name
    for (function, dtype), name in LIBRARY.items()
}
"""The functions of C's library, or the intrinsics that call them."""

_BIT_COUNTS: Final = {"popcount": "ctpop", "clz": "ctlz", "ctz": "cttz"}
_INTEGERS: Final = {"u32": "i32", "u64": "i64"}

FLAGGED: Final = frozenset({"clz", "ctz"})
"""Builtins whose intrinsic has a flag for its last operand: whether 0 is undefined. Here never."""

FUNCTIONS: Final[Mapping[tuple[str, str], str]] = (
    {
        (builtin, dtype): f"llvm.{intrinsic}.{dtype}"
        for builtin, intrinsic in _INTRINSICS.items()
        for dtype in _FLOATS
    }
    | NATIVE
    | {
        (builtin, dtype): f"llvm.{intrinsic}.{kind}"
        for builtin, intrinsic in _BIT_COUNTS.items()
        for dtype, kind in _INTEGERS.items()
    }
)
"""(builtin, dtype name) -> intrinsic, or function of C's library.

``fmod`` is the instruction ``frem``, for which LLVM calls libm's. Calling that by its name would
invite what LLVM knows of it: where it can tell that the divisor is not zero, it takes NaN to be
impossible, though the divisor may be one (LLVM 20 to 22, ``LibCallSimplifier::optimizeFMod``).
"""


CLEAR: Final = "llvm.memset.p0.i64"
"""The intrinsic that sets bytes: address, value, count, and whether the memory is volatile."""

PRINTF: Final = "printf"
DECLARATION_OF_PRINTF: Final = f'declare i32 @"{PRINTF}"(ptr, ...)'

DECLARATION_OF_CLEAR: Final = f'declare void @"{CLEAR}"(ptr, i8, i64, i1)'


def declaration(builtin: str, dtype: str) -> str:
    """The declaration of an intrinsic of `FUNCTIONS`."""
    kind = (_FLOATS | _INTEGERS)[dtype]
    operands = ", ".join([kind] * MATH_CALLS[builtin] + ["i1"] * (builtin in FLAGGED))
    return f'declare {kind} @"{FUNCTIONS[builtin, dtype]}"({operands})'


def conversion(source: DType, target: DType) -> str | None:
    """The instruction that converts ``source`` to ``target``, or None where the bits are the same.

    ``target`` is no bool. A float that becomes an integer is in range (``decompose``).
    """
    if source.is_float:
        if target.is_float:
            return None if source is target else "fpext" if source.bits < target.bits else "fptrunc"
        return "fptosi" if target.is_signed else "fptoui"
    if target.is_float:
        return "sitofp" if source.is_signed else "uitofp"
    if source.bits < target.bits:
        return "sext" if source.is_signed else "zext"
    return None if source.bits == target.bits else "trunc"
