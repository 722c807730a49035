"""Trees that break an invariant of the IR, for `test_ir_verify`, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable

from ir_building import array, binary, kernel, name, scalar

from tack.ir import nodes as ir
from tack.model.dtypes import DTYPES, DType, bool_, f32, i8, i32, i64, u8

__all__ = [
    "BROKEN",
    "LOCAL",
    "SHARED",
    "Make",
    "assign",
    "loop",
    "one",
    "sequential",
    "set_body",
    "typed",
    "valued",
    "weak",
    "with_function",
]

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
