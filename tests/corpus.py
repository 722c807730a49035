"""Kernels that use every operation at every type and every form of control flow, with arguments.

`CORPUS` names them: each entry is the text of a module and a function that gives `Pair`s of its
kernels and arguments. Every writer is held to the bits of C on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from generator.program import Buffer, numpy_dtype
from twins import Pair

from tack.ir.operations import ELEMENTARY, RANDOM
from tack.model.dtypes import DTYPES

__all__ = ["ARITHMETIC", "CONTROL", "CORPUS", "COUNT", "edges"]

# Longer than four vectors of 64 bytes, and not a multiple of any.
COUNT = 259

INTEGERS = [name for name, dtype in DTYPES.items() if dtype.is_integer]
FLOATS = [name for name, dtype in DTYPES.items() if dtype.is_float]


def edges(*shapes: tuple[str, tuple[int, ...]]) -> Callable[[], list[np.ndarray[Any, Any]]]:
    """Arrays with values at the edges of their types: NaN, infinities, subnormals, min-int."""

    def fill() -> list[np.ndarray[Any, Any]]:
        return [
            Buffer(dtype, int(np.prod(shape)), seed).fill().reshape(shape)
            for seed, (dtype, shape) in enumerate(shapes)
        ]

    return fill


# --- every operation at every type ---------------------------------------------------------------

ARITHMETIC = """
import tack

