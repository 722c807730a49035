"""type: a dtype on every expression, every conversion an explicit cast, every literal settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRBreak,
    IRCast,
    IRContinue,
    IRFragmentLoad,
    IRFragmentStore,
    IRFunction,
    IRIf,
    IRLocalArray,
    IRMma,
    IRName,
    IRNode,
    IRParallelFor,
    IRPrint,
    IRSequentialFor,
    IRWhile,
    Statement,
)
from tack.ir.traversal import transform_ir
from tack.model.dtypes import i64
from tack.passes.expressions import Typer
from tack.passes.infer import name_types
from tack.passes.printing import printed

__all__ = ["annotate_types"]


def annotate_types(function: IRFunction) -> IRFunction:
    """Types ``function`` in place; `CompileError` with advice for what the language refuses."""
    _Annotator(function).body(function.body)
    return function


class _Annotator:
    def __init__(self, function: IRFunction) -> None:
        self.function = function
        self.typer = Typer(function, name_types(function))
        self.dtypes = {name: array.dtype for name, array in function.arrays.items()}

    def body(self, statements: list[Statement]) -> None:
        for statement in statements:
            self.typer.at(statement)
            _STATEMENTS[type(statement)](self, statement)

    def assign(self, node: IRAssign) -> None:
        dtype = self.function.locals[node.target]
        node.resolved_type = dtype
        if node.target in self.function.indices:
            node.value = self.typer.index(node.value, "an index")
        elif node.target in self.function.declared:
            name = node.target.split(".")[0]
            node.value = self.typer.store(node.value, dtype, f"{name!r}")
        else:
            node.value = self.typer.convert(self.typer.visit(node.value), dtype)

    def store(self, node: IRArrayStore) -> None:
        dtype = self.dtypes[node.array]
        assert dtype is not None
        array = self.typer.spoken(node.array)
        what = f"an index of {array}"
        node.indices = [self.typer.index(index, what) for index in node.indices]
        node.value = self.typer.store(node.value, dtype, f"an element of {array}")

    def atomic(self, node: IRAtomic) -> None:
        dtype, array = self.typer.element(node.array), self.typer.spoken(node.array)
        what, element = f"an index of {array}", f"an element of {array}"
        node.indices = [self.typer.index(index, what) for index in node.indices]
        node.value = self.typer.store(node.value, dtype, element)
        if node.compare is not None:
            node.compare = self.typer.store(node.compare, dtype, element)

    def fragment(self, node: IRFragmentLoad | IRFragmentStore) -> None:
        what = f"an index of {self.typer.spoken(node.array)}"
        node.indices = [self.typer.index(index, what) for index in node.indices]

    def print_(self, node: IRPrint) -> None:
        texts, shown = node.texts[:1], list[tuple[Expression, tuple[str, str] | None]]()
        for value, text in zip(node.values, node.texts[1:], strict=True):
            typed = self.typer.visit(value)
            parts = list(printed(self.typer.settle(typed)))
            shown += parts
            texts += [*[""] * (len(parts) - 1), text]
        node.texts, node.values = texts, [value for value, _ in shown]
        node.words = [words for _, words in shown]

    def branch(self, node: IRIf) -> None:
        node.condition = self.typer.condition(node.condition)
        self.body(node.then_body)
        self.body(node.else_body)

    def while_loop(self, node: IRWhile) -> None:
        node.condition = self.typer.condition(node.condition)
        self.body(node.body)

    def for_loop(self, node: IRSequentialFor) -> None:
        what = "an argument of range"
        node.start = self.typer.bound(node.start, what)
        node.end = self.typer.bound(node.end, what)
        node.step = self.typer.bound(node.step, what)
        self.body(node.body)
        if self.function.locals[node.var] is not i64:
            self.separate(node)

    def separate(self, node: IRSequentialFor) -> None:
        """Gives the loop an i64 variable of its own where ``var`` has another type."""
        name, dtype = node.var, self.function.locals[node.var]
        node.var = fresh_name(self.function, f"{name}.index")
        self.function.locals[node.var] = i64
        value = IRCast(IRName(node.var, i64), dtype)
        node.body.insert(0, IRAssign(name, value, dtype))

    def parallel(self, node: IRParallelFor) -> None:
        extents = [
            self.typer.bound(extent, "an extent of the parallel loop") for extent in node.extents
        ]
        self.body(node.body)
        node.extents = [self.known_before(extent, node.body) for extent in extents]

    def known_before(self, extent: Expression, body: list[Statement]) -> Expression:
        """``extent`` in terms of parameters and shapes: what else it reads is set in the body."""
        values = {s.target: s.value for s in reversed(body) if isinstance(s, IRAssign)}

        def replace(node: IRNode) -> IRNode:
            if isinstance(node, IRName) and node.name in values:
                return self.known_before(values[node.name], body)
            return node

        result = transform_ir(extent, replace, copy_nodes=True, positions=self.function.positions)
        assert isinstance(result, Expression)
        return result

    def nothing(self, node: Statement) -> None:
        pass


_STATEMENTS: Final[dict[type[IRNode], Callable[..., None]]] = {
    IRAssign: _Annotator.assign,
    IRArrayStore: _Annotator.store,
    IRAtomic: _Annotator.atomic,
    IRLocalArray: _Annotator.nothing,
    IRBarrier: _Annotator.nothing,
    IRFragmentLoad: _Annotator.fragment,
    IRFragmentStore: _Annotator.fragment,
    IRMma: _Annotator.nothing,
    IRPrint: _Annotator.print_,
    IRIf: _Annotator.branch,
    IRWhile: _Annotator.while_loop,
    IRSequentialFor: _Annotator.for_loop,
    IRParallelFor: _Annotator.parallel,
    IRBreak: _Annotator.nothing,
    IRContinue: _Annotator.nothing,
}


def fresh_name(function: IRFunction, stem: str) -> str:
    """A name that nothing in ``function`` has; it holds a dot, which no Python name does."""
    taken = {param.name for param in function.params} | set(function.locals)
    number = 1
    while f"{stem}.{number}" in taken:
        number += 1
    return f"{stem}.{number}"
