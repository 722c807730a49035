"""optimize: constants and copies go where they are read, and what has no effect is dropped.

The meaning of every race-free program stays: no load moves, and nothing leaves its guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRBreak,
    IRConstant,
    IRContinue,
    IRFunction,
    IRIf,
    IRLocalArray,
    IRMma,
    IRName,
    IRNode,
    IRPrint,
    IRSequentialFor,
    IRUnaryOp,
    IRWhile,
    Statement,
)
from tack.ir.positions import Positions
from tack.ir.traversal import assigned_names, kernel_loop, read_names, transform_ir, walk_ir
from tack.model.dtypes import bool_
from tack.passes.fold import fold
from tack.passes.localize import localize

__all__ = ["optimize"]

Copies = dict[str, "IRName | IRConstant"]
"""Local -> what it is known to be equal to here."""


def optimize(function: IRFunction) -> IRFunction:
    """Simplifies ``function`` in place until nothing changes."""
    before = -1
    while before != (before := _size(function)):
        _Simplifier(function).run()
        localize(function)
    return function


def _size(function: IRFunction) -> int:
    return sum(1 for _ in walk_ir(function))


class _Simplifier:
    """One walk in the order of evaluation, with what is known about locals on the way."""

    def __init__(self, function: IRFunction) -> None:
        self.function = function
        self.positions: Positions = function.positions
        self.read = set(read_names(function))
        self.copies: Copies | None = {}
        self.readers: dict[str, set[str]] = {}  # name -> the locals that were ever copies of it

    def run(self) -> None:
        loop = kernel_loop(self.function)
        loop.extents = [self.expression(extent) for extent in loop.extents]
        loop.body = self.body(loop.body)

    def body(self, statements: Sequence[Statement]) -> list[Statement]:
        """The statements that remain; ``copies`` is None after them if they never end."""
        kept: list[Statement] = []
        for statement in statements:
            kept += _STATEMENTS[type(statement)](self, statement)
            if self.copies is None:
                break
        return kept

    def expression(self, node: Expression) -> Expression:
        def rewrite(inner: IRNode) -> IRNode | None:
            if isinstance(inner, IRName):
                known = (self.copies or {}).get(inner.name)
                return None if known is None else _again(known)
            return fold(inner)

        result = transform_ir(node, rewrite, positions=self.positions)
        assert isinstance(result, Expression)
        return result

    def forget(self, names: Iterable[str]) -> None:
        """``names`` get new values: what was known about or through them is void."""
        copies = self.copies or {}
        for gone in names:
            copies.pop(gone, None)
            for name in self.readers.get(gone, ()):
                known = copies.get(name)
                if isinstance(known, IRName) and known.name == gone:
                    del copies[name]
        self.copies = copies

    def assign(self, node: IRAssign) -> list[Statement]:
        node.value = self.expression(node.value)
        if isinstance(node.value, IRName) and node.value.name == node.target:
            return []
        self.forget([node.target])
        if isinstance(node.value, IRName | IRConstant):
            assert self.copies is not None
            self.copies[node.target] = node.value
            if isinstance(node.value, IRName):
                self.readers.setdefault(node.value.name, set()).add(node.target)
        return [node]

    def store(self, node: IRArrayStore) -> list[Statement]:
        node.indices = [self.expression(index) for index in node.indices]
        node.value = self.expression(node.value)
        return [node]

    def atomic(self, node: IRAtomic) -> list[Statement]:
        node.indices = [self.expression(index) for index in node.indices]
        if node.compare is not None:
            node.compare = self.expression(node.compare)
        node.value = self.expression(node.value)
        self.forget([node.target])
        return [node]

    def print_(self, node: IRPrint) -> list[Statement]:
        node.values = [self.expression(value) for value in node.values]
        return [node]

    def keep(self, node: Statement) -> list[Statement]:
        return [node]

    def branch(self, node: IRIf) -> list[Statement]:
        node.condition = self.expression(node.condition)
        if isinstance(node.condition, IRConstant):
            return self.body(node.then_body if node.condition.value else node.else_body)
        before = dict(self.copies or {})
        node.then_body = self.body(node.then_body)
        after_then, self.copies = self.copies, before
        node.else_body = self.body(node.else_body)
        self.copies = _both(after_then, self.copies)
        if not node.then_body and not node.else_body:
            return []
        if not node.then_body:
            node.condition = IRUnaryOp("not", node.condition, bool_)
            node.then_body, node.else_body = node.else_body, []
        return [node]

    def while_loop(self, node: IRWhile) -> list[Statement]:
        self.forget(assigned_names(node.body))
        around = dict(self.copies or {})
        node.condition = self.expression(node.condition)
        if isinstance(node.condition, IRConstant) and not node.condition.value:
            return []
        node.body = self.body(node.body)
        self.copies = around
        return [node]

    def for_loop(self, node: IRSequentialFor) -> list[Statement]:
        node.start = self.expression(node.start)
        node.end = self.expression(node.end)
        node.step = self.expression(node.step)
        if _never_runs(node):
            return []
        self.forget([node.var, *assigned_names(node.body)])
        around = dict(self.copies or {})
        node.body = self.body(node.body)
        self.copies = around
        return [node] if node.body or node.var in self.read else []

    def leave(self, node: Statement) -> list[Statement]:
        self.copies = None
        return [node]


def _never_runs(node: IRSequentialFor) -> bool:
    arguments = (node.start, node.end, node.step)
    values = [int(arg.value) for arg in arguments if isinstance(arg, IRConstant)]
    return len(values) == len(arguments) and (values[2] == 0 or not range(*values))


def _again(known: IRName | IRConstant) -> IRName | IRConstant:
    """A node of its own for each place."""
    if isinstance(known, IRName):
        return IRName(known.name, known.dtype)
    return IRConstant(known.value, known.dtype)


def _both(one: Copies | None, other: Copies | None) -> Copies | None:
    """What is known where two paths meet."""
    if one is None or other is None:
        return other if one is None else one
    return {name: known for name, known in one.items() if other.get(name) is known}


_STATEMENTS: Final[dict[type[IRNode], Callable[..., list[Statement]]]] = {
    IRAssign: _Simplifier.assign,
    IRArrayStore: _Simplifier.store,
    IRAtomic: _Simplifier.atomic,
    IRLocalArray: _Simplifier.keep,
    IRBarrier: _Simplifier.keep,
    IRMma: _Simplifier.keep,
    IRPrint: _Simplifier.print_,
    IRIf: _Simplifier.branch,
    IRWhile: _Simplifier.while_loop,
    IRSequentialFor: _Simplifier.for_loop,
    IRBreak: _Simplifier.leave,
    IRContinue: _Simplifier.leave,
}
