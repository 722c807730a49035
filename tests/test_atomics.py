"""Atomics: the old element, in one step, for every operation and type, in C and in LLVM."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from textwrap import dedent
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module
from harness import differences, levels
from twins import Pair, Twins

import tack
from tack.compile import generate
from tack.errors import CompileError
from tack.ir.operations import ATOMIC_DTYPES, ATOMIC_OPS
from tack.model.dtypes import DTYPES, numpy_name
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

Load = Callable[[str], ModuleType]

OPERATIONS = "".join(
    f"""
@tack.kernel
def do_{op}(x, y, old):
    for i in range(y.shape[0]):
        old[i] = tack.atomic_{op}(x, i, y[i])
"""
    for op in ATOMIC_OPS
    if op != "cas"
)

TEXT = f"""
import tack
{OPERATIONS}
@tack.kernel
def do_cas(x, y, old):
    for i in range(y.shape[0]):
        old[i] = tack.atomic_cas(x, i, y[i], y[i // 2])

@tack.kernel
def histogram(x, counts):
    for i in range(x.shape[0]):
        tack.atomic_add(counts, x[i], 1)

@tack.kernel
def extremes(x, least, greatest):
    for i in range(x.shape[0]):
        tack.atomic_min(least, 0, x[i])
        tack.atomic_max(greatest, (0, 1), x[i])

@tack.kernel
def total(x, sums):
    for i in range(x.shape[0]):
        tack.atomic_add(sums, 0, x[i])

@tack.kernel
def orders(x, out):
    for i in range(1):
        out[0] = x[0] * 10 + tack.atomic_add(x, 0, 1) + x[0]
        x[1] += tack.atomic_add(x, 1, 5)
        tack.atomic_add(x, tack.atomic_add(x, 2, 1), tack.atomic_exchange(x, 2, 7))
        out[1] = x[2]
        if x[0] > 100 and tack.atomic_add(x, 3, 1) >= 0:
            out[2] = 1
        rounds = 0
        while tack.atomic_add(x, 4, 1) < 9:
            rounds += 1
        out[3] = rounds
        out[4] = tack.atomic_add(x, 5, 1) if i else tack.atomic_sub(x, 5, 1)
        a, b = tack.atomic_exchange(x, 6, 8), tack.atomic_exchange(x, 6, 9)
        out[5] = a * 100 + b
        for k in range(3):
            old = tack.atomic_add(x, 7, k)
            out[6 + k] = old

@tack.func
def take(tickets, amount=1):
    return tack.atomic_add(tickets, 0, amount)

@tack.kernel
def tickets(x, out):
    for i in range(out.shape[0]):
        out[i] = take(x) + take(x, amount=i)

@tack.kernel
def aliased(x, y, out):
    for i in range(1):
        x[0] = 5
        tack.atomic_add(y, 0, 2)
        out[0] = x[0]
        out[1] = tack.atomic_cas(x, 0, 7, 1) + y[0]
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(TEXT, tmp_path_factory.mktemp("atomics"))


@pytest.fixture
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    return lambda text: load_module(dedent(text), tmp_path_factory.mktemp("atomic"))


def numbers(dtype: str) -> list[Any]:
    if DTYPES[dtype].is_bool:
        return [False, True]
    if DTYPES[dtype].is_float:
        few = [0.0, 1.5, 1e30, 5e-324, math.inf, math.nan, 60000.0, 2.0**-24, 1e-40, 3.0]
        return [*few, *(-each for each in few)]
    edges = (DTYPES[dtype].minimum, DTYPES[dtype].maximum)
    return sorted({*edges, *(n for n in range(-3, 4) if DTYPES[dtype].holds(n)), 100})


@pytest.mark.parametrize(
    "dtype", sorted({each for all_ in ATOMIC_DTYPES.values() for each in all_})
)
def test_every_operation_gives_the_old_element_and_sets_the_new(
    module: ModuleType, dtype: str
) -> None:
    kind = np.dtype(numpy_name(DTYPES[dtype]))
    pairs = list(itertools.product(numbers(dtype), repeat=2))
    with np.errstate(all="ignore"):
        x, y = (np.array(column).astype(kind) for column in zip(*pairs, strict=True))
    for op in ATOMIC_OPS:
        if dtype not in ATOMIC_DTYPES[op]:
            continue
        kernel = getattr(module, f"do_{op}")
        expected = [x.copy(), np.zeros_like(x)]
        oracle.run(kernel, [expected[0], y, expected[1]])
        signature = ", ".join([f"{dtype}[:]"] * 3)
        pair = Pair(
            kernel,
            signature,
            lambda: [x.copy(), np.zeros_like(x)],
            lambda memory: [memory[0], y, memory[1]],
        )
        for way, found in Twins([pair], levels()[-1:]).runs(0):
            assert not differences(expected, found), f"{op} {way}"
        plain = [x.copy(), np.zeros_like(x)]
        with np.errstate(all="ignore"):
            kernel.py_func(plain[0], y, plain[1])
        assert not differences(expected, plain), f"{op} in plain Python"


def test_order_of_evaluation(module: ModuleType) -> None:
    expected = [np.array([3, 1, 4, 0, 0, 9, 2, 6], np.int64), np.zeros(9, np.int64)]
    oracle.run(module.orders, expected)
    assert expected[1].tolist() == [37, 7, 0, 4, 9, 208, 6, 6, 7]
    start = np.array([3, 1, 4, 0, 0, 9, 2, 6], np.int64)
    pair = Pair(module.orders, "i64[:], i64[:]", lambda: [start.copy(), np.zeros(9, np.int64)])
    for way, found in Twins([pair], levels()).runs(0):
        assert not differences(expected, found), way


def test_through_device_functions(module: ModuleType) -> None:
    x, out = np.zeros(1, np.uint32), np.zeros(50, np.uint32)
    expected = [x.copy(), out.copy()]
    oracle.run(module.tickets, expected)
    module.tickets(x, out)
    assert not differences(expected, [x, out])


def test_an_atomic_writes_what_an_alias_sees(module: ModuleType) -> None:
    x, out = np.zeros(2, np.int32), np.zeros(2, np.int64)
    module.aliased(x, x, out)
    assert out.tolist() == [7, 8]
    assert x[0] == 1


def test_an_array_of_atomics_alone_is_written(module: ModuleType) -> None:
    counts = np.zeros(3, np.int32)
    counts.flags.writeable = False
    with pytest.raises(ValueError, match="counts"):
        module.histogram(np.zeros(1, np.uint8), counts)
    assert not counts.any()


def test_threads_at_once_lose_nothing(module: ModuleType) -> None:
    """Kernels of this size run without the GIL."""
    x = np.random.default_rng(2).integers(0, 16, 300_000).astype(np.uint8)
    counts, sums = np.zeros(16, np.uint64), np.zeros(1, np.float64)
    least, greatest = np.full(1, 99, np.uint8), np.zeros((1, 2), np.uint8)
    wide = x.astype(np.float64)

    def work() -> None:
        for _ in range(4):
            module.histogram(x, counts)
            module.total(wide, sums)
            module.extremes(x, least, greatest)

    work()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert counts.tolist() == [16 * int(n) for n in np.bincount(x, minlength=16)]
    assert sums[0] == 16 * wide.sum()  # whole numbers: exact in any order
    assert least[0] == x.min()
    assert greatest[0, 1] == x.max()


LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, 1::-1],
    "contiguous": lambda x: x,
}