@tack.kernel
def integers(x, y, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        out[0, i] = a + b
        out[1, i] = a - b
        out[2, i] = a * b
        out[3, i] = a // b
        out[4, i] = a % b
        out[5, i] = a // 7
        out[6, i] = a % 7
        out[7, i] = a << b
        out[8, i] = a >> b
        out[9, i] = a & b
        out[10, i] = a | b
        out[11, i] = a ^ b
        out[12, i] = ~a
        out[13, i] = -a
        out[14, i] = abs(a)
        out[15, i] = min(a, b)
        out[16, i] = max(a, b)
        out[17, i] = a ** 5
        out[18, i] = a ** (b & 15)
        out[19, i] = a // b if a > b else b % a
        out[20, i] = (a < b) + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8
        out[21, i] = (a > b and b != 0) or not (a >= b)
        out[22, i] = (a < b) & (b < 100) | (a > 50) ^ (b > 3)

@tack.kernel
def quotients(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] / y[i]

@tack.kernel
def floats(x, y, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        out[0, i] = a + b
        out[1, i] = a - b
        out[2, i] = a * b
        out[3, i] = a / b
        out[4, i] = a // b
        out[5, i] = a % b
        out[6, i] = -a
        out[7, i] = abs(a)
        out[8, i] = min(a, b)
        out[9, i] = max(a, b)
        out[10, i] = tack.floor(a)
        out[11, i] = tack.ceil(a)
        out[12, i] = tack.trunc(a)
        out[13, i] = tack.sqrt(a)
        out[14, i] = tack.fma(a, b, 0.1)
        out[15, i] = a * b + a
        out[16, i] = (a < b) + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8
        out[17, i] = a > b and not a >= b or a != a
        out[18, i] = 1 / a if a else b
        out[19, i] = (a + b) - (a - b) * 0.5 / 3.0
"""

CASTS = "\n".join(
    f"        to_{name}[i] = tack.{dtype.__name__}(value)"
    for name, dtype in DTYPES.items()
    if name != "f64"
)
CONVERSION = f"""
import tack

@tack.kernel
def convert(x, {", ".join(f"to_{name}" for name in DTYPES if name != "f64")}):
    for i in range(x.shape[0]):
        value = x[i]
{CASTS}

@tack.kernel
def widen(x, out):
    for i in range(x.shape[0]):
        out[i] = tack.f64(x[i])
"""


def arithmetic(module: ModuleType) -> Iterator[Pair]:
    for dtype in INTEGERS:
        arrays = ((dtype, (COUNT,)), (dtype, (COUNT,)))
        yield Pair(
            module.integers,
            f"{dtype}[:], {dtype}[:], {dtype}[:, :]",
            edges(*arrays, (dtype, (23, COUNT))),
        )
        yield Pair(
            module.quotients, f"{dtype}[:], {dtype}[:], f32[:]", edges(*arrays, ("f32", (COUNT,)))
        )
    for dtype in FLOATS:
        arrays = ((dtype, (COUNT,)), (dtype, (COUNT,)), (dtype, (20, COUNT)))
        yield Pair(module.floats, f"{dtype}[:], {dtype}[:], {dtype}[:, :]", edges(*arrays))


def conversions(module: ModuleType) -> Iterator[Pair]:
    targets = [name for name in DTYPES if name != "f64"]
    for source in DTYPES:
        signature = ", ".join(f"{name}[:]" for name in (source, *targets))
        shapes = [(name, (COUNT,)) for name in (source, *targets)]
        yield Pair(module.convert, signature, edges(*shapes))
        shapes = [(name, (COUNT,)) for name in (source, "f64")]
        yield Pair(module.widen, f"{source}[:], f64[:]", edges(*shapes))


# --- every narrow float ---------------------------------------------------------------------------

NARROW = {"f16": 16, "bf16": 16, "f8e4m3": 8, "f8e5m2": 8}
NARROW_FLOATS = """
import tack

@tack.kernel
def widened(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]

@tack.kernel
def rounded(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]

@tack.kernel
def kept(x, out):
    for i in range(x.shape[0]):
        value = tack.f32(x[i])
        out[i] = value
        out[i] = out[i] + value
"""


def every_bits(bits: int) -> Callable[[], list[np.ndarray[Any, Any]]]:
    """All values of a narrow float, as their bits, and as many zeros for f32."""
    words = np.dtype(f"u{bits // 8}")
    return lambda: [np.arange(1 << bits, dtype=words), np.zeros(1 << bits, np.float32)]


def every_rounding() -> np.ndarray[Any, Any]:
    """Singles that each narrow float rounds in every way that there is.

    Each sign and exponent, with the bits that decide between two neighbours and those beside.
    """
    leading = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    lower = [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x7FFF, 0x8000, 0x8001, 0xF000, 0xFFFF]
    return (leading[:, None] | np.array(lower, np.uint32)).ravel().view(np.float32)


def narrow_floats(module: ModuleType) -> Iterator[Pair]:
    for name, bits in NARROW.items():
        kind = numpy_dtype(name)
        yield Pair(
            module.widened,
            f"{name}[:], f32[:]",
            every_bits(bits),
            lambda memory, kind=kind: [memory[0].view(kind), memory[1]],
        )
        for kernel in (module.rounded, module.kept):
            yield Pair(
                kernel,
                f"f32[:], {name}[:]",
                lambda kind=kind: [every_rounding(), np.zeros(1 << 16, kind).repeat(12)],
            )


# --- elementary functions ------------------------------------------------------------------------

_OPERANDS = {1: "x[i]", 2: "x[i], y[i]"}
ELEMENTARY_FUNCTIONS = "import tack\n" + "".join(
    f"""
@tack.kernel
def of_{name}(x, y, out):
    for i in range(x.shape[0]):
        out[i] = tack.{name}({_OPERANDS[count]})
"""
    for name, count in ELEMENTARY.items()
)


def elementary(module: ModuleType) -> Iterator[Pair]:
    for dtype in ("f32", "f64", "f16"):
        arrays = edges(*((dtype, (COUNT,)),) * 3)
        for name in ELEMENTARY:
            kernel = getattr(module, f"of_{name}")
            yield Pair(kernel, f"{dtype}[:], {dtype}[:], {dtype}[:]", arrays)


# --- random numbers ------------------------------------------------------------------------------


def _drawn(function: str) -> str:
    generator, number, dtype = function.split(".")
    if number.startswith("word"):
        return f"tack.random.{generator}(x[i], y[i]).{'xyzw'[int(number[4:])]}"
    bounds = ", x[i], y[i]" if number == "randint" else ""
    typed = f", dtype=tack.{dtype}" if dtype == "f64" else ""
    return f'tack.random.{number}(x[i], y[i]{bounds}, generator="{generator}"{typed})'


RANDOM_NUMBERS = "import tack\n" + "".join(
    f"""
@tack.kernel
def {name.replace(".", "_")}(x, y, out):
    for i in range(x.shape[0]):
        out[i] = {_drawn(name)}
"""
    for name in RANDOM
)


def random_numbers(module: ModuleType) -> Iterator[Pair]:
    for name in RANDOM:
        kernel, dtype = getattr(module, name.replace(".", "_")), name.rpartition(".")[2]
        arrays = edges(("i64", (COUNT,)), ("i64", (COUNT,)), (dtype, (COUNT,)))
        yield Pair(kernel, f"i64[:], i64[:], {dtype}[:]", arrays)


# --- control flow --------------------------------------------------------------------------------

CONTROL = '''
import tack

LIMIT = tack.constant(40, tack.i64)

@tack.func
def collatz(n):
    """How many steps n is away from 1."""
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
        if steps == LIMIT:
            break
    return steps

@tack.func
def sign(value):
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0

@tack.kernel
def loops(x, out):
    for i in range(x.shape[0]):
        total = 0
        for j in range(i % 7):
            if j == 3:
                continue
            for k in range(10, j, -2):
                if k * j > x[i]:
                    break
                total += k
        last = -1
        for last in range(3, x.shape[0], 5):
            if x[last] > 100:
                break
        out[i] = total * 1000 + last + collatz(abs(x[i]) % 1000)

@tack.kernel
def leaving(x, out):
    for i in range(x.shape[0]):
        if x[i] > 50:
            continue
        while True:
            if x[i] < 0:
                out[i] = sign(x[i])
                break
            if x[i] == 0:
                out[i] = 7
            elif x[i] < 5:
                out[i] = 8
            else:
                out[i] = x[i] - 1
            break

@tack.kernel
def skipping(x, out):
    for i in range(x.shape[0]):
        left = x[i] % 20
        total = 0
        while left > 0:
            left -= 1
            if left % 3 == 0:
                continue
            total += left
        out[i] = total

@tack.kernel
def changing(x, step, out):
    for i in range(x.shape[0]):
        end = i % 5
        seen = 0
        for j in range(0, end + 3, step):
            end += 10
            seen = seen * 3 + j
            j = 100
        for j in range(out.shape[0]):
            out[i] = seen
            if j >= 1:
                break

@tack.kernel
def lazily(x, index, out):
    for i in range(out.shape[0]):
        at = index[i]
        inside = 0 <= at and at < x.shape[0] and x[at] > 0
        out[i] = x[at] if inside else -1
        if at < 0 or at >= x.shape[0] or x[at] == 0:
            out[i] -= 1

@tack.kernel
def weak(n, flag: tack.bool_, a: tack.u8, out):
    for i in range(out.shape[0]):
        value = 1
        if flag:
            value = n % 5
        other = flag and i > 2
        out[i] = value + a + (other or not flag)

@tack.kernel
def cube(x, out):
    for i, j, k in tack.ndrange(out.shape[0], out.shape[1], out.shape[2]):
        if (i + j + k) % 3 == 2:
            continue
        out[i, j, k] = x[k, j] * 10 + i

@tack.kernel
def plane(x, out):
    for i, j in tack.ndrange(out.shape[0] - 2, out.shape[1] - 2):
        out[i + 1, j + 1] = x[i, j + 1] + x[i + 2, j + 1] - x[i + 1, j] * x[i + 1, j + 2]

@tack.kernel
def sums(x, out):
    for i in range(out.shape[0]):
        out[i] = 0
        for j in range(x.shape[1]):
            out[i] += x[i, j]

@tack.kernel
def through(x, y, out):
    """Where out is x, what the second line adds is what the first one stored."""
    for i in range(out.shape[0]):
        out[i] = y[i] * 2
        out[i] += tack.i32(x[i])

@tack.kernel
def unordered(alpha, out):
    """A remainder by NaN, which LLVM once took for impossible (where x is 0, of x / x)."""
    for i in range(out.shape[0]):
        if alpha:
            out[i] = 1
        elif alpha % (alpha / alpha):
            out[i] = 2
        else:
            out[i] = 3

@tack.kernel
def in_place(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * x[i]

@tack.kernel
def äther(λ, int, args):
    for i in range(int.shape[0]):
        begin = λ * 2
        int[i] = begin + args
'''


def control(module: ModuleType) -> Iterator[Pair]:
    small = ("i64", (COUNT,))
    yield Pair(module.loops, "i64[:], i64[:]", edges(small, small))
    yield Pair(module.leaving, "i64[:], i64[:]", edges(small, small))
    yield Pair(module.skipping, "i64[:], i64[:]", edges(small, small))
    for step in (1, 3, -1, 0):
        yield Pair(
            module.changing,
            "i64[:], i64, i64[:]",
            edges(small, small),
            lambda memory, step=step: [memory[0], step, memory[1]],
        )
    yield Pair(
        module.lazily,
        "f64[:], i64[:], f64[:]",
        edges(("f64", (9,)), ("i64", (64,)), ("f64", (64,))),
    )
    for flag in (False, True):
        yield Pair(
            module.weak,
            "i64, bool, u8, i16[:]",
            edges(("i16", (9,))),
            lambda memory, flag=flag: [12, flag, 250, memory[0]],
        )
    yield Pair(module.cube, "i32[:, :], i32[:, :, :]", edges(("i32", (40, 7)), ("i32", (5, 7, 40))))
    for dtype in ("f32", "f64", "u8"):
        plane = (dtype, (17, 83))
        yield Pair(module.plane, f"{dtype}[:, :], {dtype}[:, :]", edges(plane, plane))
    for pair in (("f32", "f32"), ("f32", "f64"), ("i8", "i64"), ("u16", "u16")):
        arrays = (pair[0], (5, 300)), (pair[1], (5,))
        yield Pair(module.sums, f"{pair[0]}[:, :], {pair[1]}[:]", edges(*arrays))
    for alpha in (0.0, -0.0, 1.5, float("nan")):
        yield Pair(
            module.unordered,
            "f32, i64[:]",
            edges(small),
            lambda memory, alpha=alpha: [alpha, memory[0]],
        )
    for dtype in ("f32", "i32"):
        yield Pair(module.in_place, f"{dtype}[:]", edges((dtype, (COUNT,))))
    yield Pair(
        module.äther,
        "i64, i64[:], i64",
        edges(("i64", (9,))),
        lambda memory: [3, memory[0], 1],
    )


def overlapping(module: ModuleType) -> Iterator[Pair]:
    """One array for two parameters, under one type and under another."""
    arrays = edges(("i32", (COUNT,)), ("i32", (COUNT,)))
    yield Pair(
        module.through, "i32[:], i32[:], i32[:]", arrays, lambda memory: [*memory, memory[0]]
    )
    yield Pair(
        module.through,
        "f32[:], i32[:], i32[:]",
        arrays,
        lambda memory: [memory[0].view(np.float32), memory[1], memory[0]],
    )
    yield Pair(
        module.sums,
        "i16[:, :], i16[:]",
        edges(("i16", (1, COUNT))),
        lambda memory: [memory[0], memory[0][0, :1]],
    )


CORPUS: dict[str, tuple[str, Callable[[ModuleType], Iterator[Pair]]]] = {
    "arithmetic": (ARITHMETIC, arithmetic),
    "conversions": (CONVERSION, conversions),
    "narrow floats": (NARROW_FLOATS, narrow_floats),
    "elementary": (ELEMENTARY_FUNCTIONS, elementary),
    "random": (RANDOM_NUMBERS, random_numbers),
    "control": (CONTROL, control),
    "overlapping": (CONTROL, overlapping),
}
"""Name -> the text of a module, and its pairs."""
