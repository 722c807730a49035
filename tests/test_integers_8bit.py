"""Every operation on every pair of 8-bit integers, by C and LLVM, against Python integers."""

from __future__ import annotations

import functools
import itertools
import operator
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generator import load_module
from harness import Unit, levels, run_kernel, source_of
from twins import toolchains

from tack.compile import assemble, generate
from tack.model.targets import Target
from tack.render.renderer import renderer_for
from tack.render.source import Source

Number = Any
RANGES = {"i8": range(-128, 128), "u8": range(256)}
BITS = {f"{kind}{bits}": bits for kind in "iu" for bits in (8, 16, 32, 64)}
PAIRS = [("i8", "i8"), ("u8", "u8"), ("i8", "u8"), ("u8", "i8")]
LITERALS = [-129, -128, -9, -2, -1, 0, 1, 2, 3, 7, 8, 10, 100, 127, 128, 255, 256, 300]


def wrap(value: int, dtype: str) -> int:
    """`value` modulo 2^N."""
    value %= 1 << BITS[dtype]
    return value - (1 << BITS[dtype]) if dtype[0] == "i" and value >> (BITS[dtype] - 1) else value


def wider(a: str, b: str) -> str:
    """The type of an operation on two 8-bit integers."""
    return a if a == b else "i16"


def met(dtype: str, literal: int) -> str:
    """The type of an operation on an 8-bit integer and a literal."""
    return dtype if literal in RANGES[dtype] else "i64"


def clamped(a: str, b: str, low: int, high: int) -> str:
    """The type of a sum of two clamps with literals, of which one may be negative."""
    t = wider(a, b)
    return "i64" if t == "u8" and min(low, high) < 0 else t


def power(base: int, exponent: int, dtype: str) -> int:
    if exponent < 0:
        return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
    return pow(base, exponent, 1 << BITS[dtype])


@functools.cache
def single(value: int) -> float:
    """An integer as f32."""
    return float(np.float32(value))


def quotient(a: int, b: int) -> float:
    """The f32 nearest to a / b. A double's rounding first changes nothing at these sizes."""
    if b == 0:
        return float("nan") if a == 0 else float("inf") if a > 0 else float("-inf")
    return struct.unpack("f", struct.pack("f", a / b))[0]


PROMOTING: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
COMPARING: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
KEEPING: dict[str, Callable[[int, int, str], int]] = {
    "<<": lambda a, b, t: a << (b % BITS[t]),
    ">>": lambda a, b, t: a >> (b % BITS[t]),
    "**": power,
}


@dataclass(frozen=True)
class Operation:
    """An expression over x[i] and y[i], and what Python says it gives.

    Integers are stored into i64, so that their own width shows.
    """

    text: str
    types: tuple[str, str]
    result: Callable[[int, int], Number]
    out: str = "int64"
    unary: bool = False

    @property
    def values(self) -> list[tuple[int, int]]:
        a, b = (RANGES[each] for each in self.types)
        return [(x, 0) for x in a] if self.unary else list(itertools.product(a, b))

    def expected(self) -> np.ndarray[Any, Any]:
        return np.array([self.result(x, y) for x, y in self.values], self.out)


def promoting(op: str, t: str) -> Callable[[int, int], int]:
    return lambda a, b: wrap(PROMOTING[op](a, b), t)


def keeping(op: str, t: str) -> Callable[[int, int], int]:
    return lambda a, b: wrap(KEEPING[op](a, b, t), t)


