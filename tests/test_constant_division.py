"""Division by a constant without dividing: every divisor of 8 and 16 bits, at every quotient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generator import load_module
from harness import levels, run_kernel
from hypothesis import given
from hypothesis import strategies as st
from ir_building import binary, elementwise, lowered, name, prepared
from twins import toolchains

from tack.compile import assemble, generate
from tack.ir import nodes as ir
from tack.ir.operations import EMULATED
from tack.ir.traversal import walk_ir
from tack.model.dtypes import DTYPES, DType, i64, u64
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.passes.constant_division import divide_by_constant, multiplier
from tack.passes.emulate import emulate
from tack.render.renderer import renderer_for

TARGET = Target("cpu", levels()[-1])
WITHOUT = frozenset(EMULATED) - {"constant division"}
SMALL = [DTYPES[each] for each in ("i8", "u8", "i16", "u16")]
LARGE = [DTYPES[each] for each in ("i32", "u32", "i64", "u64")]


def kind(dtype: DType) -> np.dtype[Any]:
    return np.dtype(f"{'i' if dtype.is_signed else 'u'}{dtype.bits // 8}")


# Through NumPy, which computes the IR of `divide_by_constant` for many dividends at once.

_OPERATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}


class Values(ir.IRName):
    """A name that carries what it stands for."""

    __slots__ = ("array",)


def value_of(node: ir.Expression) -> Any:
    assert node.dtype is not None
    if isinstance(node, Values):
        return node.array
    if isinstance(node, ir.IRConstant):
        return kind(node.dtype).type(node.value)
    if isinstance(node, ir.IRCast):
        return value_of(node.value).astype(kind(node.dtype))
    assert isinstance(node, ir.IRBinOp)
    result = _OPERATE[node.op](value_of(node.left), value_of(node.right))
    assert result.dtype == kind(node.dtype)
    return result


def named(array: Any, dtype: DType) -> Values:
    held = Values("x", dtype)
    held.array = array
    return held


def hold(node: ir.Expression) -> ir.Expression:
    assert node.dtype is not None
    return node if isinstance(node, ir.IRConstant) else named(value_of(node), node.dtype)


def divided(op: str, a: Any, divisor: int, dtype: DType) -> Any:
    with np.errstate(over="ignore"):
        whole = (dtype.minimum, dtype.maximum)
        return value_of(divide_by_constant(op, named(a, dtype), divisor, whole, hold))


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def steps(divisor: int, dtype: DType) -> Any:
    """The dividends about which the quotient changes.

    It is a monotone function of the magnitude, so that it is right between them where it is at both
    ends.
    """
    size = abs(divisor)
    multiples = np.arange(0, max(-dtype.minimum, dtype.maximum) + 2, size)
    ends = np.concatenate([multiples - 1, multiples, [dtype.maximum]])
    both = np.concatenate([ends, -ends, [dtype.minimum]])
    return both[(both >= dtype.minimum) & (both <= dtype.maximum)]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_divisor_at_every_step_of_its_quotient(dtype: DType) -> None:
    for divisor in range(dtype.minimum, dtype.maximum + 1):
        if divisor in (0, 1, -1):
            continue
        exact = (
            np.arange(dtype.minimum, dtype.maximum + 1)
            if dtype.bits == 8
            else steps(divisor, dtype)
        )
        a = exact.astype(kind(dtype))
        size = np.abs(exact) // abs(divisor)
        wanted = np.where((exact < 0) != (divisor < 0), -size, size)
        assert (divided("cdiv", a, divisor, dtype) == wanted).all(), divisor
        if divisor % 64 in (3, 5, 7, 62) or dtype.bits == 8:  # one more product and difference
            assert (divided("cmod", a, divisor, dtype) == exact - wanted * divisor).all(), divisor


def divisors(dtype: DType) -> st.SearchStrategy[int]:
    near = st.integers(0, dtype.bits).flatmap(
        lambda k: st.integers(max((1 << k) - 3, 2), (1 << k) + 3)
    )
    any_size = st.one_of(st.integers(2, 100), near, st.integers(2, dtype.maximum))
    if dtype.is_signed:
        any_size = st.one_of(any_size, any_size.map(lambda each: -each))
    return any_size.filter(dtype.holds)


@pytest.mark.parametrize("dtype", LARGE, ids=str)
@given(data=st.data())
def test_large_types_next_to_the_steps_of_their_quotients(
    dtype: DType, data: st.DataObject
) -> None:
    divisor = data.draw(divisors(dtype))
    size = abs(divisor)
    anywhere = st.integers(dtype.minimum, dtype.maximum)
    numbers = data.draw(st.lists(anywhere, min_size=20, max_size=20))
    last = dtype.maximum // size * size
    numbers += [each // size * size + off for each in [*numbers, last] for off in (-1, 0, size - 1)]
    numbers += [0, 1, size - 1, size, dtype.maximum, dtype.minimum]
    numbers = [each for each in numbers if dtype.holds(each)]
    a = np.array(numbers, kind(dtype))
    wanted = [truncated(each, divisor) for each in numbers]
    assert divided("cdiv", a, divisor, dtype).tolist() == wanted
    rests = [each - quotient * divisor for each, quotient in zip(numbers, wanted, strict=True)]
    assert divided("cmod", a, divisor, dtype).tolist() == rests


@given(st.integers(1, 1 << 70), st.integers(0, 1 << 70))
def test_the_multiplier_is_right_up_to_the_greatest(divisor: int, extra: int) -> None:
    greatest = divisor + extra
    factor, count = multiplier(divisor, greatest)
    for n in (0, 1, divisor - 1, divisor, greatest, greatest // divisor * divisor):
        for each in (n - 1, n):
            assert not 0 <= each <= greatest or each * factor >> count == each // divisor


# Through C and LLVM.


def compiled(text: str, signatures: list[str], folder: Path) -> list[tuple[Any, Any, Any]]:
    kernel = load_module(text, folder).k
    found = []
    for tool in toolchains():
        renderer = replace(renderer_for(TARGET, tool.dialect), supported_ops=WITHOUT)
        variants = [
            Variant(kernel.definition, Signature.parse(each), TARGET) for each in signatures
        ]
        sources = [generate(each, renderer) for each in variants]
        library = tool.load(tool.compile(assemble("divided", sources, renderer), TARGET))
        found += [(kernel, source, library) for source in sources]
    return found


def kernel_text(divisors: list[int]) -> str:
    lines = [
        f"        out[{2 * row}, i] = x[i] // {each}\n        out[{2 * row + 1}, i] = x[i] % {each}"
        for row, each in enumerate(divisors)
    ]
    return "\n".join(
        ["import tack", "@tack.kernel", "def k(x, out):", "    for i in range(x.shape[0]):", *lines]
    )


def check(divisors: list[int], numbers: list[int], dtype: DType, folder: Path) -> None:
    signature = f"{dtype}[:], {dtype}[:, :]"
    x = np.array(numbers, kind(dtype))
    wanted = [
        [dtype.wrap(of(each, divisor)) for each in numbers]
        for divisor in divisors
        for of in (lambda a, b: a // b, lambda a, b: a % b)
    ]
    for kernel, source, library in compiled(kernel_text(divisors), [signature], folder):
        assert "/ " not in source.text.partition("{")[2]
        out = np.zeros((2 * len(divisors), len(x)), x.dtype)
        run_kernel(kernel, source, library, [x, out], noalias=False)
        assert out.tolist() == wanted


@pytest.mark.parametrize("dtype", SMALL[:2], ids=str)
def test_compilers_agree_on_every_number_and_divisor_of_8_bits(
    dtype: DType, tmp_path: Path
) -> None:
    every = list(range(dtype.minimum, dtype.maximum + 1))
    check([each for each in every if each], every, dtype, tmp_path)


@pytest.mark.parametrize("dtype", [*SMALL[2:], *LARGE], ids=str)
def test_compilers_agree_on_the_edges_of_wider_types(dtype: DType, tmp_path: Path) -> None:
    powers = [1 << k for k in range(0, dtype.bits, 3)]
    near = [each + off for each in powers for off in (-1, 0, 1)] + [3, 7, 10, 641, 1000]
    near += [dtype.maximum, dtype.maximum - 1, dtype.minimum, dtype.minimum + 1, -7, -10]
    kept = sorted({each for each in near if each and dtype.holds(each)})
    numbers = sorted({0, *(n for k in kept for n in (k, -k, 3 * k, 7 * k - 1) if dtype.holds(n))})
    check(kept[:: 2 if len(kept) > 40 else 1], numbers, dtype, tmp_path)


# What it becomes.


def operators(function: ir.IRFunction) -> set[str]:
    return {node.op for node in walk_ir(function) if isinstance(node, ir.IRBinOp)}


@pytest.mark.parametrize("dtype", [*SMALL, *LARGE], ids=str)
def test_no_division_by_a_constant_is_left(dtype: DType) -> None:
    for op in ("//", "%"):
        node = ir.IRBinOp(op, name("a", dtype), ir.IRConstant(7, dtype), dtype)
        function = emulated(elementwise(node, ("a", dtype)))
        assert not operators(function) & {"cdiv", "cmod"}
        assert operators(emulated(binary(op, dtype))) & {"cdiv", "cmod"}


def emulated(function: ir.IRFunction) -> ir.IRFunction:
    from tack.passes.decompose import decompose

    done = decompose(function)
    return emulate(done, WITHOUT) or done


def test_a_known_range_needs_one_product() -> None:
    function = prepared(lowered("x[0] = (n % 100) // 7", "x: i64[:], n: u8"))
    text = str(emulate(function, WITHOUT))
    assert "u64" not in text.partition("x[0]")[0]


def test_indices_are_natural_and_need_no_sign() -> None:
    function = prepared(lowered("x[i // 3] = 1", "x: u8[:]"))
    found = emulate(function, WITHOUT)
    assert found is not None
    assert "^" not in operators(found)
    assert {node.dtype for node in walk_ir(found) if isinstance(node, ir.IRBinOp)} <= {i64, u64}
