"""Each invariant of the IR has a broken tree that trips it, at the stage from which it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ir_building import array, binary, kernel, lowered, name, prepared, scalar

import tack.compile as compile_
from tack.backends.cpu_cc import CCompiler
from tack.backends.cpu_llvm import LlvmCompiler
from tack.ir import nodes as ir
from tack.ir.verify import STAGES, verify_ir
from tack.model.dtypes import DTYPES, DType, bool_, f32, i8, i32, i64, u8
from tack.model.errors import CompileError, IRVerificationError
from tack.passes import pipeline
from tack.passes.pipeline import PASSES

LOCAL = {"b": ir.LocalArray(i64, (3,))}
Make = Callable[[], ir.IRFunction]


def one(value: int = 1, dtype: DType | None = i64) -> ir.IRConstant:
    return ir.IRConstant(value, dtype)


def weak(value: float) -> ir.IRConstant:
    return ir.IRConstant(value, weak=True)


def assign(value: ir.Expression, dtype: DType | None = i64) -> ir.IRAssign:
    return ir.IRAssign("t", value, dtype)


def typed(*body: ir.Statement, **more: DType) -> ir.IRFunction:
    """A kernel with a local t of i64."""
    params = [array("x", f32), scalar("n"), array("m", i64, None, None)]
    return kernel(params, body, locals={"t": i64, **more})


def valued(value: ir.Expression, dtype: DType = i64) -> ir.IRFunction:
    """A typed kernel that assigns ``value`` to t."""
    return kernel([array("x", f32), scalar("n")], [assign(value, dtype)], locals={"t": dtype})


def with_function(change: Callable[[ir.IRFunction], None]) -> Make:
    def make() -> ir.IRFunction:
        function = typed(assign(one()))
        change(function)
        return function

    return make


def set_body(*statements: ir.Statement) -> Callable[[ir.IRFunction], None]:
    def change(function: ir.IRFunction) -> None:
        function.body = list(statements)

    return change


def loop(*body: ir.Statement) -> ir.IRParallelFor:
    return ir.IRParallelFor(["i"], [one()], list(body))


def sequential(
    *body: ir.Statement, var: str = "k", step: ir.Expression | None = None, end: DType = i64
) -> ir.IRSequentialFor:
    return ir.IRSequentialFor(var, one(0), one(9, end), step or one(), list(body))


SHARED = assign(one())

BROKEN: list[tuple[str, str, str, str, Make]] = [
    # what is wrong: (words of the message, kind, path, the stage from which it is checked, tree)
    ("0 parallel loops", "IRFunction", "the root", "lowered", with_function(set_body())),
    (
        "2 parallel loops",
        "IRFunction",
        "the root",
        "lowered",
        with_function(set_body(loop(), loop())),
    ),
    (
        "not the whole body",
        "IRParallelFor",
        "body[1]",
        "lowered",
        with_function(set_body(assign(one()), loop())),
    ),
    (
        "2 parallel loops",
        "IRFunction",
        "the root",
        "lowered",
        with_function(set_body(loop(loop()))),
    ),
    (
        "2 index variables and 1 extents",
        "IRParallelFor",
        "body[0]",
        "lowered",
        lambda: kernel([], [], index_vars=["i", "j"]),
    ),
    (
        "4 index variables and 4 extents",
        "IRParallelFor",
        "body[0]",
        "lowered",
        lambda: kernel([], [], index_vars=list("ijkl"), extents=[one() for _ in "ijkl"]),
    ),
    (
        "0 index variables and 0 extents",
        "IRParallelFor",
        "body[0]",
        "lowered",
        lambda: kernel([], [], index_vars=[], extents=[]),
    ),
    (
        "'i' is declared twice",
        "IRParallelFor",
        "body[0]",
        "lowered",
        lambda: kernel([], [], index_vars=["i", "i"], extents=[one(), one()]),
    ),
    (
        "'i' is declared twice",
        "IRParallelFor",
        "body[0]",
        "lowered",
        lambda: kernel([scalar("i")], []),
    ),
    (
        "'n' is declared twice",
        "IRParam",
        "params[1]",
        "lowered",
        lambda: kernel([scalar("n"), scalar("n")], []),
    ),
    (
        "'n' has no dtype",
        "IRParam",
        "params[0]",
        "lowered",
        lambda: kernel([ir.IRParam("n")], []),
    ),
    (
        "'x' has 9 dimensions",
        "IRParam",
        "params[0]",
        "lowered",
        lambda: kernel([array("x", f32, *[None] * 9)], []),
    ),
    ("break outside", "IRBreak", "body[0].body[0]", "lowered", lambda: typed(ir.IRBreak())),
    (
        "break outside",
        "IRBreak",
        "body[0].body[0].then_body[0]",
        "lowered",
        lambda: typed(ir.IRIf(one(1, bool_), [ir.IRBreak()])),
    ),
    (
        "value holds IRBreak, not Expression",
        "IRAssign",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAssign("t", ir.IRBreak())),  # type: ignore[arg-type]
    ),
    (
        "body holds IRConstant, not Statement",
        "IRParallelFor",
        "body[0]",
        "lowered",
        lambda: typed(one()),  # type: ignore[arg-type]
    ),
    (
        "value holds NoneType",
        "IRAssign",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAssign("t", None)),  # type: ignore[arg-type]
    ),
    (
        "stands in another place",
        "IRAssign",
        "body[0].body[1]",
        "lowered",
        lambda: typed(SHARED, SHARED),
    ),
    (
        "'q' is read before",
        "IRName",
        "body[0].body[0].value",
        "lowered",
        lambda: typed(assign(name("q"))),
    ),
    (
        "'t' is read before",
        "IRName",
        "body[0].body[0].value",
        "lowered",
        lambda: typed(assign(name("t"))),
    ),
    (
        "'x' is read as a scalar",
        "IRName",
        "body[0].body[0].value",
        "lowered",
        lambda: typed(assign(name("x"))),
    ),
    (
        "'n' is assigned",
        "IRAssign",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAssign("n", one(), i64)),
    ),
    (
        "'i' is assigned",
        "IRSequentialFor",
        "body[0].body[0]",
        "lowered",
        lambda: typed(sequential(var="i")),
    ),
    (
        "reads 't', which is no scalar parameter",
        "IRName",
        "body[0].extents[0]",
        "lowered",
        lambda: kernel([], [], extents=[name("t")], locals={"t": i64}),
    ),
    (  # what the body sets is put in its place when types are known
        "reads 't', which is no scalar parameter",
        "IRName",
        "body[0].extents[0]",
        "typed",
        lambda: kernel([], [assign(one())], extents=[name("t")], locals={"t": i64}),
    ),
    (
        "an extent reads an array element",
        "IRArrayLoad",
        "body[0].extents[0]",
        "lowered",
        lambda: kernel([array("x")], [], extents=[ir.IRArrayLoad("x", [one()], i64)]),
    ),
    (
        "not the whole extent",
        "IRTripCount",
        "body[0].extents[0].operand",
        "lowered",
        lambda: kernel(
            [], [], extents=[ir.IRUnaryOp("-", ir.IRTripCount(one(), one(), one(), i64), i64)]
        ),
    ),
    (
        "a trip count outside",
        "IRTripCount",
        "body[0].body[0].value",
        "lowered",
        lambda: typed(assign(ir.IRTripCount(one(), one(), one(), i64))),
    ),
    (
        "unknown operator '<>'",
        "IRCompare",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRCompare("<>", one(), one(), bool_), bool_),
    ),
    (
        "unknown operator 'xor'",
        "IRBoolOp",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRBoolOp("xor", one(1, bool_), one(1, bool_), bool_), bool_),
    ),
    (
        "unknown operator '+'",
        "IRUnaryOp",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRUnaryOp("+", one(), i64)),
    ),
    (
        "unknown operator '@'",
        "IRBinOp",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRBinOp("@", one(), one(), i64)),
    ),
    (
        "unknown builtin 'sine'",
        "IRCall",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRCall("sine", [one()], i64)),
    ),
    (
        "min takes 2 operands, not 1",
        "IRCall",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRCall("min", [one()], i64)),
    ),
    (
        "'n' is no array",
        "IRArrayLoad",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRArrayLoad("n", [one()], i64)),
    ),
    (
        "'x' is no local array",
        "IRLocalArray",
        "body[0].body[0]",
        "lowered",
        lambda: kernel([array("x")], [ir.IRLocalArray("x")]),
    ),
    (
        "'b' is made twice",
        "IRLocalArray",
        "body[0].body[1]",
        "lowered",
        lambda: kernel(
            [array("x")], [ir.IRLocalArray("b"), ir.IRLocalArray("b")], local_arrays=LOCAL
        ),
    ),
    (
        "the array 'b' is used before it is made",
        "IRArrayStore",
        "body[0].body[0]",
        "lowered",
        lambda: kernel(
            [array("x")],
            [ir.IRArrayStore("b", [one()], one()), ir.IRLocalArray("b")],
            local_arrays=LOCAL,
        ),
    ),
    (
        "the array 'b' is used before it is made",
        "IRArrayLoad",
        "body[0].body[0].value",
        "lowered",
        lambda: kernel(
            [array("x")],
            [assign(ir.IRArrayLoad("b", [one()], i64)), ir.IRLocalArray("b")],
            local_arrays=LOCAL,
        ),
    ),
    (
        "the array 'b' is used before it is made",
        "IRAtomic",
        "body[0].body[0]",
        "lowered",
        lambda: kernel(
            [array("x")],
            [ir.IRAtomic("t", "add", "b", [one()], one()), ir.IRLocalArray("b")],
            local_arrays=LOCAL,
        ),
    ),
    *(
        (
            "the size of 'b' is not known",
            "IRLocalArray",
            "body[0].body[0]",
            "lowered",
            lambda dim=dim: kernel(  # type: ignore[misc]
                [], [ir.IRLocalArray("b")], local_arrays={"b": ir.LocalArray(i64, (2, dim))}
            ),
        )
        for dim in (None, 0)
    ),
    (
        "unknown atomic 'nand'",
        "IRAtomic",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAtomic("t", "nand", "m", [one(), one()], one())),
    ),
    (
        "atomic cas without a comparison",
        "IRAtomic",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAtomic("t", "cas", "m", [one(), one()], one())),
    ),
    (
        "atomic add with a comparison",
        "IRAtomic",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAtomic("t", "add", "m", [one(), one()], one(), one())),
    ),
    (
        "1 indices of 'm', not 2",
        "IRAtomic",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAtomic("t", "add", "m", [one()], one())),
    ),
    (
        "the parameter 'n' is assigned",
        "IRAtomic",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRAtomic("n", "add", "m", [one(), one()], one())),
    ),
    (
        "bits as another type before decomposition",
        "IRBitcast",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRBitcast(one(), DTYPES["f64"]), DTYPES["f64"]),
    ),
    (
        "'b' is no array parameter",
        "IRDimSize",
        "body[0].body[1].value",
        "lowered",
        lambda: kernel(
            [array("x")],
            [ir.IRLocalArray("b"), ir.IRAssign("t", ir.IRDimSize("b", 0, i64), i64)],
            local_arrays=LOCAL,
        ),
    ),
    (
        "'x' is no strided array parameter",
        "IRStride",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRStride("x", 0, i64)),
    ),
    (
        "a stride before the indices are packed",
        "IRStride",
        "body[0].body[0].value",
        "lowered",
        lambda: kernel(
            [ir.IRParam("x", i64, (None,), True)],
            [ir.IRAssign("t", ir.IRStride("x", 0, i64), i64)],
        ),
    ),
    (
        "'x' has no flat index here",
        "IRArrayLoad",
        "body[0].body[0].value",
        "lowered",
        lambda: kernel(
            [ir.IRParam("x", i64, (None, None), True)],
            [ir.IRAssign("t", ir.IRArrayLoad("x", [one()], i64, flat=True), i64)],
        ),
    ),
    (
        "2 indices of 'x', not 1",
        "IRArrayStore",
        "body[0].body[0]",
        "lowered",
        lambda: typed(ir.IRArrayStore("x", [one(), one()], ir.IRConstant(1.0, f32))),
    ),
    (
        "'x' has no dimension 1",
        "IRDimSize",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRDimSize("x", 1, i64)),
    ),
    (
        "a constant holds str",
        "IRConstant",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRConstant("1", i64)),  # type: ignore[arg-type]
    ),
    (
        "is weak or has a dtype",
        "IRConstant",
        "body[0].body[0].value",
        "lowered",
        lambda: valued(ir.IRConstant(1, i64, weak=True)),
    ),
    (
        "is pinned and was not resolved",
        "IRDimSize",
        "body[0].body[0].value",
        "resolved",
        lambda: kernel(
            [array("x", f32, 3)], [assign(ir.IRDimSize("x", 0, i64))], locals={"t": i64}
        ),
    ),
    (
        "the local 't' has no type",
        "IRFunction",
        "the root",
        "inferred",
        lambda: kernel([], [assign(one())]),
    ),
    (
        "a literal was not settled",
        "IRConstant",
        "body[0].body[0].value",
        "typed",
        lambda: valued(weak(1)),
    ),
    (
        "an expression without a dtype",
        "IRBinOp",
        "body[0].body[0].value.operand",
        "typed",
        lambda: valued(ir.IRUnaryOp("-", ir.IRBinOp("+", one(), one()), i64)),
    ),
    (
        "300 is out of the range of u8",
        "IRConstant",
        "body[0].body[0].value",
        "typed",
        lambda: valued(one(300, u8), u8),
    ),
    (
        "f32 cannot represent 0.1",
        "IRConstant",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRConstant(0.1, f32), f32),
    ),
    (
        "a constant of f32 holds int",
        "IRConstant",
        "body[0].body[0].value",
        "typed",
        lambda: valued(one(1, f32), f32),
    ),
    (
        "'n' is read as i32 and has the type i64",
        "IRName",
        "body[0].body[0].value",
        "typed",
        lambda: valued(name("n", i32), i32),
    ),
    (
        "the right operand is i8, not i64",
        "IRBinOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRBinOp("+", one(), one(1, i8), i64)),
    ),
    (
        "the right operand is f32, no integer",
        "IRBinOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRBinOp("<<", one(), ir.IRConstant(1.0, f32), i64)),
    ),
    (
        "'&' of f32",
        "IRBinOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRBinOp("&", ir.IRConstant(1.0, f32), ir.IRConstant(1.0, f32), f32), f32),
    ),
    (
        "'/' of i64",
        "IRBinOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRBinOp("/", one(), one(), i64)),
    ),
    (
        "'+' of bool",
        "IRBinOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(
            ir.IRBinOp("+", ir.IRConstant(True, bool_), ir.IRConstant(True, bool_), bool_), bool_
        ),
    ),
    (
        "'not' of i64",
        "IRUnaryOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRUnaryOp("not", one(), i64)),
    ),
    (
        "a comparison is i64, not bool",
        "IRCompare",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRCompare("<", one(), one(), i64)),
    ),
    (
        "i64 is compared with i8",
        "IRCompare",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRCompare("<", one(), one(1, i8), bool_), bool_),
    ),
    (
        "the left operand is i64, not bool",
        "IRBoolOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRBoolOp("and", one(), ir.IRConstant(True, bool_), bool_), bool_),
    ),
    (
        "the condition is i64, not bool",
        "IRIfExp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRIfExp(one(), one(), one(), i64)),
    ),
    (
        "i64 is chosen from i64 and i8",
        "IRIfExp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRIfExp(ir.IRConstant(True, bool_), one(), one(1, i8), i64)),
    ),
    (
        "floor of i64",
        "IRCall",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRCall("floor", [one()], i64)),
    ),
    (
        "operand 1 is i8, not i64",
        "IRCall",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRCall("min", [one(), one(1, i8)], i64)),
    ),
    (
        "a cast to bool",
        "IRCast",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRCast(one(), bool_), bool_),
    ),
    (
        "'~' of f32",
        "IRUnaryOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRUnaryOp("~", ir.IRConstant(1.0, f32), f32), f32),
    ),
    (
        "the right operand is i64, not bool",
        "IRBoolOp",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRBoolOp("or", ir.IRConstant(True, bool_), one(), bool_), bool_),
    ),
    (
        "value is i8 where 'm' has i64",
        "IRAtomic",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRAtomic("t", "add", "m", [one(), one()], one(1, i8))),
    ),
    (
        "compare is i8 where 'm' has i64",
        "IRAtomic",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRAtomic("t", "cas", "m", [one(), one()], one(), one(1, i8))),
    ),
    (
        "'t' is i64, not f32",
        "IRAtomic",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRAtomic("t", "add", "x", [one()], ir.IRConstant(1.0, f32))),
    ),
    (
        "index 0 is i8, not i64",
        "IRAtomic",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRAtomic("t", "add", "m", [one(1, i8), one()], one())),
    ),
    (
        "i64 where 'x' has f32",
        "IRArrayLoad",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRArrayLoad("x", [one()], i64)),
    ),
    (
        "index 0 is i8, not i64",
        "IRArrayLoad",
        "body[0].body[0].value",
        "typed",
        lambda: valued(ir.IRArrayLoad("x", [one(1, i8)], f32), f32),
    ),
    (
        "i64 where 'x' has f32",
        "IRArrayStore",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRArrayStore("x", [one()], one())),
    ),
    (
        "resolved_type is None",
        "IRAssign",
        "body[0].body[0]",
        "typed",
        lambda: typed(assign(one(), None)),
    ),
    (
        "i8 is assigned to 't'",
        "IRAssign",
        "body[0].body[0]",
        "typed",
        lambda: typed(assign(one(1, i8))),
    ),
    (
        "the condition is i64, not bool",
        "IRIf",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRIf(one(), [])),
    ),
    (
        "the condition is i64, not bool",
        "IRWhile",
        "body[0].body[0]",
        "typed",
        lambda: typed(ir.IRWhile(one(), [])),
    ),
    (
        "end is i8, not i64",
        "IRSequentialFor",
        "body[0].body[0]",
        "typed",
        lambda: typed(sequential(end=i8), k=i64),
    ),
    (
        "the loop variable 'k' is f32",
        "IRSequentialFor",
        "body[0].body[0]",
        "typed",
        lambda: typed(sequential(), k=f32),
    ),
    (
        "extent 0 is i8, not i64",
        "IRParallelFor",
        "body[0]",
        "typed",
        lambda: kernel([], [], extents=[one(1, i8)]),
    ),
    (
        "an expression without a dtype",
        "IRDimSize",
        "body[0].extents[0]",
        "typed",
        lambda: kernel([array("x")], [], extents=[ir.IRDimSize("x", 0)]),
    ),
    (
        "end is i8, not i64",
        "IRTripCount",
        "body[0].extents[0]",
        "typed",
        lambda: kernel([], [], extents=[ir.IRTripCount(one(), one(1, i8), one(), i64)]),
    ),
    (
        "locals are not those assigned",
        "IRFunction",
        "the root",
        "localized",
        lambda: typed(assign(one()), q=i64),
    ),
    (
        "'//' is left",
        "IRBinOp",
        "body[0].body[2].value",
        "decomposed",
        lambda: binary("//", i64),
    ),
    (
        "a sequential loop whose step is not 1",
        "IRSequentialFor",
        "body[0].body[1]",
        "decomposed",
        lambda: typed(assign(one()), sequential(step=one(2)), k=i64),
    ),
    (
        "2 indices of 'm', not 1",
        "IRArrayLoad",
        "body[0].body[0].value",
        "packed",
        lambda: typed(assign(ir.IRArrayLoad("m", [one(), one()], i64))),
    ),
]

GROUP = {"workgroup": (8,)}


def grouped(*body: ir.Statement, **tables: Any) -> ir.IRFunction:
    """A typed kernel with workgroups."""
    return kernel([array("x", f32)], body, **{**GROUP, "locals": {"t": i64}, **tables})


def shared(*dims: int, **tables: Any) -> ir.IRFunction:
    return grouped(local_arrays={"s": ir.LocalArray(f32, dims, shared=True)}, **tables)


def of_lane(kind: str = "thread", axis: int = 0, dtype: DType = i64) -> ir.IRGroupIndex:
    return ir.IRGroupIndex(kind, axis, dtype)


def combined() -> ir.IRCall:
    return ir.IRCall("block_sum", [one()], i64)


BROKEN += [
    (
        "groups of (8, 8) along 1 axes",
        "IRFunction",
        "the root",
        "lowered",
        lambda: grouped(workgroup=(8, 8)),
    ),
    (
        "groups of (0,) along 1 axes",
        "IRFunction",
        "the root",
        "lowered",
        lambda: grouped(workgroup=(0,)),
    ),
    (
        "'s' is shared in a kernel without groups",
        "IRFunction",
        "the root",
        "lowered",
        lambda: shared(3, workgroup=()),
    ),
    ("the size of 's' is not known", "IRFunction", "the root", "lowered", lambda: shared(3, 0)),
    (
        "'s' is no local array",
        "IRLocalArray",
        "body[0].body[0]",
        "lowered",
        lambda: grouped(
            ir.IRLocalArray("s"), local_arrays={"s": ir.LocalArray(f32, (3,), shared=True)}
        ),
    ),
    (
        "a kernel without groups",
        "IRBarrier",
        "body[0].body[0]",
        "lowered",
        lambda: grouped(ir.IRBarrier(), workgroup=()),
    ),
    (
        "no thread along axis 0 of 0",
        "IRGroupIndex",
        "body[0].body[0].value",
        "lowered",
        lambda: grouped(assign(of_lane()), workgroup=()),
    ),
    (
        "no thread along axis 1 of 1",
        "IRGroupIndex",
        "body[0].body[0].value",
        "lowered",
        lambda: grouped(assign(of_lane(axis=1))),
    ),
    (
        "no lane along axis 0 of 1",
        "IRGroupIndex",
        "body[0].body[0].value",
        "lowered",
        lambda: grouped(assign(of_lane("lane"))),
    ),
    (
        "an extent depends on an iteration",
        "IRGroupIndex",
        "body[0].extents[0]",
        "lowered",
        lambda: grouped(extents=[of_lane("group")], locals={}),
    ),
    (
        "an extent depends on an iteration",
        "IRCall",
        "body[0].extents[0]",
        "lowered",
        lambda: grouped(extents=[combined()], locals={}),
    ),
    (
        "a kernel without groups",
        "IRCall",
        "body[0].body[0].value",
        "lowered",
        lambda: grouped(assign(combined()), workgroup=()),
    ),
    (
        "a reduction that is not the whole value",
        "IRCall",
        "body[0].body[0].value.left",
        "lowered",
        lambda: grouped(assign(ir.IRBinOp("+", combined(), one(), i64))),
    ),
    (
        "block_sum is left",
        "IRCall",
        "body[0].body[0].value",
        "optimized",
        lambda: grouped(assign(combined())),
    ),
    (
        "a kernel without groups",
        "IRActive",
        "body[0].body[0].condition",
        "lowered",
        lambda: grouped(ir.IRIf(ir.IRActive(bool_), []), workgroup=()),
    ),
    (
        "the number of a thread or a group is i32",
        "IRGroupIndex",
        "body[0].body[0].value",
        "typed",
        lambda: grouped(assign(of_lane(dtype=i32), i32), locals={"t": i32}),
    ),
    (
        "lanes beyond the end before there are any",
        "IRActive",
        "body[0].body[0].value",
        "lowered",
        lambda: grouped(assign(ir.IRActive(bool_), bool_), locals={"t": bool_}),
    ),
]


def fragments(*body: ir.Statement, **roles: str) -> ir.IRFunction:
    """A kernel with a matrix m and fragments of these roles."""
    arrays = {name: ir.LocalArray(f32, (8,), fragment=role) for name, role in roles.items()}
    return kernel(
        [array("m", f32, None, None)], body, workgroup=(32,), local_arrays=arrays, locals={}
    )


BROKEN += [
    (
        "no warp along axis 0 of 1",
        "IRGroupIndex",
        "body[0].body[0].value",
        "optimized",
        lambda: grouped(assign(of_lane("warp"))),
    ),
    (
        "the size of a warp is left",
        "IRWarpSize",
        "body[0].body[0].value",
        "optimized",
        lambda: grouped(assign(ir.IRWarpSize(i64))),
    ),
    (
        "the size of a warp is i32",
        "IRWarpSize",
        "body[0].body[0].value",
        "typed",
        lambda: grouped(assign(ir.IRWarpSize(i32), i32), locals={"t": i32}),
    ),
    (
        "'f' is no fragment",
        "IRFragmentLoad",
        "body[0].body[0]",
        "lowered",
        lambda: fragments(ir.IRFragmentLoad("f", "m", [one(), one()])),
    ),
    (
        "'m' is no array of 1 dimensions",
        "IRFragmentStore",
        "body[0].body[0]",
        "lowered",
        lambda: fragments(ir.IRFragmentStore("f", "m", [one()]), f="c"),
    ),
    (
        "a fragment is left that no lane has a part of",
        "IRFragmentLoad",
        "body[0].body[0]",
        "optimized",
        lambda: fragments(ir.IRFragmentLoad("f", "m", [one(), one()]), f="a"),
    ),
    (
        "'x' is no fragment a",
        "IRMma",
        "body[0].body[0]",
        "lowered",
        lambda: fragments(ir.IRMma("c", "x", "b"), c="c", x="b", b="b"),
    ),
    (
        "a product of fragments that no target",
        "IRMma",
        "body[0].body[0]",
        "optimized",
        lambda: fragments(ir.IRMma("c", "a", "b"), c="c", a="a", b="b"),
    ),
]


def test_lanes_beyond_the_end_are_there_from_the_split_on() -> None:
    function = grouped(ir.IRIf(ir.IRActive(bool_), []), locals={})
    verify_ir(function, "localized")
    with pytest.raises(IRVerificationError, match="lanes beyond the end before there are any"):
        verify_ir(function, "typed")
    typed_wrongly = grouped(assign(ir.IRActive(u8), u8), locals={"t": u8})
    with pytest.raises(IRVerificationError, match="whether a lane is an iteration is u8, not bool"):
        verify_ir(typed_wrongly, "localized")


def test_shared_arrays_are_there_from_the_beginning() -> None:
    stored = ir.IRArrayStore("s", [one(0)], ir.IRConstant(0.0, f32))
    array = {"s": ir.LocalArray(f32, (3,), shared=True)}
    verify_ir(grouped(stored, ir.IRBarrier(), local_arrays=array, locals={}), "optimized")


@pytest.mark.parametrize(
    ("words", "kind", "path", "stage", "make"),
    BROKEN,
    ids=[f"{stage}-{words}-{kind}" for words, kind, _, stage, _ in BROKEN],
)
def test_each_check_trips(words: str, kind: str, path: str, stage: str, make: Make) -> None:
    with pytest.raises(IRVerificationError) as caught:
        verify_ir(make(), stage)
    error = caught.value
    assert words in str(error)
    assert (error.kernel, error.stage) == ("test:kernel", stage)
    assert (error.kind, error.path) == (kind, path)


@pytest.mark.parametrize(
    ("words", "stage", "make"),
    [(words, stage, make) for words, _, _, stage, make in BROKEN if stage != "lowered"],
    ids=[f"{stage}-{words}" for words, _, _, stage, _ in BROKEN if stage != "lowered"],
)
def test_and_not_before_its_stage(words: str, stage: str, make: Make) -> None:
    verify_ir(make(), STAGES[STAGES.index(stage) - 1])


def test_a_cycle_is_found() -> None:
    value = ir.IRUnaryOp("-", one(), i64)
    value.operand = value
    with pytest.raises(IRVerificationError, match="cycle"):
        verify_ir(valued(value), "lowered")


def test_an_unknown_kind_is_found() -> None:
    class Strange(ir.Expression):
        pass

    with pytest.raises(IRVerificationError, match="Strange"):
        verify_ir(valued(Strange()), "lowered")


def test_bits_keep_their_width() -> None:
    bits = valued(ir.IRBitcast(one(1, i32), DTYPES["f64"]), DTYPES["f64"])
    with pytest.raises(IRVerificationError, match="the bits of i32 as f64"):
        verify_ir(bits, "decomposed")


def test_a_kernel_has_no_return() -> None:
    assert not [kind for kind in ir.CHILD_FIELDS if "Return" in kind.__name__]
    for value in ("", " 3"):
        with pytest.raises(CompileError, match="a kernel returns nothing"):
            lowered(f"return{value}", "x: i64[:]")


def test_types_come_before_optimization() -> None:
    order = "lowered resolved inferred typed localized optimized decomposed packed"
    assert order.split() == list(STAGES)
    reached = [stage for _, stage in PASSES]
    assert list(dict.fromkeys(reached)) == list(STAGES[1:-1])


def test_an_unknown_stage_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="lowered, resolved"):
        verify_ir(typed(assign(one())), "cooked")


def test_a_shared_expression_is_sound() -> None:
    shared = name("n")
    verify_ir(valued(ir.IRBinOp("+", shared, shared, i64)), "decomposed")


def test_loops_may_be_left_and_continued() -> None:
    body = ir.IRIf(ir.IRConstant(True, bool_), [ir.IRBreak()], [ir.IRContinue()])
    verify_ir(typed(assign(one()), sequential(body), ir.IRContinue(), k=i64), "optimized")


def test_the_host_keeps_operators_of_its_own() -> None:
    extent = ir.IRBinOp("//", name("n"), one(2), i64)
    verify_ir(kernel([scalar("n")], [], extents=[extent]), "decomposed")


@pytest.fixture
def broken_pass(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """After type inference a fault of tack's own; gives the stages that are verified."""
    verified: list[str] = []

    def forget(function: ir.IRFunction) -> ir.IRFunction:
        function.params[0].dtype = None
        return function

    def watched(function: ir.IRFunction, stage: str) -> ir.IRFunction:
        verified.append(stage)
        return verify_ir(function, stage)

    monkeypatch.setattr(pipeline, "PASSES", (*PASSES[:2], (forget, "typed"), *PASSES[3:]))
    monkeypatch.setattr(pipeline, "verify_ir", watched)
    return verified