PLACES = """
@tack.kernel
def at_indices(x, y, old):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        old[i, j] = tack.atomic_add(x, (i, j), y[0])
        tack.atomic_max(x, (0, j), y[1])

@tack.kernel
def at_flat(x, y, old):
    for i in range(x.size):
        old.flat[i] = tack.atomic_sub(x.flat, i, y[0])
        tack.atomic_min(x.flat, 1, y[1])

@tack.kernel
def without_dimensions(x, y, old):
    for i in range(3):
        tack.atomic_add(x, (), y[i % 2])
        old[()] = tack.atomic_exchange(x, (), y[0])

@tack.kernel
def components(x: tack.Array[tack.{dtype}x2], y, old):
    for i in range(x.shape[0]):
        for k in range(2):
            old[i, k] = tack.atomic_add(x, (i, k), y[k])
        tack.atomic_sub(x, (0, 1), y[0])
"""


@pytest.mark.parametrize("dtype", ["bf16", "i16", "f32"])
@pytest.mark.parametrize("name", ["at_indices", "at_flat", "components"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_of_any_layout_flat_and_of_vectors(
    load: Load, dtype: str, name: str, layout: str
) -> None:
    module = load("import tack\n" + PLACES.replace("{dtype}", dtype))
    kernel, kind = getattr(module, name), np.dtype(numpy_name(DTYPES[dtype]))
    y = np.array([3, 20]).astype(kind)

    def memory() -> list[np.ndarray[Any, Any]]:
        x = np.arange(4 if layout == "transposed" else 8).astype(kind)
        x = x.reshape((-1, 2) if layout == "contiguous" else (2, -1))
        return [x, np.zeros(LAYOUTS[layout](x).shape, kind)]

    def bind(memory: list[np.ndarray[Any, Any]]) -> list[Any]:
        return [LAYOUTS[layout](memory[0]), y, memory[1]]

    expected = memory()
    oracle.run(kernel, bind(expected))
    element = f"{dtype}x2[:" if name == "components" else f"{dtype}[:, :"
    strided = "" if layout == "contiguous" else "; strided"
    pair = Pair(kernel, f"{element}{strided}], {dtype}[:], {dtype}[:, :]", memory, bind)
    for way, found in Twins([pair], levels()[-1:]).runs(0):
        assert not differences(expected, found), way
    plain = memory()
    kernel.py_func(*bind(plain))
    assert not differences(expected, plain), "in plain Python"


def test_an_element_of_an_array_without_dimensions(load: Load) -> None:
    kernel = load("import tack\n" + PLACES.replace("{dtype}", "i64")).without_dimensions
    x, y, old = np.array(5), np.array([1, 2]), np.array(0)
    expected = [x.copy(), old.copy()]
    oracle.run(kernel, [expected[0], y, expected[1]])
    kernel(x, y, old)
    assert not differences(expected, [x, old])


def test_an_unaligned_array_is_refused_at_the_call(load: Load) -> None:
    kernel = load("import tack\n" + PLACES.replace("{dtype}", "f32")).at_indices
    odd = np.zeros(4 * 6 + 1, np.uint8)[1:].view(np.float32).reshape(2, 3)
    y, old = np.ones(2, np.float32), np.zeros((2, 3), np.float32)
    for _ in range(2):
        with pytest.raises(
            ValueError, match="array 'x' is unaligned, and its elements are changed"
        ):
            kernel(odd, y, old)
        assert not odd.any()
        kernel(np.asfortranarray(odd), y, old)


def test_threads_at_once_lose_nothing_of_short_elements(load: Load) -> None:
    module = load("import tack\n" + TEXT)
    ones = np.ones(200_000, np.float16)
    sums, flags = np.zeros(1, np.float16), np.zeros(1, bool)
    count = np.zeros(2, np.int64)
    kernel = load("""
        import tack

        @tack.kernel
        def flip(flags, x, count):
            for i in range(x.shape[0]):
                if tack.atomic_xor(flags, 0, True):
                    tack.atomic_add(count, 0, 1)
                else:
                    tack.atomic_add(count, 1, 1)
    """).flip

    def work() -> None:
        module.total(ones[:500], sums)
        kernel(flags, ones, count)

    work()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sums[0] == 2000  # f16 has all integers up to 2048
    assert count.tolist() == [400_000, 400_000]


def test_cas_takes_any_nan_of_16_bits_and_any_true_byte(load: Load) -> None:
    module = load(TEXT)
    x = np.array([0x7E01, 0xFE00, 0x3C00], np.uint16).view(np.float16)
    expected = x.copy()
    y, old = np.array([np.nan, np.nan, np.nan], np.float16), np.zeros(3, np.float16)
    module.do_cas(x, y, old)
    oracle.run(module.do_cas, [expected, y, old.copy()])
    assert not differences([expected], [x])
    flags = np.array([2, 0, 255], np.uint8).view(bool)
    module.do_cas(flags, np.array([True, True, True]), np.zeros(3, bool))
    assert flags.view(np.uint8).tolist() == [1, 0, 1]
    module.do_xor(flags, np.array([True, True, False]), np.zeros(3, bool))
    assert flags.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("call", "dtype", "words"),
    [
        ("tack.atomic_add(x, i, True)", "bool", "tack.atomic_add has no bool elements; it has i8,"),
        ("tack.atomic_xor(x, i, 1)", "f64", "has no f64 elements; it has bool, i8, i16, i32, i64"),
        ("tack.atomic_add(x, i, 0.5)", "i32", "an element of x is i32 and this is a float literal"),
        ("tack.atomic_add(x, 0.5, 1)", "i32", "an index of x is an integer"),
        ("tack.atomic_add(x, i, value=1)", "i32", "none by keyword"),
    ],
)
def test_what_an_atomic_has_not_is_refused(load: Load, call: str, dtype: str, words: str) -> None:
    kernel = load(
        f"""
        import tack

        @tack.kernel
        def kernel(x):
            for i in range(x.shape[0]):
                {call}
        """
    ).kernel
    target = Target("cpu", "x86-64-v2")
    variant = Variant(kernel.definition, Signature.parse(f"{dtype}[:]"), target)
    with pytest.raises(CompileError) as error:
        generate(variant, renderer_for(target))
    assert words in str(error.value)
    with pytest.raises(oracle.OracleRefused):
        oracle.check(kernel, [np.zeros(1, numpy_name(DTYPES[dtype]))])


@pytest.mark.parametrize(
    "text",
    [
        "n = tack.atomic_add(x, 0, 1)\n    for i in range(n):\n        x[i] = 1",
        "for i in range(tack.atomic_add(x, 0, 1)):\n        x[i] = 1",
    ],
)
def test_the_host_runs_no_atomics(load: Load, text: str) -> None:
    kernel = load(f"import tack\n\n@tack.kernel\ndef kernel(x):\n    {text}\n").kernel
    target = Target("cpu", "x86-64-v2")
    with pytest.raises(CompileError, match="the host computes"):
        generate(
            Variant(kernel.definition, Signature.parse("i32[:]"), target), renderer_for(target)
        )


def test_every_atomic_of_the_language_is_there() -> None:
    assert {f"atomic_{op}" for op in ATOMIC_OPS} <= set(tack.__all__)
