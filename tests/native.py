"""Small C kernels for the tests of the launcher, and records that launch them.

The spies note what they were given instead of computing: tests read it back through ctypes.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from tack import _core

__all__ = [
    "DTYPES",
    "Spy",
    "array",
    "kernel",
    "library",
    "make",
    "missed",
    "numpy_dtype",
    "path",
    "saxpy",
    "saxpy_kernel",
    "scalar",
    "slots_of",
    "spied",
]

DTYPES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q"} | {
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "f32": "f",
    "f64": "d",
}
"""dtype -> its letter for the struct module."""

TEXT = """
#include <string.h>
#include "tack_abi.h"

tack_slot seen[600];
int64_t seen_begin, seen_end;
int32_t slots_to_see, calls, noalias_calls, wide_calls;
tack_context seen_context;

void spy(const tack_context *ctx, const tack_slot *args, int64_t begin, int64_t end) {
  memcpy(seen, args, (size_t)slots_to_see * sizeof *seen);
  seen_begin = begin, seen_end = end, seen_context = *ctx;
  ++calls;
}

void spy_noalias(const tack_context *ctx, const tack_slot *args, int64_t begin, int64_t end) {
  spy(ctx, args, begin, end);
  ++noalias_calls;
}

void spy_wide(const tack_context *ctx, const tack_slot *args, int64_t begin, int64_t end) {
  spy(ctx, args, begin, end);
  ++wide_calls;
}

/* out[i] = a * x[i] + y[i] */
void saxpy(const tack_context *ctx, const tack_slot *args, int64_t begin, int64_t end) {
  const float a = args[0].f32;
  const float *x = args[1].ptr, *y = args[2].ptr;
  float *out = args[3].ptr;
  (void)ctx;
  for (int64_t i = begin; i < end; ++i) out[i] = a * x[i] + y[i];
}

/* x[0] = what x[1] turned into while the kernel waited for it, if anything. */
void wait(const tack_context *ctx, const tack_slot *args, int64_t begin, int64_t end) {
  volatile double *x = args[0].ptr;
  (void)ctx, (void)begin, (void)end;
  for (int64_t i = 0; i < 4000000000 && x[1] == 0; ++i) {}
  x[0] = x[1];
}
"""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of that name."""
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


@functools.cache
def path() -> Path:
    """The library of the kernels above, compiled once."""
    folder = Path(tempfile.mkdtemp(prefix="tack-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, target = folder / "kernels.c", folder / "kernels.so"
    source.write_text(TEXT, encoding="utf-8")
    with as_file(files("tack.templates") / "c") as headers:
        command = ["cc", "-O2", "-shared", "-fPIC", f"-I{headers}", "-o", target, source]
        subprocess.run(command, check=True)
    return target


@functools.cache
def library() -> _core.Library:
    """The same library, loaded."""
    return _core.Library(str(path()))


def array(
    dtype: str = "f32",
    rank: int = 1,
    pins: Sequence[int] | None = None,
    layout: str = "contiguous",
) -> tuple[Any, ...]:
    """The record of an array parameter."""
    return ("array", dtype, rank, tuple(pins) if pins else (-1,) * rank, layout)


def scalar(dtype: str, annotated: bool = False) -> tuple[Any, ...]:
    """The record of a scalar parameter."""
    return ("scalar", dtype, annotated)


def slots_of(params: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A slot for every part of every parameter, in order."""
    slots: list[tuple[Any, ...]] = []
    for number, (form, dtype, *rest) in enumerate(params):
        if form == "scalar":
            slots.append(("scalar", number, dtype))
        else:
            slots.append(("pointer", number))
            slots.extend(("extent", number, axis) for axis in range(rest[0]))
    return slots


ONCE = (("const", 1), ("loop", 0))


def make(
    params: Sequence[tuple[Any, ...]],
    *,
    slots: Sequence[Sequence[Any]] | None = None,
    host: Sequence[Sequence[Any]] = ONCE,
    written: Sequence[int] = (),
    general: str = "spy",
    noalias: str | None = None,
    wide: str | None = None,
    multiples: Sequence[tuple[int, ...]] = (),
    label: str = "module:name[test]",
    keepalive: object = None,
) -> _core.Launchable:
    """A launch record; one iteration and every slot unless said otherwise."""
    return _core.Launchable(
        list(params),
        slots_of(params) if slots is None else slots,
        host,
        written,
        library().symbol(general),
        library().symbol(noalias) if noalias else 0,
        label,
        keepalive,
        wide=library().symbol(wide) if wide else 0,
        multiples=multiples,
    )


class Spy:
    """What the spies saw since `clear`."""

    def __init__(self) -> None:
        self.native = ctypes.CDLL(str(path()))

    def __getattr__(self, name: str) -> int:
        wide = name in {"seen_begin", "seen_end"}
        value: int = (ctypes.c_int64 if wide else ctypes.c_int32).in_dll(self.native, name).value
        return value

    def clear(self, slots: int) -> None:
        """Forgets all calls; the next ones will be asked for so many slots."""
        for name, value in {
            **dict.fromkeys(("calls", "noalias_calls", "wide_calls"), 0),
            "slots_to_see": slots,
        }.items():
            ctypes.c_int32.in_dll(self.native, name).value = value

    def slots(self, count: int) -> list[int]:
        """The slots as unsigned 64-bit integers."""
        return list((ctypes.c_uint64 * count).in_dll(self.native, "seen"))

    def context(self) -> tuple[int, int]:
        """The ABI number and the size of the context."""
        fields = (ctypes.c_uint32 * 2).in_dll(self.native, "seen_context")
        return fields[0], fields[1]


@functools.cache
def spied() -> Spy:
    """The one spy: it reads globals of the library."""
    library()
    return Spy()


def kernel(
    function: Callable[..., Any],
    *records: _core.Launchable,
    annotated: Sequence[bool] | None = None,
    on_miss: Callable[..., Any] | None = None,
) -> _core.Kernel:
    """A kernel of ``function`` with these variants; a miss is a ``LookupError`` by default."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    flags = tuple(annotated) if annotated is not None else (False,) * len(names)
    made = _core.make_kernel(function, None, names, flags, on_miss or missed)
    for record in records:
        _core.install(made, record)
    return made


def missed(called: _core.Kernel, arguments: tuple[Any, ...]) -> _core.Launchable:
    """The usual answer to a miss."""
    raise LookupError(f"{called.__name__} has no variant for {arguments!r:.200}")


def saxpy(a: float, x: Any, y: Any, out: Any) -> None:
    """Stores a * x + y."""


def saxpy_kernel() -> _core.Kernel:
    """The kernel of `saxpy`, for float32."""
    f32 = array()
    record = make(
        [scalar("f32"), f32, f32, f32],
        slots=[("scalar", 0, "f32"), *(("pointer", k) for k in (1, 2, 3)), ("extent", 1, 0)],
        host=[("slot", 4, "i64"), ("loop", 0)],
        written=[3],
        general="saxpy",
    )
    return kernel(saxpy, record)