def test_at_a_call_it_is_the_cause_of_a_runtime_error(
    broken_pass: list[str],
    load: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TACK_CACHE_DIR", str(tmp_path / "cache"))
    compiled: list[object] = []
    for tool in (LlvmCompiler, CCompiler):
        monkeypatch.setattr(tool, "compile", lambda *given: compiled.append(given))
    module = load(
        """
        @tack.kernel
        def kernel(x):
            for i in range(1):
                x[i] = 5
        """
    )
    x = np.zeros(1)
    for _ in range(2):  # and nothing is remembered
        with pytest.raises(RuntimeError, match="a fault of tack's own") as caught:
            module.kernel(x)
        cause = caught.value.__cause__
        assert isinstance(cause, IRVerificationError)
        assert (cause.stage, cause.path) == ("typed", "params[0]")
        assert cause.kernel == f"{module.__name__}:kernel"
    assert broken_pass == ["lowered", "resolved", "inferred", "typed"] * 2
    assert not compiled
    assert x[0] == 0
    entries = [each for each in (tmp_path / "cache").rglob("*") if each.is_file()]
    assert not [each for each in entries if b"kernel" in each.read_bytes()]


def test_a_variant_is_verified_on_its_way_and_a_warm_call_is_not(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TACK_CACHE_DIR", str(tmp_path / "cache"))
    stages: list[str] = []
    for module in (pipeline, compile_):
        monkeypatch.setattr(module, "verify_ir", lambda f, stage: stages.append(stage) or f)
    kernel = load("@tack.kernel\ndef kernel(x):\n    for i in range(1):\n        x[i] += 5").kernel
    x = np.zeros(1)
    kernel(x)
    assert list(dict.fromkeys(stages)) == list(STAGES)
    stages.clear()
    kernel(x)
    assert x[0] == 10
    assert stages == []


def test_what_a_pass_left_alone_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []
    monkeypatch.setattr(pipeline, "verify_ir", lambda _, stage: verified.append(stage))
    pipeline.prepare(lowered("x[i] = x[i] // 2", "x: i32[:]"))
    assert verified == list(STAGES[:-1])
    verified.clear()
    pipeline.prepare(lowered("x[i] = not x[i]", "x: bool[:]"))
    assert verified == [*STAGES[:-1], "decomposed"]


def test_the_passes_reach_their_stages() -> None:
    function = lowered("x[i] = x[i] // 2", "x: i32[:]")
    verify_ir(prepared(function), "decomposed")
