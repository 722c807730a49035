"""64-bit integers computed in words of 32 bits have the values of Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module
from harness import differences, levels, run_kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import toolchains

from tack.compile import assemble, generate, prepared
from tack.ir import nodes as ir
from tack.ir.operations import EMULATED
from tack.ir.traversal import kernel_loop, walk_ir
from tack.model.dtypes import DTYPES, NARROW, i64, u64
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

TARGET = Target("cpu", levels()[-1])
WITHOUT = frozenset(EMULATED) - {"wide integers"}
WIDE = ("i64", "u64")

OPERATIONS = (
    *("a + b", "a - b", "a * b", "a // b", "a % b", "a << b", "a >> b", "a & b", "a | b", "a ^ b"),
    *("~a", "-a", "abs(a)", "min(a, b)", "max(a, b)", "a << 1", "a << 32", "a << 45", "a >> 31"),
    *("a >> 32", "a >> 63", "a // 7", "a % 10000000000", "a * 12345678901", "a ** 3"),
    *("tack.popcount(a)", "tack.clz(a)", "tack.ctz(a)", "tack.sign(a)", "a if a < b else b + 1"),
    "(a < b) + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8 + (a > b) * 16 + (a >= b) * 32",
    "a // b if b > 1000 and a % b > 5 else b // (a | 1)",
)

_STORES = "\n".join(f"        out[{row}, i] = {op}" for row, op in enumerate(OPERATIONS))
_NARROW = [name for name in DTYPES if name not in ("bool", *NARROW)]
_CASTS = "\n".join(f"        to_{name}[i] = tack.{name}(x[i])" for name in _NARROW)

TEXT = f"""
import tack

