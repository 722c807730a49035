"""The tables of CUDA C++, HIP and the Metal Shading Language."""

from __future__ import annotations

from functools import cache
from typing import Final

from tack.ir.operations import ATOMIC_DTYPES, ELEMENTARY
from tack.model.dtypes import DTYPES, NARROW
from tack.render.cfamily import Dialect
from tack.render.gpu import VECTOR_SIZES, GpuDialect, gpu_renderer
from tack.render.names import Words
from tack.render.renderer import Renderer

__all__ = ["CUDA", "HIP", "METAL", "cuda", "hip", "metal"]

_CPP_WORDS: Final = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires restrict return
short signed sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t
while xor xor_eq unix linux i386 values arrays shared TACK_ENTRY TACK_INLINE TACK_SLOT
"""
"""Keywords of C++ up to C++23, macros of compilers and of generated files, names of templates."""

_VECTORS: Final = frozenset(f"tack_{name}x{size}" for name in DTYPES for size in VECTOR_SIZES)
_CPP: Final = frozenset(_CPP_WORDS.split()) | _VECTORS
_INDICES: Final = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_METAL_WORDS: Final = """
access array bfloat constant coherent device fragment half kernel metal object_data precise fast
quad_broadcast ray_data thread threadgroup threadgroup_imageblock uchar uint ulong ushort vertex
visible patch mesh object intersection NAN INFINITY HUGE_VALF MAXFLOAT position positions element
"""
"""Keywords of Metal beside those of C++, its types and macros, and names of templates."""

_TYPES: Final = {
    "bool": "bool",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "u8": "unsigned char",
    "u16": "unsigned short",
    "u32": "unsigned int",
    "u64": "unsigned long long",
    "f8e4m3": "unsigned char",
    "f8e5m2": "unsigned char",
    "f16": "unsigned short",
    "bf16": "unsigned short",
    "f32": "float",
    "f64": "double",
}

_INTEGER_LITERALS: Final = {
    **dict.fromkeys(("i8", "i16", "i32", "u8", "u16"), "{}"),
    "u32": "{}u",
    "i64": "{}ll",
    "u64": "{}ull",
}

_LEAST: Final = {"i32": "(-2147483647 - 1)", "i64": "(-9223372036854775807ll - 1)"}

_HELPERS: Final = {
    ("f32", "u32"): "tack_bits_of_f32",
    ("u32", "f32"): "tack_f32_of_bits",
    ("f64", "u64"): "tack_bits_of_f64",
    ("u64", "f64"): "tack_f64_of_bits",
}

_CONVERSIONS: Final = {
    pair: f"tack_{pair[1]}_of_{pair[0]}"
    for narrow in NARROW
    for pair in (("f32", narrow), (narrow, "f32"))
}

_BIT_COUNTS: Final = {
    (function, dtype): f"tack_{function}_{dtype}"
    for function in ("popcount", "clz", "ctz")
    for dtype in ("u32", "u64")
}

_ATOMICS: Final = {
    (op, dtype): f"tack_atomic_{op}_{dtype}"
    for op, dtypes in ATOMIC_DTYPES.items()
    for dtype in dtypes
}


def _by_suffix(spellings: dict[str, str], prefix: str = "") -> dict[tuple[str, str], str]:
    return {
        (function, dtype): f"{prefix}{spelling}{suffix}"
        for function, spelling in spellings.items()
        for dtype, suffix in (("f32", "f"), ("f64", ""))
    }


_FUSED: Final = {"mulacc": "fma"}
"""Every GPU fuses a product and a sum in one instruction."""

_EXACT: Final = {
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "fma": "fma",
    "copysign": "copysign",
    "round": "rint",
}
"""Builtin -> C's function, whose results are exact or rounded once."""

_CUDA_NATIVE: Final = _by_suffix({name: name for name in ELEMENTARY})
"""CUDA's own functions, within 2 units in the last place or so, and not the approximations in
hardware, such as ``__sinf``, whose error is absolute."""

_CUDA_FUNCTIONS: Final = {
    **_by_suffix({**_EXACT, **_FUSED, "fmod": "fmod"}),
    **_CUDA_NATIVE,
    ("sqrt", "f32"): "__fsqrt_rn",
    ("sqrt", "f64"): "__dsqrt_rn",
    **_BIT_COUNTS,
}

_COMPUTED: Final = frozenset({"constant division", "wide integers"})
"""What their compilers do by themselves."""

CUDA: Final = GpuDialect(
    Dialect(
        types=_TYPES,
        functions=_CUDA_FUNCTIONS,
        bitcasts=_HELPERS,
        conversions=_CONVERSIONS,
        atomics=_ATOMICS,
        float_suffix={"f32": "f", "f64": ""},
        infinity={
            "f32": "__int_as_float(0x7f800000)",
            "f64": "__longlong_as_double(0x7ff0000000000000ll)",
        },
        not_a_number={
            "f32": "__int_as_float(0x7fc00000)",
            "f64": "__longlong_as_double(0x7ff8000000000000ll)",
        },
        integer_literal=_INTEGER_LITERALS,
        least=_LEAST,
        unaligned=_TYPES,
        clear="memset({0}, 0, sizeof {0});",
        restrict="__restrict__ ",
        printf="printf",
        reserved=Words(
            _CPP | frozenset(_CUDA_FUNCTIONS.values()) | frozenset({"memset", "printf"}) | _INDICES
        ),
    ),
    folder="cuda",
    suffix=".cu",
    needs="nvcc or NVRTC",
    first="(long long)blockIdx.{0} * blockDim.{0} + threadIdx.{0}",
    step="(long long)gridDim.{0} * blockDim.{0}",
    lane="threadIdx.{0}",
    group="blockIdx.{0}",
    groups="gridDim.{0}",
    calls={
        "tack_f8e4m3_of_f32": ("tack_e4m3x2_of_f32",),
        "tack_f8e5m2_of_f32": ("tack_e5m2x2_of_f32",),
        "tack_f32_of_f8e4m3": ("tack_f16x2_of_e4m3x2", "tack_f32_of_f16"),
        "tack_f32_of_f8e5m2": ("tack_f16x2_of_e5m2x2", "tack_f32_of_f16"),
    },
    supported=_COMPUTED | {"print"},
    native=frozenset(_CUDA_NATIVE),
)

