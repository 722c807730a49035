"""Lowering of what a kernel with a ``group`` says of its workgroups."""

from __future__ import annotations

import ast
import math
from typing import Any, Final

from tack.ir.nodes import (
    Expression,
    IRBarrier,
    IRBinOp,
    IRCall,
    IRConstant,
    IRGroupIndex,
    IRName,
    IRWarpSize,
)
from tack.lang import fragments, groups
from tack.lang.lower_inlining import InliningLowering
from tack.model.dtypes import i64

__all__ = ["GROUP_FUNCTIONS", "GroupLowering"]

GROUP_FUNCTIONS: Final[dict[Any, str]] = {
    getattr(groups, name): name
    for name in (
        "barrier",
        "thread_id",
        "group_id",
        "group_size",
        "block_sum",
        "block_min",
        "block_max",
    )
} | {fragments.warp_size: "warp_size", fragments.warp_id: "warp_id"}
"""Function of `tack.lang.groups` that has a value -> its name."""


class GroupLowering(InliningLowering):
    """Lowers barriers, the numbers of iterations and groups, and reductions over a group."""

    def group_function(self, node: ast.Call, name: str) -> Expression:
        """A call of a function of workgroups, which has a value."""
        sizes = self.workgroup_of(node, f"tack.{name}()")
        if name == "barrier":
            raise self.refuse(node, "tack.barrier() is a statement of its own; it gives no value")
        if not self.loop_entered and not name.endswith("_size"):
            raise self.refuse(
                node,
                f"tack.{name}() is about an iteration and its group; write it inside the parallel "
                "loop",
            )
        if name.startswith("block_"):
            return self._reduction(node, name)
        if name.startswith("warp_"):
            if node.args or node.keywords:
                raise self.refuse(node, f"tack.{name}() takes no arguments")
            return IRWarpSize() if name == "warp_size" else IRGroupIndex("warp", 0)
        axis = self._axis(node, name, sizes)
        if name == "group_size":
            return IRConstant(math.prod(sizes) if axis is None else sizes[axis], i64)
        kind = name.removesuffix("_id")
        if axis is not None or len(sizes) == 1:
            return IRGroupIndex(kind, axis or 0)
        if kind == "group":
            raise self.refuse(
                node,
                f"this kernel has groups along {len(sizes)} axes; say which one, as in "
                "tack.group_id(0)",
            )
        number: Expression = self.at(node, IRGroupIndex(kind, 0))
        for axis, size in enumerate(sizes[1:], start=1):
            scaled = self.at(node, IRBinOp("*", number, self.at(node, IRConstant(size, i64))))
            number = self.at(node, IRBinOp("+", scaled, self.at(node, IRGroupIndex(kind, axis))))
        return number

    def barrier(self, node: ast.Call) -> None:
        """The statement ``tack.barrier()``."""
        self.workgroup_of(node, "tack.barrier()")
        if node.args or node.keywords:
            raise self.refuse(node, "tack.barrier() takes no arguments")
        self.emit(node, IRBarrier())

    def _axis(self, node: ast.Call, name: str, sizes: tuple[int, ...]) -> int | None:
        given = [*node.args, *(each.value for each in node.keywords if each.arg == "axis")]
        if len(given) > 1 or len(given) < len(node.args) + len(node.keywords):
            raise self.refuse(node, f"tack.{name}() takes one axis, or nothing")
        if not given:
            return None
        axis = self.constant_of(self.expression(given[0]))
        if axis is None or not 0 <= axis < len(sizes):
            known = ", ".join(map(str, range(len(sizes))))
            raise self.refuse(
                given[0],
                f"an axis is that of an index of the parallel loop, a literal of {known}",
            )
        return axis

    def _reduction(self, node: ast.Call, name: str) -> Expression:
        if len(node.args) != 1 or node.keywords:
            raise self.refuse(node, f"tack.{name}() takes one number")
        value = self.expression(node.args[0])
        target = self.fresh(name)
        self.emit_assign(node, target, self.at(node, IRCall(name, [value])))
        return IRName(target)
