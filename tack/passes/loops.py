"""Sequential loops with a step other than 1, as loops that count their rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tack.ir.nodes import Expression, IRName, IRSequentialFor
from tack.model.dtypes import DType, i64, u64
from tack.passes.build import cast, compare, constant, literal, negative, operate, select
from tack.passes.intervals import Intervals

if TYPE_CHECKING:
    from tack.passes.decompose import Block

__all__ = ["counted_loop"]


def counted_loop(node: IRSequentialFor, out: Block, intervals: Intervals) -> None:
    """Turns ``for var in range(start, end, step)`` into a loop over the number of its round.

    ``var`` is ``start + round * step``, which is in range and cannot overflow. A step of 0 runs
    nothing. The rounds can be 2^64 - 1, more than i64 holds and more than ever end: they are
    limited to the greatest i64. Start, end and step may be read more than once; start and step keep
    their values while the loop runs.
    """
    start, end, step = node.start, node.end, node.step
    natural = intervals.is_natural(start) and intervals.is_natural(end)
    rounds = out.hold(_rounds(start, end, step, natural))
    var, number = node.var, out.local(i64, "round")
    value = operate("+", start, operate("*", number, step))
    body = out.inner()
    body.assign(IRName(var, i64), value)
    node.var, node.body = number.name, [*body.statements, *node.body]
    node.start, node.end, node.step = constant(0, i64), rounds, constant(1, i64)


def _rounds(start: Expression, end: Expression, step: Expression, natural: bool) -> Expression:
    known = literal(step)
    nothing = constant(0, i64)
    if known == 0:
        return nothing
    if known is not None:
        bounds = (start, end) if known > 0 else (end, start)
        return _one_way(bounds, step, known > 0, natural)
    up = _one_way((start, end), step, True, natural)
    down = _one_way((end, start), step, False, natural)
    return select(compare(">", step, 0), up, select(compare("<", step, 0), down, nothing))


def _one_way(
    bounds: tuple[Expression, Expression], step: Expression, upward: bool, natural: bool
) -> Expression:
    """The rounds of a loop whose step has a known sign: 1 + (distance - 1) / |step|."""
    (low, high), nothing = bounds, constant(0, i64)
    known = literal(step)
    if known is not None and natural:
        distance = operate("-", high, low)
        jumps = _jumps(distance, abs(known), i64)
        return select(compare("<", low, high), operate("+", jumps, constant(1, i64)), nothing)
    distance = operate("-", cast(high, u64), cast(low, u64))
    if known is not None:
        jumps = _jumps(distance, abs(known), u64)
    else:
        size = step if upward else negative(step)
        before = operate("-", distance, constant(1, u64))
        jumps = operate("cdiv", before, cast(size, u64))
    limited = select(
        compare("<", jumps, constant(i64.maximum, u64)),
        operate("+", cast(jumps, i64), constant(1, i64)),
        constant(i64.maximum, i64),
    )
    return select(compare("<", low, high), limited, nothing)


def _jumps(distance: Expression, step: int, dtype: DType) -> Expression:
    """How many whole steps lie between the first value and the last."""
    before = operate("-", distance, constant(1, dtype))
    return before if step == 1 else operate("cdiv", before, constant(step, dtype))
