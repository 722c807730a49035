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

if TYPE_CHECKING:  # what type checkers see of the table below
    from tack import errors as errors
    from tack import math as math
    from tack import random as random
    from tack.decorator import kernel as kernel
    from tack.decorator import source_kernel as source_kernel
    from tack.lang.array import Array as Array
    from tack.lang.atomics import *
    from tack.lang.builtins import *
    from tack.lang.definition import constant as constant
    from tack.lang.definition import func as func
    from tack.lang.elementary import *
    from tack.lang.fragments import *
    from tack.lang.groups import *
    from tack.lang.template import device_class as device_class
    from tack.lang.template_objects import classify_template_attrs as classify_template_attrs
    from tack.lang.template_objects import template_scope as template_scope
    from tack.lang.template_objects import template_tree as template_tree
    from tack.lang.template_spec import spec as spec
    from tack.model.dtypes import bf16 as bf16
    from tack.model.dtypes import bool_ as bool_
    from tack.model.dtypes import f8e4m3 as f8e4m3
    from tack.model.dtypes import f8e5m2 as f8e5m2
    from tack.model.dtypes import f16 as f16
    from tack.model.dtypes import f32 as f32
    from tack.model.dtypes import f64 as f64
    from tack.model.dtypes import i8 as i8
    from tack.model.dtypes import i16 as i16
    from tack.model.dtypes import i32 as i32
    from tack.model.dtypes import i64 as i64
    from tack.model.dtypes import u8 as u8
    from tack.model.dtypes import u16 as u16
    from tack.model.dtypes import u32 as u32
    from tack.model.dtypes import u64 as u64
    from tack.model.vector_value import Vector as Vector
    from tack.runtime.explain import explain as explain

__version__ = "0.1.0"

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "tack": (
        "errors",
        "math",
        "random",
    ),
    "tack.decorator": ("kernel", "source_kernel"),
    "tack.lang.array": ("Array",),
    "tack.lang.atomics": (
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
    "tack.lang.builtins": (
        "ceil",
        "clamp",
        "clz",
        "copysign",
        "cross",
        "ctz",
        "determinant",
        "dot",
        "floor",
        "fma",
        "inverse",
        "isfinite",
        "isinf",
        "isnan",
        "length",
        "local_array",
        "local_array_like",
        "mix",
        "ndrange",
        "normalize",
        "popcount",
        "round",
        "sign",
        "sqrt",
        "step",
        "transpose",
        "trunc",
    ),
    "tack.lang.definition": (
        "constant",
        "func",
    ),
    "tack.lang.elementary": (
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
        "log10",
        "log1p",
        "log2",
        "pow",
        "rsqrt",
        "sin",
        "sinh",
        "tan",
        "tanh",
    ),
    "tack.lang.fragments": (
        "fragment_a",
        "fragment_b",
        "fragment_c",
        "mma",
        "store_fragment",
        "warp_id",
        "warp_size",
    ),
    "tack.lang.groups": (
        "barrier",
        "block_max",
        "block_min",
        "block_sum",
        "group_id",
        "group_size",
        "shared",
        "shared_like",
        "thread_id",
    ),
    "tack.lang.template": ("device_class",),
    "tack.lang.template_objects": ("classify_template_attrs", "template_scope", "template_tree"),
    "tack.lang.template_spec": ("spec",),
    "tack.model.dtypes": (
        "bf16",
        "bool_",
        "f16",
        "f32",
        "f64",
        "f8e4m3",
        "f8e5m2",
        "i16",
        "i32",
        "i64",
        "i8",
        "u16",
        "u32",
        "u64",
        "u8",
    ),
    "tack.model.vector_value": ("Vector",),
    "tack.runtime.explain": ("explain",),
}
"""Module -> the public names that it defines; of tack itself these are modules."""

_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home == __name__:
        return import_module(f"tack.{name}")
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
