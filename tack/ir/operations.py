"""The operations of the IR: operators, builtins and atomics, and what targets may do without.

`IRBinOp`, `IRCompare`, `IRCall` and `IRAtomic` name them; what is known of one is in these tables.
"""

from __future__ import annotations

from typing import Final

from tack.model.dtypes import DTYPES, DType

__all__ = [
    "ATOMIC_DTYPES",
    "ATOMIC_OPS",
    "BIT_COUNTS",
    "COMPARISONS",
    "ELEMENTARY",
    "EMULATED",
    "GROUP_REDUCTIONS",
    "MATH_CALLS",
    "PREDICATES",
    "PYTHON_BINARY",
    "RANDOM",
    "TARGET_BINARY",
    "random_dtype",
]

PYTHON_BINARY: Final = frozenset({"+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"})
"""Operators with the meaning of the kernel language, defined for every operand."""

TARGET_BINARY: Final = frozenset({"+", "-", "*", "/", "&", "|", "^", "cdiv", "cmod", "shl", "shr"})
"""Operators after decomposition. ``/`` is of floats; ``cdiv`` and ``cmod`` truncate and need a
divisor that is neither 0 nor the -1 of a min-int; shift counts are below the width."""

COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})

ELEMENTARY: Final[dict[str, int]] = {
    "acos": 1,
    "asin": 1,
    "atan": 1,
    "atan2": 2,
    "cbrt": 1,
    "cos": 1,
    "cosh": 1,
    "erf": 1,
    "exp": 1,
    "exp2": 1,
    "expm1": 1,
    "hypot": 2,
    "log": 1,
    "log10": 1,
    "log1p": 1,
    "log2": 1,
    "pow": 2,
    "rsqrt": 1,
    "sin": 1,
    "sinh": 1,
    "tan": 1,
    "tanh": 1,
}
"""Elementary function -> number of operands. They have formulas in ``tack.elementary``."""

GROUP_REDUCTIONS: Final = {"block_sum": "+", "block_min": "min", "block_max": "max"}
"""Builtin that combines a value of all iterations of a group -> how it combines two."""

RANDOM: Final[dict[str, int]] = {
    f"{generator}.{number}": count
    for generator, words in (("philox", 4), ("threefry", 2))
    for number, count in {
        **dict.fromkeys(("bits.u64", "uniform.f32", "uniform.f64", "normal.f32", "normal.f64"), 2),
        "randint.i64": 4,
        **{f"word{index}.u32": 2 for index in range(words)},
    }.items()
}
"""Random number -> number of operands, all u64. ``<generator>.<number>.<type of the result>``;
they have formulas in ``tack.elementary.counter_based``."""

MATH_CALLS: Final[dict[str, int]] = {
    "abs": 1,
    "min": 2,
    "max": 2,
    "floor": 1,
    "ceil": 1,
    "trunc": 1,
    "sqrt": 1,
    "fma": 3,
    "mulacc": 3,
    "recip": 1,
    "fmod": 2,
    "copysign": 2,
    "round": 1,
    "isnan": 1,
    "isinf": 1,
    "isfinite": 1,
    "sign": 1,
    "step": 2,
    "mix": 3,
    "popcount": 1,
    "clz": 1,
    "ctz": 1,
    **dict.fromkeys(GROUP_REDUCTIONS, 1),
    **ELEMENTARY,
    **RANDOM,
}
"""Builtin -> number of operands. ``fmod``, ``mulacc`` and ``recip`` exist for passes only:
``mulacc`` is ``a * b + c`` rounded once or twice as suits the target, ``recip`` is ``1 / x``."""

PREDICATES: Final = frozenset({"isnan", "isinf", "isfinite"})
"""Builtins that ask something of a float, and give a bool."""

BIT_COUNTS: Final = frozenset({"popcount", "clz", "ctz"})
"""Builtins of the bits of an integer. Targets have them for u32 and u64 (``decompose``)."""


ATOMIC_OPS: Final = ("add", "sub", "min", "max", "and", "or", "xor", "exchange", "cas")
"""What an atomic makes of an element: the language's operator of that name, the value, or the value
where the element is what is expected."""


_ATOMIC_KINDS: Final = {
    **dict.fromkeys(("add", "sub", "min", "max"), ("int", "uint", "float")),
    **dict.fromkeys(("and", "or", "xor"), ("bool", "int", "uint")),
    **dict.fromkeys(("exchange", "cas"), ("bool", "int", "uint", "float")),
}

ATOMIC_DTYPES: Final[dict[str, tuple[str, ...]]] = {
    op: tuple(
        name
        for name, dtype in DTYPES.items()
        if dtype.kind in _ATOMIC_KINDS[op] and not dtype.is_stored_float
    )
    for op in ATOMIC_OPS
}
"""Operation -> the names of the types whose elements it works on. Targets have them for integers,
f32 and f64 (``narrow_floats``, ``store_as_bytes``)."""


def random_dtype(function: str) -> DType:
    """The type of a number of `RANDOM`."""
    return DTYPES[function.rpartition(".")[2]]


EMULATED: Final = {
    "cmpeq": "whether two values are equal, else by whether they differ",
    "cmple": "`<=`, `>` and `>=`, else by `<`",
    "constant division": "division of integers by a constant",
    "fdiv": "division of floats",
    "fma": "a product and a sum of floats, rounded once",
    "fmod": "the exact remainder of floats, with the sign of the dividend",
    "mulacc": "products and sums that are fused where the mode allows it and the CPU does it",
    "neg": "the negative of a number",
    "print": "print, which is left out with a warning",
    "private atomics": "atomics on arrays that belong to one iteration",
    "recip": "1 / x, which some have instead of division",
    "regroup": "sums and products that a mode lets the target regroup and fuse as suits it",
    "shl": "shifts to the left, else products of powers of two",
    "shr": "shifts to the right, else quotients",
    "sqrt": "square roots of floats",
    "wide integers": "arithmetic of 64-bit integers",
    "wrap": "sums, differences and products of signed integers that wrap",
}
"""What a target may lack, or not have exactly."""
