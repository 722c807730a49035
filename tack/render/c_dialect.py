"""The tables of the C dialect: types, functions, literals and reserved words."""

from __future__ import annotations

from typing import Final

from tack.ir.operations import ATOMIC_DTYPES
from tack.model.dtypes import DTYPES
from tack.render.cfamily import Dialect
from tack.render.libm import LIBRARY

__all__ = ["ATOMICS", "BITCASTS", "MULACC", "NATIVE", "C"]

_TYPES: Final = {
    "bool": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f8e4m3": "uint8_t",
    "f8e5m2": "uint8_t",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
}

BITCASTS: Final = {
    ("f32", "u32"): "tack_bits_of_f32",
    ("u32", "f32"): "tack_f32_of_bits",
    ("f64", "u64"): "tack_bits_of_f64",
    ("u64", "f64"): "tack_f64_of_bits",
}
"""(dtype name of the source, of the result) -> the function of ``c/unit.c.j2`` that keeps bits."""

ATOMICS: Final = {
    (op, dtype): f"tack_atomic_{op}_{dtype}"
    for op, dtypes in ATOMIC_DTYPES.items()
    for dtype in dtypes
    if not (DTYPES[dtype].is_bool or DTYPES[dtype].is_narrow_float)
}
"""(operation, dtype name) -> the function of ``c/unit.c.j2``."""

_RESERVED: Final = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof bool true false constexpr nullptr alignas alignof static_assert
thread_local typeof_unqual unix linux i386 ctx args begin end
TACK_ABI TACK_ABI_H TACK_ENTRY TACK_EXACT TACK_INLINE TACK_RELAXED TACK_REGROUP
"""
"""Keywords of C up to C23, macros of gcc and of generated files, parameters of entry points."""

_STDINT_MACROS: Final = frozenset(
    f"{sign}{name}_{end}"
    for name in (
        *(f"INT{least}{bits}" for least in ("", "_LEAST", "_FAST") for bits in (8, 16, 32, 64)),
        *("INTMAX", "INTPTR", "PTRDIFF", "SIG_ATOMIC", "SIZE", "WCHAR", "WINT"),
    )
    for sign in ("", "U")
    for end in ("MIN", "MAX", "C", "WIDTH")
)
"""The macros of ``<stdint.h>`` (and some that it has not)."""

_UNALIGNED: Final = {
    name: f"tack_any_{name}" if DTYPES[name].itemsize > 1 else spelling
    for name, spelling in _TYPES.items()
}

_FLOAT_FUNCTIONS: Final = {
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "sqrt": "sqrt",
    "fma": "fma",
    "fmod": "fmod",
    "copysign": "copysign",
    "round": "rint",
}

MULACC: Final = {("mulacc", dtype): f"tack_mulacc_{dtype}" for dtype in ("f32", "f64")}
"""(builtin, dtype name) -> the function of ``c/unit.c.j2`` that fuses where the CPU does."""

NATIVE: Final = {which: f"__builtin_{function}" for which, function in LIBRARY.items()}
"""The functions of C's library, by names that need no header."""

_BIT_COUNTS: Final = {"popcount": "popcount", "clz": "clz", "ctz": "ctz"}


C: Final = Dialect(
    types=_TYPES,
    functions={
        (function, dtype): f"__builtin_{spelling}{suffix}"
        for function, spelling in _FLOAT_FUNCTIONS.items()
        for dtype, suffix in (("f32", "f"), ("f64", ""))
    }
    | {
        (function, dtype): f"__builtin_{spelling}{suffix}"
        for function, spelling in _BIT_COUNTS.items()
        for dtype, suffix in (("u32", ""), ("u64", "ll"))
    }
    | MULACC
    | NATIVE,
    bitcasts=BITCASTS,
    conversions={},
    atomics=ATOMICS,
    float_suffix={"f32": "f", "f64": ""},
    infinity={"f32": "__builtin_inff()", "f64": "__builtin_inf()"},
    not_a_number={"f32": '__builtin_nanf("")', "f64": '__builtin_nan("")'},
    integer_literal={
        **dict.fromkeys(("i8", "i16", "i32", "u8", "u16"), "{}"),
        "u32": "{}u",
        "i64": "INT64_C({})",
        "u64": "UINT64_C({})",
    },
    least={"i32": "INT32_MIN", "i64": "INT64_MIN"},
    unaligned=_UNALIGNED,
    exact="TACK_EXACT({})",
    printf="__builtin_printf",
    clear="__builtin_memset({0}, 0, sizeof {0});",
    reserved=frozenset(_RESERVED.split())
    | frozenset({*BITCASTS.values(), *ATOMICS.values(), *MULACC.values()})
    | _STDINT_MACROS
    | frozenset(_TYPES.values())
    | frozenset(_UNALIGNED.values()),
)
