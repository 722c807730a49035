"""Statements as LLVM code: the body of an iteration.

A local that one assignment sets, in front of everything that reads it, is that value; any other
lives in memory, which LLVM turns into registers. What `tack.render.scopes` says of declarations in
C tells which is which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llvmlite import ir

from tack.ir.nodes import (
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBreak,
    IRContinue,
    IRIf,
    IRLocalArray,
    IRPrint,
    IRSequentialFor,
    IRWhile,
    LocalArray,
    Statement,
)
from tack.ir.traversal import assigned_names
from tack.model.dtypes import DType
from tack.render.literals import PRINTED
from tack.render.llvm_atomics import atomic
from tack.render.llvm_code import Code, value_type
from tack.render.llvm_expressions import Bindings, ExpressionWriter, typed
from tack.render.llvm_loops import counted_loop
from tack.render.scopes import Scopes, plan_scopes

__all__ = ["StatementWriter"]


class StatementWriter:
    """Appends the statements of one function to ``code``.

    ``types`` are the locals' types, ``arrays`` the local arrays.
    """

    def __init__(
        self,
        code: Code,
        bindings: Bindings,
        types: Mapping[str, DType],
        arrays: Mapping[str, LocalArray],
    ) -> None:
        self._code = code
        self._builder = code.builder
        self._bindings = bindings
        self._types = types
        self._arrays = arrays
        for name, array in arrays.items():
            bindings.values[name] = code.array(name, array.dtype, array.size)
        self._expressions = ExpressionWriter(code, bindings)
        self._scopes = Scopes()
        self._set_once: set[str] = set()
        self._targets: list[tuple[ir.Block, ir.Block]] = []

    def iteration(self, statements: Sequence[Statement], following: ir.Block) -> None:
        """One iteration of the parallel loop; ``continue`` goes to ``following``."""
        self._scopes = plan_scopes(statements, list(self._types))
        counts = Counter(assigned_names(statements))
        self._set_once = {name for name, count in counts.items() if count == 1}
        self._loop_body(statements, following, following)

    def _loop_body(self, statements: Sequence[Statement], *targets: ir.Block) -> None:
        """The body of a loop, with the blocks that ``continue`` and ``break`` go to."""
        following, done = targets
        self._targets.append((following, done))
        self._block(statements)
        self._targets.pop()

    def _block(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            for name in self._scopes.before.get(id(statement), ()):
                self._set(name, ir.Constant(value_type(self._types[name]), 0))
            self._WRITERS[type(statement)](self, statement)
            if self._code.left:
                break  # nothing reaches the rest

    def _set(self, name: str, value: ir.Value) -> None:
        """Sets a local that lives in memory."""
        places = self._bindings.places
        if name not in places:
            places[name] = self._code.local(name, self._types[name])
        self._builder.store(value, places[name])

    # One method a kind.

    def _assign(self, node: IRAssign) -> None:
        value = self._expressions.value(node.value)
        if id(node) in self._scopes.declaring and node.target in self._set_once:
            self._bindings.values[node.target] = value
        else:
            self._set(node.target, value)

    def _store(self, node: IRArrayStore) -> None:
        value, dtype = self._expressions.value(node.value), typed(node.value)
        address = self._expressions.address(node.array, node.indices, dtype)
        self._code.store(value, address, dtype, self._bindings.alignment(node.array))

    def _make(self, node: IRLocalArray) -> None:
        array = self._arrays[node.array]
        self._code.clear(self._bindings.values[node.array], array.size * array.dtype.itemsize)

    def _atomic(self, node: IRAtomic) -> None:
        dtype = self._types[node.target]
        operands = [node.value] if node.compare is None else [node.compare, node.value]
        values = [self._expressions.value(operand) for operand in operands]
        address = self._expressions.address(node.array, node.indices, dtype)
        old = atomic(self._code, node.op, dtype, address, values)
        if node.target in self._scopes.unread:
            return
        if id(node) in self._scopes.declaring and node.target in self._set_once:
            self._bindings.values[node.target] = old
        else:
            self._set(node.target, old)

    def _print(self, node: IRPrint) -> None:
        form, arguments = node.texts[0].replace("%", "%%"), []
        for value, words, text in zip(node.values, node.words, node.texts[1:], strict=True):
            given = self._expressions.value(value)
            if words is not None:
                one, other = map(self._code.text, words)
                given, conversion = self._builder.select(given, one, other), "%s"
            else:
                conversion, _ = PRINTED[typed(value).name]
                if typed(value).name == "f32":  # C's promotion
                    given = self._builder.fpext(given, ir.DoubleType())
            arguments.append(given)
            form += conversion + text.replace("%", "%%")
        self._code.printf(form, arguments)

    def _if(self, node: IRIf) -> None:
        then, done = self._code.block("then"), self._code.block("done")
        otherwise = self._code.block("else") if node.else_body else done
        self._builder.cbranch(self._expressions.value(node.condition), then, otherwise)
        self._code.enter(then)
        self._block(node.then_body)
        self._code.jump(done)
        if node.else_body:
            self._code.enter(otherwise)
            self._block(node.else_body)
            self._code.jump(done)
        self._code.enter(done)

    def _while(self, node: IRWhile) -> None:
        head, body, done = (self._code.block(f"while_{p}") for p in ("test", "body", "done"))
        self._builder.branch(head)
        self._code.enter(head)
        self._builder.cbranch(self._expressions.value(node.condition), body, done)
        self._code.enter(body)
        self._loop_body(node.body, head, done)
        self._code.jump(head)
        self._code.enter(done)

    def _for(self, node: IRSequentialFor) -> None:
        """A loop over consecutive numbers, whose end the body does not change (``decompose``)."""

        def body(number: ir.Value, following: ir.Block, done: ir.Block) -> None:
            if id(node) in self._scopes.counting:
                self._bindings.values[node.var] = number
            else:
                self._set(node.var, number)
            self._loop_body(node.body, following, done)

        span = self._expressions.value(node.start), self._expressions.value(node.end)
        counted_loop(self._code, node.var, span, body)

    def _break(self, node: IRBreak) -> None:
        self._builder.branch(self._targets[-1][1])

    def _continue(self, node: IRContinue) -> None:
        self._builder.branch(self._targets[-1][0])

    _WRITERS: ClassVar[dict[type[Statement], Callable[[Any, Any], None]]] = {
        IRAssign: _assign,
        IRArrayStore: _store,
        IRAtomic: _atomic,
        IRLocalArray: _make,
        IRPrint: _print,
        IRIf: _if,
        IRWhile: _while,
        IRSequentialFor: _for,
        IRBreak: _break,
        IRContinue: _continue,
    }
