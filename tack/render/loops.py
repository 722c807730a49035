"""The parallel loop on a CPU: iterations ``[begin, end)`` as plain C loops.

The innermost loop runs along one row of the fastest index, so that a compiler can vectorize it;
the linear number is divided once, before the first row, never in an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

from tack.ir.nodes import IRParallelFor
from tack.render.names import Names
from tack.render.slots import SlotNames
from tack.render.statements import INDENT, BodyWriter

__all__ = ["parallel_loop"]


def parallel_loop(
    loop: IRParallelFor, writer: BodyWriter, names: Names, slots: SlotNames
) -> list[str]:
    """The lines that run the iterations from ``begin`` up to ``end``.

    ``slots`` gives the extent of every dimension but the slowest.
    """
    if len(loop.index_vars) == 1:
        return list(_row(loop, writer, names, ("begin", "end"), depth=1))
    return list(_rows(loop, writer, names, slots))


def _row(
    loop: IRParallelFor, writer: BodyWriter, names: Names, span: tuple[str, str], depth: int
) -> Iterator[str]:
    """One loop over the fastest index, from the first of ``span`` up to the second."""
    first, end = span
    lead = INDENT * depth
    index = names.local(loop.index_vars[-1])
    yield f"{lead}for (int64_t {index} = {first}; {index} < {end}; ++{index}) {{"
    yield from writer.body(loop.body, depth + 1)
    yield f"{lead}}}"


def _rows(loop: IRParallelFor, writer: BodyWriter, names: Names, slots: SlotNames) -> Iterator[str]:
    """Rows from the one that holds ``begin`` on, the first and the last possibly in part."""
    *outer, _ = (names.local(var) for var in loop.index_vars)
    *_, fastest = loop.index_vars
    width = slots.count(len(outer))
    first, stop = names.fresh(f"{fastest}_first"), names.fresh(f"{fastest}_stop")
    left = names.fresh("left")
    yield f"{INDENT}if (begin >= end) {{"
    yield f"{INDENT * 2}return;"
    yield f"{INDENT}}}"
    yield f"{INDENT}int64_t {first} = begin % {width};"
    if len(outer) == 1:
        yield f"{INDENT}int64_t {outer[0]} = begin / {width};"
    else:
        yield f"{INDENT}int64_t {outer[1]} = begin / {width} % {slots.count(1)};"
        yield f"{INDENT}int64_t {outer[0]} = begin / {width} / {slots.count(1)};"
    yield f"{INDENT}for (int64_t {left} = end - begin; {left} > 0;) {{"
    inside = INDENT * 2
    yield (
        f"{inside}const int64_t {stop} = {left} < {width} - {first} ? {first} + {left} : {width};"
    )
    yield f"{inside}{left} -= {stop} - {first};"
    yield from _row(loop, writer, names, (first, stop), depth=2)
    yield f"{inside}{first} = 0;"
    if len(outer) == 1:
        yield f"{inside}++{outer[0]};"
    else:
        yield f"{inside}if (++{outer[1]} == {slots.count(1)}) {{"
        yield f"{inside}{INDENT}{outer[1]} = 0;"
        yield f"{inside}{INDENT}++{outer[0]};"
        yield f"{inside}}}"
    yield f"{INDENT}}}"
