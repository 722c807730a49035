"""optimize and localize keep the meaning of a kernel, and leave nothing that has none."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ir_interpreter
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_building import kernel, lowered, prepared

from tack.ir import nodes as ir
from tack.ir import operations
from tack.ir.traversal import walk_ir
from tack.ir.verify_types import TYPE_CHECKS, Scope
from tack.model.dtypes import DTYPES, DType, bool_, f32, i64
from tack.passes import arithmetic
from tack.passes.fold import fold

FUNCTION = kernel([], [])
NUMBERS = [dtype for dtype in DTYPES.values() if not dtype.is_bool]
few = settings(max_examples=40)
"""Enough for each row of a long table."""


def optimized(body: str, signature: str) -> list[str]:
    """The lines of a kernel's parallel loop after ``optimize``."""
    text = str(prepared(lowered(body, signature), "optimized"))
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if "parallel for" in line)
    return [line[8:] for line in lines[start + 1 :]]


# Constants.


def constants(dtype: DType) -> st.SearchStrategy[ir.IRConstant]:
    if dtype.is_bool:
        values: st.SearchStrategy[Any] = st.booleans()
    elif dtype.is_float:
        values = st.floats(width=max(dtype.bits, 32)).map(dtype.convert)
    else:
        edge = st.sampled_from([dtype.minimum, dtype.maximum, 0, 1, dtype.maximum // 2])
        values = edge | st.integers(dtype.minimum, dtype.maximum) | st.integers(0, 9)
    return values.map(lambda value: ir.IRConstant(value, dtype))


def folds_as_it_runs(node: ir.Expression) -> None:
    folded = fold(node)
    assert isinstance(folded, ir.IRConstant)
    assert folded.dtype is node.dtype
    assert TYPE_CHECKS[ir.IRConstant](Scope.of(FUNCTION), folded) is None
    ran = ir_interpreter.evaluate(node, FUNCTION)
    if node.dtype is not None and node.dtype.is_float and np.isnan(ran):
        assert math.isnan(folded.value)
    else:
        assert folded.value == ran
        assert math.copysign(1, folded.value) == math.copysign(1, ran)


OPERATORS = [
    *((op, dtype) for op in "+-*&|^" for dtype in DTYPES.values()),
    *((op, dtype) for op in ("//", "%", "/", "**", "<<", ">>") for dtype in DTYPES.values()),
]


def has(op: str, dtype: DType) -> bool:
    if dtype.is_bool:
        return op in "&|^"
    return op in ("+", "-", "*", "//", "%") or ((op == "/") == dtype.is_float)


@pytest.mark.parametrize(("op", "dtype"), [row for row in OPERATORS if has(*row)])
@few
@given(data=st.data())
def test_operators_of_constants(op: str, dtype: DType, data: st.DataObject) -> None:
    right = i64 if op in ("**", "<<", ">>") else dtype
    left_operand, right_operand = data.draw(constants(dtype)), data.draw(constants(right))
    folds_as_it_runs(ir.IRBinOp(op, left_operand, right_operand, dtype))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@few
@given(data=st.data())
def test_comparisons_of_constants(dtype: DType, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(sorted(operations.COMPARISONS)))
    a, b = data.draw(constants(dtype)), data.draw(constants(dtype))
    folds_as_it_runs(ir.IRCompare(op, a, b, bool_))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@few
@given(data=st.data())
def test_builtins_of_constants(dtype: DType, data: st.DataObject) -> None:
    a, b = data.draw(constants(dtype)), data.draw(constants(dtype))
    for name in ("min", "max"):
        folds_as_it_runs(ir.IRCall(name, [a, b], dtype))
    for name in ("abs", *(("floor", "ceil", "trunc", "sqrt") if dtype.is_float else ())):
        folds_as_it_runs(ir.IRCall(name, [a], dtype))
    folds_as_it_runs(ir.IRUnaryOp("-", a, dtype))


@pytest.mark.parametrize("source", DTYPES.values(), ids=str)
@few
@given(data=st.data())
def test_casts_of_constants(source: DType, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(NUMBERS))
    value = data.draw(constants(source))
    if dtype is not source:
        folds_as_it_runs(ir.IRCast(value, dtype))


@pytest.mark.parametrize("source", [dtype for dtype in DTYPES.values() if dtype.is_float], ids=str)
def test_casts_of_constants_at_the_limits_of_integers(source: DType) -> None:
    limits = [sign * 2.0**bits for bits in (7, 8, 15, 16, 31, 32, 63, 64, 100) for sign in (1, -1)]
    for limit in (*limits, math.inf, -math.inf, math.nan):
        for near in (limit, limit * 0.99, limit - 1, limit + 0.5):
            value = ir.IRConstant(source.convert(near), source)
            for dtype in NUMBERS:
                if dtype is not source:
                    folds_as_it_runs(ir.IRCast(value, dtype))


@given(st.integers(-(2**64), 2**64))
def test_integers_are_rounded_to_f32_once(value: int) -> None:
    exact = ir_interpreter.nearest(Fraction(value), np.float32) if value else 0
    assert arithmetic.round_integer(value, f32) == exact


def test_what_python_refuses_of_literals_is_a_sentence() -> None:
    for op, a, b in (("//", 1, 0), ("%", 1, 0), ("<<", 1, -1), ("<<", 1, 10**9), ("**", 9, 10**9)):
        with pytest.raises(ValueError, match=r"divides|negative|fits no type"):
            arithmetic.exact(op, a, b)


# Copies.


def test_constants_and_copies_go_where_they_are_read() -> None:
    assert optimized("a = n\nb = a\nc = 2 * 3\nx[b] = c", "x: u8[:], n: i64") == ["x[n] = 6:u8"]


def test_a_copy_is_a_node_of_its_own_that_no_later_rewrite_shares() -> None:
    body = "a = n\nb = 7\nx[a] = a + b\nx[b] = a * b"
    function = prepared(lowered(body, "x: i64[:], n: i64"), "optimized")
    nodes = list(walk_ir(function))
    assert sum(str(node) == "n" for node in nodes) == 3
    assert sum(str(node) == "7:i64" for node in nodes) == 3
    assert len(set(map(id, nodes))) == len(nodes)


def test_not_past_a_change_of_what_was_copied() -> None:
    body = "a = n + 1\nb = a\na = a + 1\nx[b] = a"
    assert "b: i64 = a" in optimized(body, "x: i64[:], n: i64")


def test_not_past_a_change_in_a_branch() -> None:
    body = "a = 1 + n\nb = a\nif n > 2:\n    a = 5\nx[b] = a"
    lines = optimized(body, "x: i64[:], n: i64")
    assert "x[b] = a" in lines


def test_past_a_branch_that_leaves() -> None:
    body = "a = n\nif n > 2:\n    a = 5\n    x[0] = a\n    continue\nx[1] = a"
    assert optimized(body, "x: i64[:], n: i64") == [
        "if (n > 2:i64):",
        "    x[0:i64] = 5:i64",
        "    continue",
        "x[1:i64] = n",
    ]


def test_not_into_a_loop_that_changes_it() -> None:
    body = "a = 0\nfor k in range(n):\n    x[k] = a\n    a = a + 1"
    assert "    x[k] = a" in optimized(body, "x: i64[:], n: i64")
    body = "a = 0\nwhile a < n:\n    x[a] = 1\n    a = a + 1"
    assert "while (a < n):" in optimized(body, "x: i64[:], n: i64")


def test_a_copy_of_a_loop_variable_ends_with_the_round() -> None:
    body = "a = 0\nfor k in range(n):\n    a = k\nx[0] = a"
    assert optimized(body, "x: i64[:], n: i64")[-1] == "x[0:i64] = a"


# What has no effect.


def test_what_nothing_reads_is_dropped() -> None:
    assert optimized("a = x[0]\nb = a + 1\nx[1] = 2", "x: u8[:]") == ["x[1:i64] = 2:u8"]


def test_branches_that_are_decided_are_taken() -> None:
    body = "t = 2\nif t > 1:\n    x[0] = 1\nelse:\n    x[0] = 2\nif False:\n    x[1] = 1"
    assert optimized(body, "x: u8[:]") == ["x[0:i64] = 1:u8"]


def test_what_follows_a_jump_is_dropped() -> None:
    assert optimized("x[0] = 1\ncontinue\nx[0] = 2", "x: u8[:]") == [
        "x[0:i64] = 1:u8",
        "continue",
    ]


def test_empty_branches_and_loops_are_dropped() -> None:
    assert optimized("if n > 0:\n    t = 1\nfor k in range(n):\n    pass", "n: i64") == ["pass"]
    assert optimized("for k in range(5, 2):\n    x[k] = 1", "x: u8[:]") == ["pass"]
    body = "if n > 0:\n    pass\nelse:\n    x[0] = 1"
    assert optimized(body, "x: u8[:], n: i64")[0] == "if (not (n > 0:i64)):"


def test_a_loop_whose_variable_is_read_stays() -> None:
    body = "k = 0\nfor k in range(n):\n    pass\nx[0] = k"
    assert "for k in range(0:i64, n, 1:i64):" in optimized(body, "x: i64[:], n: i64")


def test_an_endless_loop_stays() -> None:
    assert optimized("while True:\n    pass", "n: i64")[0] == "while True:bool:"


def test_a_guarded_load_stays_in_its_guard() -> None:
    body = "t = x[n] if n < x.shape[0] else 0\nx[0] = t"
    assert optimized(body, "x: u8[:], n: i64")[-1] == "x[0:i64] = t"
    body = "if n < x.shape[0]:\n    t = x[n]\n    x[0] = t"
    assert optimized(body, "x: u8[:], n: i64") == [
        "if (n < x.shape[0]):",
        "    t: u8 = x[n]",
        "    x[0:i64] = t",
    ]


def test_nothing_leaves_a_loop_that_may_not_run_or_may_change_it() -> None:
    body = "t = 0\nfor k in range(n):\n    t = x[5]\nx[0] = t"
    assert "    t: i64 = x[5:i64]" in optimized(body, "x: i64[:], n: i64")
    body = "t = 0\nwhile t < n:\n    t = x[5]\n    x[5] = t + 1\nx[0] = t"
    assert "    t: i64 = x[5:i64]" in optimized(body, "x: i64[:], n: i64")


def test_a_load_stays_before_the_store() -> None:
    body = "t = x[0]\nx[0] = 5\nx[1] = t"
    assert optimized(body, "x: u8[:]") == [
        "t: u8 = x[0:i64]",
        "x[0:i64] = 5:u8",
        "x[1:i64] = t",
    ]


def test_locals_that_are_read_are_listed_once_in_order_of_appearance() -> None:
    body = "unread = x[2]\nb = x[1]\na = x[0]\nb = b + a\nx[0] = b"
    function = prepared(lowered(body, "x: u8[:]"), "localized")
    assert list(function.locals) == ["b", "a"]
