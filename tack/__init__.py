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
    from tack import errors
    from tack.decorator import kernel
    from tack.lang.array import Array
    from tack.lang.builtins import (
        ceil,
        cross,
        determinant,
        dot,
        floor,
        fma,
        inverse,
        length,
        local_array,
        local_array_like,
        ndrange,
        normalize,
        sqrt,
        transpose,
        trunc,
    )
    from tack.lang.definition import constant, func
    from tack.model.dtypes import bool_, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
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
    }
    | dict.fromkeys(
        ("bool_", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
        "tack.model.dtypes",
    )
    | dict.fromkeys(
        (
            "ceil",
            "floor",
            "fma",
            "local_array",
            "local_array_like",
            "ndrange",
            "sqrt",
            "trunc",
        ),
        "tack.lang.builtins",
    )
    | dict.fromkeys(
        ("cross", "determinant", "dot", "inverse", "length", "normalize", "transpose"),
        "tack.lang.builtins",
    )
)
"""Public name -> the module that defines it."""

__all__ = [
    "Array",
    "Vector",
    "bool_",
    "ceil",
    "constant",
    "cross",
    "determinant",
    "dot",
    "errors",
    "explain",
    "f32",
    "f64",
    "floor",
    "fma",
    "func",
    "i8",
    "i16",
    "i32",
    "i64",
    "inverse",
    "kernel",
    "length",
    "local_array",
    "local_array_like",
    "ndrange",
    "normalize",
    "sqrt",
    "transpose",
    "trunc",
    "u8",
    "u16",
    "u32",
    "u64",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("tack.errors")
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
