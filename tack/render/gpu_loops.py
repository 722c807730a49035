"""The loops of a GPU's thread: over the whole grid along every axis, by iterations or by groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tack.ir.nodes import IRFunction
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import i64
from tack.render.names import Names
from tack.render.slots import SlotNames
from tack.render.statements import BARRIER, INDENT, BodyWriter

if TYPE_CHECKING:
    from tack.render.gpu import GpuDialect

__all__ = ["group_loops", "thread_loops"]

_AXES: Final = "xyz"


def thread_loops(
    dialect: GpuDialect,
    function: IRFunction,
    writer: BodyWriter,
    names: Names,
    slots: SlotNames,
    *,
    begin: str | None = None,
) -> Iterator[str]:
    """The lines of the loops that run the iterations of one thread.

    ``begin`` names where they start along the fastest axis, if not at 0.
    """
    kind, loop = dialect.language.type(i64), kernel_loop(function)
    depth = len(loop.index_vars)
    for number, var in enumerate(loop.index_vars):
        axis = _AXES[depth - 1 - number]
        index, lead = names.local(var), INDENT * (number + 1)
        first, step = dialect.first.format(axis), dialect.step.format(axis)
        if function.workgroup:  # an author may want no barriers; the threads know their lanes
            size, lane = function.workgroup[number], dialect.lane.format(axis)
            first = f"({kind}){dialect.group.format(axis)} * {size} + {lane}"
            step = f"({kind}){dialect.groups.format(axis)} * {size}"
        end = slots.count(number)
        if number == depth - 1 and begin is not None:
            first = f"{begin} + {first}"
        if number == depth - 1 and loop.lanes > 1:
            lanes = dialect.language.integer_literal["i64"].format(loop.lanes)
            first, step = (f"{lanes} * ({each})" for each in (first, step))
            full = names.fresh(f"{var}_end")
            yield f"{lead}const {kind} {full} = {end} - {end} % {loop.lanes};"
            end = full
        stride = names.fresh(f"{var}_step")
        yield f"{lead}const {kind} {stride} = {step};"
        yield f"{lead}for ({kind} {index} = {first}; {index} < {end}; {index} += {stride}) {{"
    yield from writer.body(loop.body, depth + 1)
    for number in reversed(range(depth)):
        yield f"{INDENT * (number + 1)}}}"


def group_loops(
    dialect: GpuDialect,
    function: IRFunction,
    writer: BodyWriter,
    names: Names,
    slots: SlotNames,
) -> Iterator[str]:
    """The lines of the loops that run the groups of one thread, and its lane of each.

    Where the next group's arrays lie where those of the last one did, its lanes wait for all.
    """
    kind, loop = dialect.language.type(i64), kernel_loop(function)
    depth = len(loop.index_vars)
    waits = any(array.shared for array in function.local_arrays.values())
    inside: list[str] = []
    for number, var in enumerate(loop.index_vars):
        axis = _AXES[depth - 1 - number]
        lane, group = slots.place("thread", number), slots.place("group", number)
        size, count = function.workgroup[number], slots.count(number)
        after = f", {BARRIER}" if waits and number == depth - 1 else ""
        first, step = dialect.group.format(axis), dialect.groups.format(axis)
        yield f"{INDENT * (number + 1)}const {kind} {lane} = {dialect.lane.format(axis)};"
        yield (
            f"{INDENT * (number + 1)}for ({kind} {group} = {first}; {group} * {size} < {count}; "
            f"{group} += {step}{after}) {{"
        )
        inside.append(f"const {kind} {names.local(var)} = {group} * {size} + {lane};")
    body = writer.body(loop.body, depth + 1)
    for warp in slots.lanes:
        first = f" - {slots.place('thread', 0)} % {warp}" if warp else ""
        ends = (
            f"{names.local(v)}{first} < {slots.count(k)}" for k, v in enumerate(loop.index_vars)
        )
        inside.append(f"const bool {slots.active(warp)} = {' && '.join(ends)};")
    yield from (f"{INDENT * (depth + 1)}{line}" for line in inside)
    yield from body
    for number in reversed(range(depth)):
        yield f"{INDENT * (number + 1)}}}"
