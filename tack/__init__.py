"""tack: numeric kernels, written once in Python and shipped prebuilt.

>>> import tack
>>> @tack.kernel
... def scale(a, x, out):
...     for i in range(x.shape[0]):
...         out[i] = a * x[i]

Importing this package imports little; every public name is loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tack import errors, math
    from tack.decorator import kernel
    from tack.lang.array import Array
    from tack.lang.atomics import (
        atomic_add,
        atomic_and,
        atomic_cas,
        atomic_exchange,
        atomic_max,
        atomic_min,
        atomic_or,
        atomic_sub,
        atomic_xor,
    )
    from tack.lang.builtins import (
        ceil,
        clamp,
        clz,
        copysign,
        cross,
        ctz,
        determinant,
        dot,
        floor,
        fma,
        inverse,
        isfinite,
        isinf,
        isnan,
        length,
        local_array,
        local_array_like,
        mix,
        ndrange,
        normalize,
        popcount,
        round,  # noqa: A004 - it is the language's word, and Python's
        sign,
        sqrt,
        step,
        transpose,
        trunc,
    )
    from tack.lang.definition import constant, func
    from tack.lang.template import (
        classify_template_attrs,
        device_class,
        template_scope,
        template_tree,
    )
    from tack.lang.template_spec import spec
    from tack.model.dtypes import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
    from tack.model.vector_value import Vector
    from tack.runtime.explain import explain

__version__ = "0.1.0"

_HOMES: Final[dict[str, str]] = (
    {
        "Array": "tack.lang.array",
        "Vector": "tack.model.vector_value",
        "constant": "tack.lang.definition",
        "explain": "tack.runtime.explain",
        "func": "tack.lang.definition",
        "kernel": "tack.decorator",
        "spec": "tack.lang.template_spec",
    }
    | dict.fromkeys(
        ("classify_template_attrs", "device_class", "template_scope", "template_tree"),
        "tack.lang.template",
    )
    | dict.fromkeys(
        (
            "atomic_add",
            "atomic_and",
            "atomic_cas",
            "atomic_exchange",
            "atomic_max",
            "atomic_min",
            "atomic_or",
            "atomic_sub",
            "atomic_xor",
        ),
        "tack.lang.atomics",
    )
    | dict.fromkeys(
        (
            "bf16",
            "bool_",
            "f16",
            "f32",
            "f64",
            "i8",
            "i16",
            "i32",
            "i64",
            "u8",
            "u16",
            "u32",
            "u64",
        ),
        "tack.model.dtypes",
    )
    | dict.fromkeys(
        (
            "ceil",
            "clamp",
            "clz",
            "copysign",
            "ctz",
            "floor",
            "fma",
            "isfinite",
            "isinf",
            "isnan",
            "local_array",
            "local_array_like",
            "mix",
            "ndrange",
            "popcount",
            "round",
            "sign",
            "sqrt",
            "step",
            "trunc",
        ),
        "tack.lang.builtins",
    )
    | dict.fromkeys(
        (
            "acos",
            "asin",
            "atan",
            "atan2",
            "cbrt",
            "cos",
            "cosh",
            "erf",
            "exp",
            "exp2",
            "expm1",
            "hypot",
            "log",
            "log1p",
            "log2",
            "log10",
            "pow",
            "rsqrt",
            "sin",
            "sinh",
            "tan",
            "tanh",
        ),
        "tack.lang.elementary",
    )
    | dict.fromkeys(
        ("cross", "determinant", "dot", "inverse", "length", "normalize", "transpose"),
        "tack.lang.builtins",
    )
)
"""Public name -> the module that defines it."""

_MODULES: Final = frozenset({"errors", "math"})
"""Public names that are modules."""

__all__ = [
    "Array",
    "Vector",
    "acos",
    "asin",
    "atan",
    "atan2",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "bf16",
    "bool_",
    "cbrt",
    "ceil",
    "clamp",
    "classify_template_attrs",
    "clz",
    "constant",
    "copysign",
    "cos",
    "cosh",
    "cross",
    "ctz",
    "determinant",
    "device_class",
    "dot",
    "erf",
    "errors",
    "exp",
    "exp2",
    "explain",
    "expm1",
    "f16",
    "f32",
    "f64",
    "floor",
    "fma",
    "func",
    "hypot",
    "i8",
    "i16",
    "i32",
    "i64",
    "inverse",
    "isfinite",
    "isinf",
    "isnan",
    "kernel",
    "length",
    "local_array",
    "local_array_like",
    "log",
    "log1p",
    "log2",
    "log10",
    "math",
    "mix",
    "ndrange",
    "normalize",
    "popcount",
    "pow",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "spec",
    "sqrt",
    "step",
    "tan",
    "tanh",
    "template_scope",
    "template_tree",
    "transpose",
    "trunc",
    "u8",
    "u16",
    "u32",
    "u64",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tack.{name}")
    home = _HOMES.get(name)
    if home is not None:
        value = getattr(import_module(home), name)
    else:
        from tack.model.vectors import vector_type

        value = vector_type(name)
        if value is None:
            raise AttributeError(f"module 'tack' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