def binary(a: str, b: str) -> Iterator[Operation]:
    """x[i] op y[i]."""
    t = wider(a, b)
    for op in PROMOTING:
        yield Operation(f"x[i] {op} y[i]", (a, b), promoting(op, t))
    for op in KEEPING:
        yield Operation(f"x[i] {op} y[i]", (a, b), keeping(op, a))
    for op, compare in COMPARING.items():
        yield Operation(f"x[i] {op} y[i]", (a, b), compare)
    for name, pick in (("min", min), ("max", max)):
        yield Operation(f"{name}(x[i], y[i])", (a, b), pick)
    yield Operation("tack.step(x[i], y[i])", (a, b), lambda x, y: int(y >= x))
    for low, high in ((-5, 90), (90, -5)):
        yield Operation(
            f"tack.clamp(x[i], y[i], {high}) + tack.clamp({low}, x[i], y[i])",
            (a, b),
            lambda x, y, low=low, high=high: wrap(
                min(max(x, y), high) + min(max(low, x), y), clamped(a, b, low, high)
            ),
        )
    yield Operation("x[i] / y[i]", (a, b), quotient, "float32")
    yield Operation("x[i] and y[i]", (a, b), lambda x, y: bool(x and y))
    yield Operation("x[i] or y[i]", (a, b), lambda x, y: bool(x or y))
    yield Operation("x[i] if x[i] > y[i] else y[i]", (a, b), max)


def unary(t: str) -> Iterator[Operation]:
    """Operations and casts of x[i]."""
    exact: dict[str, Callable[[int], int]] = {
        "-x[i]": operator.neg,
        "+x[i]": operator.pos,
        "~x[i]": operator.invert,
        "abs(x[i])": abs,
        "tack.floor(x[i])": operator.pos,
        "round(x[i])": operator.pos,
        "tack.sign(x[i])": lambda x: (x > 0) - (x < 0),
        "tack.popcount(x[i])": lambda x: (x & 255).bit_count(),
        "tack.clz(x[i])": lambda x: 8 - (x & 255).bit_length(),
        "tack.ctz(x[i])": lambda x: f"{x & 255:08b}"[::-1].index("1") if x else 8,
        "tack.popcount(tack.u64(x[i]))": lambda x: (x & (2**64 - 1)).bit_count(),
        "tack.clz(int(x[i]))": lambda x: 64 - (x & (2**64 - 1)).bit_length(),
        "tack.ctz(tack.i32(x[i]))": lambda x: (x & -x).bit_length() - 1 if x else 32,
    }
    for text, function in exact.items():
        yield Operation(text, (t, t), lambda x, _, f=function: wrap(f(x), t), unary=True)
    yield Operation("not x[i]", (t, t), lambda x, _: not x, unary=True)
    yield Operation("int(x[i])", (t, t), lambda x, _: x, unary=True)
    yield Operation("tack.bool_(x[i])", (t, t), lambda x, _: x != 0, unary=True)
    for name in ("float", "tack.f32", "tack.f64"):
        yield Operation(f"{name}(x[i])", (t, t), lambda x, _: x, "float64", unary=True)
    for name in BITS:
        yield Operation(
            f"tack.{name}(x[i])",
            (t, t),
            lambda x, _, name=name: wrap(wrap(x, name), "i64"),
            unary=True,
        )
        # A float of every value, which saturates; below 0 and past 127 for one type or another.
        yield Operation(
            f"tack.{name}(x[i] * 1.5)",
            (t, t),
            lambda x, _, name=name: wrap(saturated(x * 3 / 2, name), "i64"),
            unary=True,
        )


def saturated(value: float, dtype: str) -> int:
    unsigned = dtype[0] == "u"
    low = 0 if unsigned else -(1 << (BITS[dtype] - 1))
    return min(max(int(value), low), low + (1 << BITS[dtype]) - 1)


def with_literals(t: str) -> Iterator[Operation]:
    """x[i] op literal, and literal op x[i]."""
    for literal in LITERALS:
        for op, function in PROMOTING.items():
            yield Operation(
                f"x[i] {op} ({literal})",
                (t, t),
                lambda x, _, f=function, c=literal: wrap(f(x, c), met(t, c)),
                unary=True,
            )
            yield Operation(
                f"({literal}) {op} x[i]",
                (t, t),
                lambda x, _, f=function, c=literal: wrap(f(c, x), met(t, c)),
                unary=True,
            )
        for op, keep in KEEPING.items():
            if op != "**" or literal >= 0:
                yield Operation(
                    f"x[i] {op} ({literal})",
                    (t, t),
                    lambda x, _, f=keep, c=literal: wrap(f(x, c, t), t),
                    unary=True,
                )
            yield Operation(
                f"({literal}) {op} x[i]",
                (t, t),
                lambda x, _, f=keep, c=literal: wrap(f(c, x, "i64"), "i64"),
                unary=True,
            )
        for op, compare in COMPARING.items():
            yield Operation(
                f"x[i] {op} ({literal})",
                (t, t),
                lambda x, _, f=compare, c=literal: f(x, c),
                unary=True,
            )