_HIP_NATIVE: Final = {
    (name, "f32"): f"__builtin_{name}f" for name in ("exp", "exp2", "log", "log2", "log10")
}
"""What clang writes as instructions of AMD's, without ROCm's device library."""

HIP: Final = GpuDialect(
    Dialect(
        types=_TYPES,
        functions={
            **_by_suffix({**_EXACT, **_FUSED, "sqrt": "sqrt"}, "__builtin_"),
            **_HIP_NATIVE,
            **_BIT_COUNTS,
        },
        bitcasts=_HELPERS,
        conversions=_CONVERSIONS,
        atomics=_ATOMICS,
        float_suffix={"f32": "f", "f64": ""},
        infinity={"f32": "__builtin_inff()", "f64": "__builtin_inf()"},
        not_a_number={"f32": '__builtin_nanf("")', "f64": '__builtin_nan("")'},
        integer_literal=_INTEGER_LITERALS,
        least=_LEAST,
        unaligned=_TYPES,
        clear="__builtin_memset({0}, 0, sizeof {0});",
        restrict="__restrict__ ",
        printf="printf",
        reserved=Words(_CPP | _INDICES | frozenset({"printf"})),
    ),
    folder="hip",
    suffix=".hip",
    needs="hipcc, or the clang of ziglang (pip install ziglang)",
    first=CUDA.first,
    step=CUDA.step,
    lane=CUDA.lane,
    group=CUDA.group,
    groups=CUDA.groups,
    supported=_COMPUTED | {"wrap", "print"},
    native=frozenset(_HIP_NATIVE),
)

_METAL_TYPES: Final = {
    "bool": "bool",
    "i8": "char",
    "i16": "short",
    "i32": "int",
    "i64": "long",
    "u8": "uchar",
    "u16": "ushort",
    "u32": "uint",
    "u64": "ulong",
    "f8e4m3": "uchar",
    "f8e5m2": "uchar",
    "f16": "ushort",
    "bf16": "ushort",
    "f32": "float",
}

_METAL_PRECISE: Final = "acos asin atan atan2 cos cosh pow sin sinh tan tanh"
_METAL_NATIVE: Final = {
    **{(name, "f32"): f"fast::{name}" for name in ("exp", "exp2", "log", "log2", "log10", "rsqrt")},
    **{(name, "f32"): f"precise::{name}" for name in _METAL_PRECISE.split()},
}
"""Metal's own functions. The ``fast`` ones of angles are off by 2^-13 and more, and so left out."""

_METAL_FUNCTIONS: Final = {
    **{(function, "f32"): spelling for function, spelling in {**_EXACT, **_FUSED}.items()},
    **_METAL_NATIVE,
    ("sqrt", "f32"): "precise::sqrt",
    **_BIT_COUNTS,
}

METAL: Final = GpuDialect(
    Dialect(
        types=_METAL_TYPES,
        functions=_METAL_FUNCTIONS,
        bitcasts=_HELPERS,
        conversions=_CONVERSIONS,
        atomics={
            (op, dtype): name for (op, dtype), name in _ATOMICS.items() if not dtype.endswith("64")
        },
        float_suffix={"f32": "f"},
        infinity={"f32": "INFINITY"},
        not_a_number={"f32": "NAN"},
        integer_literal={**_INTEGER_LITERALS, "i64": "{}l", "u64": "{}ul"},
        least={"i32": "(-2147483647 - 1)", "i64": "(-9223372036854775807l - 1)"},
        unaligned=_METAL_TYPES,
        clear="for (thread auto &element : {0}) {{ element = 0; }}",
        space="device ",
        shared_space="threadgroup ",
        restrict="__restrict ",
        reserved=Words(
            _CPP | frozenset(_METAL_FUNCTIONS.values()) | frozenset(_METAL_WORDS.split())
        ),
    ),
    folder="metal",
    native=frozenset(_METAL_NATIVE),
    suffix=".metal",
    needs="the Metal compiler of macOS",
    exact=False,  # GPUs of Apple's flush subnormals
    first="tack_thread.{0}",
    step="tack_threads.{0}",
    lane="tack_thread.{0}",
    group="tack_group.{0}",
    groups="tack_groups.{0}",
    threads=(
        ("uint3 tack_thread", "tack_thread", "[[thread_position_in_grid]]"),
        ("uint3 tack_threads", "tack_threads", "[[threads_per_grid]]"),
    ),
    lanes=(
        ("uint3 tack_thread", "tack_thread", "[[thread_position_in_threadgroup]]"),
        ("uint3 tack_group", "tack_group", "[[threadgroup_position_in_grid]]"),
        ("uint3 tack_groups", "tack_groups", "[[threadgroups_per_grid]]"),
    ),
    supported=_COMPUTED,
    pointer="arrays.{}",
    flavours=("general",),
)


@cache
def cuda() -> Renderer:
    """The renderer of CUDA C++."""
    return gpu_renderer(CUDA)


@cache
def hip() -> Renderer:
    """The renderer of HIP."""
    return gpu_renderer(HIP)


@cache
def metal() -> Renderer:
    """The renderer of the Metal Shading Language."""
    return gpu_renderer(METAL)
