"""Loops as LLVM code: over consecutive numbers, and the parallel loop by rows.

As in `tack.render.loops`, the innermost loop runs along one row of the fastest index, so that LLVM
can vectorize it; the linear number is divided once, before the first row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from tack.render.llvm_code import INDEX, Code
from tack.render.names import ascii_identifier

__all__ = ["counted_loop", "parallel_loop"]

Span = tuple[ir.Value, ir.Value]
"""From the first number up to the second, which is excluded."""


def counted_loop(
    code: Code, name: str, span: Span, body: Callable[[ir.Value, ir.Block, ir.Block], None]
) -> None:
    """``body`` for each number of ``span``; it is given where ``continue`` and ``break`` go too."""
    builder, (first, end) = code.builder, span
    start, step, done = (code.block(f"{name}_{part}") for part in ("loop", "next", "done"))
    before = builder.block
    builder.cbranch(builder.icmp_signed("<", first, end), start, done)
    code.enter(start)
    number = builder.phi(INDEX, ascii_identifier(name))
    number.add_incoming(first, before)
    body(number, step, done)
    code.jump(step)
    code.enter(step)
    following = builder.add(number, code.index(1), flags=("nsw",))  # it is `end` at most
    number.add_incoming(following, step)
    builder.cbranch(builder.icmp_signed("<", following, end), start, done)
    code.enter(done)


def parallel_loop(
    code: Code,
    names: Sequence[str],
    span: Span,
    counts: Sequence[ir.Value],
    iteration: Callable[[Sequence[ir.Value], ir.Block], None],
) -> None:
    """``iteration`` for each linear number of ``span``, with its indices, called ``names``.

    ``counts`` are the extents of every dimension but the slowest. ``iteration`` is also given where
    ``continue`` goes.
    """
    *_, fastest = names

    def row(outer: Sequence[ir.Value], part: Span) -> None:
        counted_loop(
            code, fastest, part, lambda index, following, _: iteration([*outer, index], following)
        )

    if counts:
        _rows(code, names, span, counts, row)
    else:
        row([], span)


def _rows(
    code: Code,
    names: Sequence[str],
    span: Span,
    counts: Sequence[ir.Value],
    row: Callable[[Sequence[ir.Value], Span], None],
) -> None:
    """Rows from the one that holds the first number on, the first and the last possibly in part."""
    builder, (begin, end) = code.builder, span
    *middle, width = counts
    some, rows, done = (code.block(name) for name in ("some", "rows", "rows_done"))
    builder.cbranch(builder.icmp_signed("<", begin, end), some, done)
    code.enter(some)
    starts = [builder.sub(end, begin), builder.urem(begin, width), builder.udiv(begin, width)]
    if middle:
        line = starts.pop()
        starts += [builder.udiv(line, middle[0]), builder.urem(line, middle[0])]
    builder.branch(rows)
    code.enter(rows)
    labels = ("left", f"{names[-1]}_first", *names[:-1])
    phis = [builder.phi(INDEX, ascii_identifier(label)) for label in labels]
    left, first, *outer = phis
    room = builder.sub(width, first)
    length = builder.select(builder.icmp_signed("<", left, room), left, room)
    row(outer, (first, builder.add(first, length)))
    following = [builder.sub(left, length), code.index(0), *_next_row(code, outer, middle)]
    for phi, start, value in zip(phis, starts, following, strict=True):
        phi.add_incoming(start, some)
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed(">", following[0], code.index(0)), rows, done)
    code.enter(done)


def _next_row(
    code: Code, outer: Sequence[ir.Value], middle: Sequence[ir.Value]
) -> Sequence[ir.Value]:
    """The slower indices of the row after that of ``outer``; ``middle`` is the middle extent."""
    builder = code.builder
    *slowest, last = outer
    following = builder.add(last, code.index(1))
    if not middle:
        return [following]
    wraps = builder.icmp_signed("==", following, middle[0])
    carried = builder.add(slowest[0], builder.zext(wraps, INDEX))
    return [carried, builder.select(wraps, code.index(0), following)]
