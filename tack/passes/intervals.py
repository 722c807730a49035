"""What is plain to see about the range of an integer expression, to leave out fix-ups.

Facts hold wherever an expression stands: they come from types, literals, extents, loop indices, and
locals that are assigned once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar, Final

from tack.ir.nodes import (
    Expression,
    IRAssign,
    IRBinOp,
    IRCall,
    IRCast,
    IRConstant,
    IRDimSize,
    IRFunction,
    IRGroupIndex,
    IRIfExp,
    IRName,
    IRNode,
    IRParallelFor,
    IRSequentialFor,
)
from tack.ir.traversal import assigned_names, statements_of
from tack.model.dtypes import i64
from tack.passes.build import dtype_of

__all__ = ["Interval", "Intervals"]

Interval = tuple[int, int]
"""The least and the greatest value."""


class Intervals:
    """The ranges of the expressions of a typed function."""

    def __init__(self, function: IRFunction) -> None:
        counts = Counter(assigned_names(function))
        self._workgroup = function.workgroup
        self._names: dict[str, Interval] = {}
        self._values: dict[str, Expression] = {}
        self._loops: dict[str, IRSequentialFor] = {}
        for statement in statements_of(function):
            if isinstance(statement, IRParallelFor):
                indices = dict.fromkeys(statement.index_vars, (0, i64.maximum - 1))
                self._names.update(indices)
            elif isinstance(statement, IRAssign) and counts[statement.target] == 1:
                self._values[statement.target] = statement.value
            elif isinstance(statement, IRSequentialFor) and counts[statement.var] == 1:
                self._loops[statement.var] = statement
        for name in [*self._values, *self._loops]:
            self._settle(name)

    def of(self, node: Expression) -> Interval:
        """The range of an integer or bool expression."""
        dtype = dtype_of(node)
        whole = (dtype.minimum, dtype.maximum)
        rule = self._RULES.get(type(node))
        found = None if rule is None else rule(self, node)
        if found is None or found[0] < whole[0] or found[1] > whole[1]:
            return whole
        return found

    def is_natural(self, node: Expression) -> bool:
        """Whether an expression is never negative."""
        return self.of(node)[0] >= 0

    def _constant(self, node: IRConstant) -> Interval:
        return int(node.value), int(node.value)

    def _dim_size(self, node: IRDimSize) -> Interval:
        return 0, i64.maximum

    def _group_index(self, node: IRGroupIndex) -> Interval:
        return 0, self._workgroup[node.axis] - 1 if node.kind == "thread" else i64.maximum

    def _name(self, node: IRName) -> Interval | None:
        self._settle(node.name)
        return self._names.get(node.name)

    def _settle(self, name: str) -> None:
        """Works out the range of a local that is set once; popping it first ends recursion."""
        value, loop = self._values.pop(name, None), self._loops.pop(name, None)
        if value is not None and not dtype_of(value).is_float:
            self._names[name] = self.of(value)
        elif loop is not None:
            self._names[name] = self._range(loop)

    def _range(self, loop: IRSequentialFor) -> Interval:
        start, end, step = self.of(loop.start), self.of(loop.end), self.of(loop.step)
        if step[0] >= 0:
            return start[0], max(end[1] - 1, start[0])
        if step[1] <= 0:
            return min(end[0] + 1, start[1]), start[1]
        return i64.minimum, i64.maximum

    def _cast(self, node: IRCast) -> Interval | None:
        return None if dtype_of(node.value).is_float else self.of(node.value)

    def _choice(self, node: IRIfExp) -> Interval:
        one, other = self.of(node.then_value), self.of(node.else_value)
        return min(one[0], other[0]), max(one[1], other[1])

    def _call(self, node: IRCall) -> Interval | None:
        if node.function not in ("min", "max"):
            return None
        pick = min if node.function == "min" else max
        one, other = self.of(node.args[0]), self.of(node.args[1])
        return pick(one[0], other[0]), pick(one[1], other[1])

    def _binary(self, node: IRBinOp) -> Interval | None:
        rule = _OPERATORS.get(node.op)
        return None if rule is None else rule(self.of(node.left), self.of(node.right))

    _RULES: ClassVar[dict[type[IRNode], Callable[..., Interval | None]]] = {
        IRConstant: _constant,
        IRDimSize: _dim_size,
        IRGroupIndex: _group_index,
        IRName: _name,
        IRCast: _cast,
        IRIfExp: _choice,
        IRCall: _call,
        IRBinOp: _binary,
    }


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _floor_quotient(a: Interval, b: Interval) -> Interval | None:
    if a[0] < 0 or b[0] < 0:
        return None
    return 0, a[1] // max(b[0], 1)


def _remainder(a: Interval, b: Interval) -> Interval | None:
    """The sign of the divisor; 0 where that is 0; no more than a natural dividend."""
    if b[0] < 0:
        return None
    bound = max(b[1] - 1, 0)
    return 0, min(bound, a[1]) if a[0] >= 0 else bound


def _mask(a: Interval, b: Interval) -> Interval | None:
    bounds = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(bounds)) if bounds else None


_OPERATORS: Final[dict[str, Callable[[Interval, Interval], Interval | None]]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _product,
    "//": _floor_quotient,
    "%": _remainder,
    "&": _mask,
    ">>": lambda a, b: (0, a[1]) if a[0] >= 0 else None,
}