CASES = {
    **{f"{a} and {b}": list(binary(a, b)) for a, b in PAIRS},
    **{f"{t} alone": list(unary(t)) for t in RANGES},
    **{f"{t} and literals": list(with_literals(t)) for t in RANGES},
}


_TOGETHER = 16
"""Expressions in one kernel: compiling hundreds of kernels would take the longest."""


def kernels_of(operations: list[Operation]) -> list[list[Operation]]:
    """Operations that one kernel can do, each into a column of its own."""
    groups: list[list[Operation]] = []
    for _, alike in itertools.groupby(operations, lambda each: (each.types, each.out, each.unary)):
        together = list(alike)
        groups += [together[at : at + _TOGETHER] for at in range(0, len(together), _TOGETHER)]
    return groups


def module_text(groups: list[list[Operation]]) -> str:
    lines = ["import tack", ""]
    for number, group in enumerate(groups):
        lines += ["@tack.kernel", f"def kernel_{number}(x, y, out):"]
        lines += ["    for i in range(out.shape[0]):"]
        lines += [f"        out[i, {at}] = {each.text}" for at, each in enumerate(group)]
    return "\n".join(lines) + "\n"


def arguments_of(group: list[Operation]) -> list[np.ndarray[Any, Any]]:
    values = group[0].values
    columns = [
        np.array(column, {"i8": np.int8, "u8": np.uint8}[each])
        for column, each in zip(zip(*values, strict=True), group[0].types, strict=True)
    ]
    return [*columns, np.zeros((len(values), len(group)), group[0].out)]


class ByLlvm:
    """The variants of sources in C, compiled by LLVM for the highest level."""

    def __init__(self, sources: list[Source]) -> None:
        target, (_, llvm) = Target("cpu", levels()[-1]), toolchains()
        renderer = renderer_for(target, "llvm")
        self.sources = {each: generate(each.variant, renderer) for each in sources}
        text = assemble("llvm", list(self.sources.values()), renderer)
        self.library = llvm.load(llvm.compile(text, target))

    def run(self, kernel: Any, source: Source, arguments: list[np.ndarray[Any, Any]]) -> None:
        """Runs the variant of a source."""
        run_kernel(kernel, self.sources[source], self.library, arguments, noalias=True)


@pytest.mark.parametrize("name", list(CASES))
def test_every_operation_on_8_bits(name: str, tmp_path: Path) -> None:
    groups = kernels_of(CASES[name])
    module = load_module(module_text(groups), tmp_path)
    kernels = [getattr(module, f"kernel_{number}") for number in range(len(groups))]
    sources = [
        source_of(kernel, arguments_of(group))
        for kernel, group in zip(kernels, groups, strict=True)
    ]
    unit, llvm = Unit(sources, tmp_path / "unit"), ByLlvm(sources)
    wrong: list[str] = []
    for kernel, source, group in zip(kernels, sources, groups, strict=True):
        expected = [each.expected() for each in group]
        for level in (*levels(), "LLVM"):
            arguments = arguments_of(group)
            if level == "LLVM":
                llvm.run(kernel, source, arguments)
            else:
                unit.run(kernel, source, arguments, level, noalias=True)
            for at, operation in enumerate(group):
                found = np.ascontiguousarray(arguments[-1][:, at])
                differ = np.flatnonzero(~_same(found, expected[at]))
                if differ.size:
                    place = int(differ[0])
                    wrong.append(
                        f"{operation.text} of {operation.types} at {operation.values[place]}, "
                        f"{level}: {found[place]}, not {expected[at][place]} ({differ.size} differ)"
                    )
    assert not wrong, "\n".join(wrong)


def _same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    bits = np.dtype(f"u{one.itemsize}")
    equal = one.view(bits) == other.view(bits)
    return equal | (np.isnan(one) & np.isnan(other)) if one.dtype.kind == "f" else equal