@tack.kernel
def operations(x, y, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
{_STORES}

@tack.kernel
def away(x, {", ".join(f"to_{name}" for name in _NARROW)}, truth):
    for i in range(x.shape[0]):
{_CASTS}
        truth[i] = bool(x[i])

@tack.kernel
def towards(x, signed, natural):
    for i in range(x.shape[0]):
        signed[i] = tack.i64(x[i])
        natural[i] = tack.u64(x[i])

@tack.kernel
def narrow(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * 3 + x[i]

@tack.kernel
def swapped(x, out):
    for i in range(x.shape[0]):
        a = x[i]
        b = a + 1
        for k in range(i % 5):
            a, b = b, a * 3 + k
            if a > 1000:
                continue
            b = b - a
        out[i] = a - b
"""


def numpy_dtype(name: str) -> np.dtype[Any]:
    if name == "bool":
        return np.dtype(bool)
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


def edges(name: str) -> list[int]:
    dtype = DTYPES[name]
    near = [0, *(1 << k for k in range(0, 64, 5)), 1 << 31, 1 << 32, 1 << 63, 0x00000001FFFFFFFF]
    near += [3, 10, 0x8000000080000000, 0xFFFFFFFF00000000, 0xDEADBEEFCAFEBABE, 0x7FFFFFFF80000000]
    return sorted({dtype.wrap(each + off) for each in near for off in (-1, 0, 1)})


def dense(name: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Numbers of every length."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 64, count, np.uint64)
    return (bits >> random.integers(0, 64, count, np.uint64)).view(numpy_dtype(name))


class Compiled:
    """A kernel at a signature, without 64-bit arithmetic, by C and by LLVM."""

    def __init__(self, kernel: Any, signature: str) -> None:
        self.kernel = kernel
        variant = Variant(kernel.definition, Signature.parse(signature), TARGET)
        self.ways = []
        for tool in toolchains():
            renderer = replace(renderer_for(TARGET, tool.dialect), supported_ops=WITHOUT)
            source = generate(variant, renderer)
            text = assemble("wide", [source], renderer)
            self.ways.append((tool.dialect, source, tool.load(tool.compile(text, TARGET))))

    def agrees(self, inputs: list[Any], outputs: list[Any], exact: Callable[..., None]) -> None:
        expected = [each.copy() for each in outputs]
        exact([*inputs, *expected])
        for dialect, source, library in self.ways:
            found = [each.copy() for each in outputs]
            run_kernel(self.kernel, source, library, [*inputs, *found], noalias=False)
            assert not differences(expected, found), dialect


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(TEXT, tmp_path_factory.mktemp("wide"))


@pytest.fixture(scope="module")
def operations(module: ModuleType) -> dict[str, Compiled]:
    return {
        name: Compiled(module.operations, f"{name}[:], {name}[:], {name}[:, :]") for name in WIDE
    }


def by_oracle(kernel: Any) -> Callable[..., None]:
    return lambda arguments: oracle.run(kernel, arguments)


@pytest.mark.parametrize("name", WIDE)
def test_operations_at_the_edges(name: str, operations: dict[str, Compiled]) -> None:
    compiled, values = operations[name], edges(name)
    pairs = np.array(list(itertools.product(values, values[::3])), numpy_dtype(name))
    inputs = [np.ascontiguousarray(column) for column in pairs.T]
    outputs = [np.zeros((len(OPERATIONS), len(pairs)), numpy_dtype(name))]
    compiled.agrees(inputs, outputs, by_oracle(compiled.kernel))


@pytest.mark.parametrize("name", WIDE)
@settings(max_examples=25)
@given(data=st.data())
def test_operations_of_any_numbers(
    name: str, operations: dict[str, Compiled], data: st.DataObject
) -> None:
    compiled, dtype = operations[name], DTYPES[name]
    numbers = st.lists(st.integers(dtype.minimum, dtype.maximum), min_size=8, max_size=8)
    inputs = [np.array(data.draw(numbers), numpy_dtype(name)) for _ in range(2)]
    outputs = [np.zeros((len(OPERATIONS), 8), numpy_dtype(name))]
    compiled.agrees(inputs, outputs, by_oracle(compiled.kernel))


@pytest.mark.parametrize("name", WIDE)
def test_operations_of_a_hundred_thousand_numbers(name: str, module: ModuleType) -> None:
    """Against the same kernel in 64-bit arithmetic, which other tests hold to Python's integers."""
    signature = f"{name}[:], {name}[:], {name}[:, :]"
    compiled = Compiled(module.operations, signature)
    inputs = [dense(name, 100_000, seed) for seed in (1, 2)]
    outputs = [np.zeros((len(OPERATIONS), 100_000), numpy_dtype(name))]
    compiled.agrees(inputs, outputs, lambda arguments: module.operations(*arguments))


@pytest.mark.parametrize("name", WIDE)
def test_conversions_to_every_type_round_once(name: str, module: ModuleType) -> None:
    outputs = [np.zeros(3000, numpy_dtype(each)) for each in (*_NARROW, "bool")]
    arrays = [name, *_NARROW, "bool"]
    compiled = Compiled(module.away, ", ".join(f"{each}[:]" for each in arrays))
    # Halfway between two floats of 24 and of 53 bits, and next to that.
    ties = [
        (odd << (length - bits - 1)) + off
        for bits in (24, 53)
        for length in range(bits + 1, 64)
        for odd in ((1 << bits) + 1, (1 << bits) + 3, (2 << bits) - 1)
        for off in (-1, 0, 1)
    ]
    values = [*edges(name), *(sign * each for each in ties for sign in (1, -1))]
    kept = [each for each in values if DTYPES[name].holds(each)]
    x = np.concatenate([np.array(kept, numpy_dtype(name)), dense(name, 3000, 5)])[:3000]
    compiled.agrees([x], outputs, by_oracle(module.away))


@pytest.mark.parametrize("source", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "f32", "f64"])
def test_conversions_from_every_type(source: str, module: ModuleType) -> None:
    dtype, kind = DTYPES[source], numpy_dtype(source)
    if dtype.is_float:
        powers = [2.0**k for k in (-1, 0, 1, 23, 24, 31, 32, 33, 52, 53, 62, 63, 64)]
        near = [0.0, 0.5, 1.5, 1e10, 1e19, np.inf, np.nan, *powers]
        around = [np.nextafter(kind.type(each), kind.type(to)) for each in near for to in (0, 1e30)]
        x = np.array([*near, *around, *np.random.default_rng(3).normal(0, 2.0**62, 500)], kind)
        x = np.concatenate([x, -x])
    else:
        values = {0, 1} if source == "bool" else {dtype.wrap(each) for each in edges("i64")}
        x = np.array(sorted(values)).astype(kind)
    compiled = Compiled(module.towards, f"{source}[:], i64[:], u64[:]")
    outputs = [np.zeros(len(x), numpy_dtype(name)) for name in WIDE]
    compiled.agrees([x], outputs, by_oracle(module.towards))


def test_locals_that_trade_places(module: ModuleType) -> None:
    compiled = Compiled(module.swapped, "i64[:], i64[:]")
    x = np.array(edges("i64"), np.int64)
    compiled.agrees([x], [np.zeros_like(x)], by_oracle(module.swapped))


@pytest.mark.parametrize("name", WIDE)
def test_what_has_64_bits_only_moves(name: str, module: ModuleType) -> None:
    signature = Signature.parse(f"{name}[:], {name}[:], {name}[:, :]")
    renderer = replace(renderer_for(TARGET), supported_ops=WITHOUT)
    function = prepared(Variant(module.operations.definition, signature, TARGET), renderer)
    moved = (ir.IRArrayLoad, ir.IRCast, ir.IRConstant, ir.IRDimSize, ir.IRName)
    for node in walk_ir(kernel_loop(function)):
        if not isinstance(node, ir.Expression) or node.dtype not in (i64, u64):
            assert not isinstance(node, ir.IRCompare) or node.left.dtype not in (i64, u64)
        elif isinstance(node, ir.IRBinOp):
            by_a_word = isinstance(node.right, ir.IRConstant) and node.right.value == 32
            assert node.op == "|" or (node.op in ("shl", "shr") and by_a_word)
        else:
            assert isinstance(node, moved)


def test_a_kernel_without_wide_integers_stays_as_it_is(module: ModuleType) -> None:
    variant = Variant(module.narrow.definition, Signature.parse("i32[:], i32[:]"), TARGET)
    texts = [
        generate(variant, replace(renderer_for(TARGET), supported_ops=each)).text
        for each in (WITHOUT, frozenset(EMULATED))
    ]
    assert texts[0] == texts[1]
