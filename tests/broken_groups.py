"""Trees that break an invariant of workgroups or fragments, for `test_ir_verify`."""

from __future__ import annotations

from typing import Any

from broken_ir import (
    Make,
    assign,
    one,
)
from ir_building import array, kernel

from tack.ir import nodes as ir
from tack.model.dtypes import DType, bool_, f32, i32, i64

__all__ = [
    "GROUP",
    "WITH_FRAGMENTS",
    "WITH_GROUPS",
    "combined",
    "fragments",
    "grouped",
    "of_lane",
    "shared",
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


WITH_GROUPS: list[tuple[str, str, str, str, Make]] = [
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


WITH_FRAGMENTS: list[tuple[str, str, str, str, Make]] = [
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
