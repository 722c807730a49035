"""Lowering of bodies of inlined functions: their returns, and what runs on paths without one."""

from __future__ import annotations

import ast
from functools import lru_cache

from tack.ir.nodes import (
    IRConstant,
    IRIf,
    IRName,
    IRUnaryOp,
)
from tack.lang.lower_base import (
    Frame,
)
from tack.lang.lower_calls import CallLowering
from tack.lang.vectors import (
    Value,
    names_of,
    shape_of_value,
)
from tack.model.dtypes import bool_
from tack.model.spelling import counted

__all__ = ["ReturnLowering"]


class ReturnLowering(CallLowering):
    """Lowers statement lists, which a return may leave early."""

    def block(self, statements: list[ast.stmt]) -> None:
        """Lowers a statement list; after a return on some paths, the rest runs on the others."""
        for position, statement in enumerate(statements):
            if isinstance(statement, ast.If) and _has_return(statement):
                self._returning_if(statement, statements[position + 1 :])
                return
            self.statement(statement)

    def function_body(self, frame: Frame) -> list[Value]:
        """Emits the body of the inlined function ``frame`` and gives its results."""
        statements = frame.definition.source.node.body
        last, entered = statements[-1], self.assigned
        if isinstance(last, ast.Return) and not any(map(_has_return, statements[:-1])):
            self.block(statements[:-1])
            return self._results(last)
        self.block(statements)
        results = frame.results or []
        if results and self.assigned is not None:
            raise self.refuse(
                last,
                f"{frame.definition.function.__name__}() can end without a return, and a "
                "value is needed; return one on every path",
            )
        names = {name for result in results for name in names_of(result)}
        self.assigned = None if entered is None else entered | names
        return [self.read(result) for result in results]

    def _results(self, node: ast.Return) -> list[Value]:
        """The values that a return gives."""
        if _is_bare(node):
            return []
        returned = _returned(node)
        for value in returned.elts if isinstance(returned, ast.Tuple) else [returned]:
            if self.array_of(value) is not None:
                raise self.refuse(
                    value, "an array cannot be returned; give it to the function to fill"
                )
        return self.values_of(returned)

    def _lower_Return(self, node: ast.Return) -> None:
        frame = self.frame
        if not frame.suffix:
            raise self.refuse(
                node, "a kernel returns nothing; end an iteration with 'continue' and store results"
            )
        if frame.loops:
            raise self.refuse(
                node,
                "a return inside a loop of a function is not built yet; set a local, break, "
                "and return after the loop",
            )
        values = self._results(node)
        if frame.results is None:
            name = frame.definition.function.__name__
            frame.results = [self.fresh_result(name, shape_of_value(value)) for value in values]
        if len(values) != len(frame.results):
            raise self.refuse(
                node,
                f"this return gives {counted(len(values), 'value')} and an earlier one "
                f"{len(frame.results)}",
            )
        for result, value in zip(frame.results, values, strict=True):
            self.write(node, result, value)
        for flag in frame.flags:
            self.emit_assign(node, flag, self.at(node, IRConstant(True, bool_)))
        self.assigned = None

    def _returning_if(self, node: ast.If, rest: list[ast.stmt]) -> None:
        """An ``if`` that returns on some paths, and the statements after it."""
        then_falls, else_falls = _falls_through(node.body), _falls_through(node.orelse)
        if then_falls and else_falls:
            self._flagged_if(node, rest)
            return
        split = ast.If(
            test=node.test,
            body=[*node.body, *rest] if then_falls else node.body,
            orelse=[*node.orelse, *rest] if else_falls else node.orelse,
        )
        self.statement(ast.copy_location(split, node))
        if not then_falls and not else_falls and rest:
            for statement in rest:
                self.statement(statement)

    def _flagged_if(self, node: ast.If, rest: list[ast.stmt]) -> None:
        """Both arms may go on: a flag tells the paths that returned."""
        flag = f"returned.{self.count()}"
        self.emit_assign(node, flag, self.at(node, IRConstant(False, bool_)))
        self.frame.flags.append(flag)
        self.statement(node)
        self.frame.flags.remove(flag)
        if not rest:
            return
        with self.collect() as body:
            self.block(rest)
        going_on = self.at(node, IRUnaryOp("not", self.at(node, IRName(flag))))
        if body:
            self.emit(node, IRIf(going_on, body, []))


def _returned(node: ast.Return) -> ast.expr:
    assert node.value is not None
    return node.value


def _is_bare(node: ast.Return) -> bool:
    """Whether a return gives no value, or None."""
    value = node.value
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


@lru_cache(maxsize=4096)
def _has_return(node: ast.AST) -> bool:
    """Whether ``node`` holds a return outside nested functions."""
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def _falls_through(statements: list[ast.stmt]) -> bool:
    """Whether the end of the list may be reached without a return."""
    for statement in statements:
        if isinstance(statement, ast.Return):
            return False
        if (
            isinstance(statement, ast.If)
            and not _falls_through(statement.body)
            and not _falls_through(statement.orelse)
        ):
            return False
    return True
