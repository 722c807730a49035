"""Lowering of statements: assignments, branches, sequential loops, and returns of functions."""

from __future__ import annotations

import ast
import builtins as python
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRBinOp,
    IRBreak,
    IRConstant,
    IRContinue,
    IRIf,
    IRName,
    IRSequentialFor,
    IRUnaryOp,
    IRWhile,
    Statement,
)
from tack.lang import builtins as language
from tack.lang.lower_base import (
    ArrayParameter,
    Frame,
    Loop,
    TemplateNode,
    again,
    contains_load,
    contains_store,
    join,
)
from tack.lang.lower_calls import CallLowering
from tack.lang.lower_expressions import BINARY
from tack.model.dtypes import bool_

__all__ = ["StatementLowering"]

_REFUSED: Final[dict[str, str]] = {
    "Try": "'try' is not part of the kernel language",
    "TryStar": "'try' is not part of the kernel language",
    "With": "'with' is not part of the kernel language",
    "FunctionDef": "a nested definition is not part of the kernel language; define it outside",
    "AsyncFunctionDef": "'async' is not part of the kernel language",
    "ClassDef": "a class cannot be defined in a kernel",
    "Import": "an import cannot stand in a kernel; import at the top of the module",
    "ImportFrom": "an import cannot stand in a kernel; import at the top of the module",
    "Global": "'global' is not part of the kernel language",
    "Nonlocal": "'nonlocal' is not part of the kernel language",
    "Delete": "'del' is not part of the kernel language",
    "Raise": "'raise' is not part of the kernel language",
    "Match": "'match' is not part of the kernel language; write if/elif",
}


class StatementLowering(CallLowering):
    """Lowers statements."""

    def block(self, statements: list[ast.stmt]) -> None:
        """Lowers a statement list; after a return on some paths, the rest runs on the others."""
        for position, statement in enumerate(statements):
            if isinstance(statement, ast.If) and _has_return(statement):
                self._returning_if(statement, statements[position + 1 :])
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Lowers one statement. Unreachable ones are checked and leave nothing."""
        method = getattr(self, f"_lower_{type(node).__name__}", None)
        if method is None:
            kind = type(node).__name__
            default = f"{kind} is not part of the kernel language"
            raise self.refuse(node, _REFUSED.get(kind, default))
        if self.assigned is None:
            with self.collect():
                method(node)
        else:
            method(node)

    # assignment

    def _lower_Pass(self, node: ast.Pass) -> None:
        pass

    def _lower_Assert(self, node: ast.Assert) -> None:
        """Outside debug mode an assert is checked for its language and does nothing."""
        before = self.assigned
        with self.collect():
            self.expression(node.test)
        self.assigned = before

    def _lower_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and (value.value is ... or isinstance(value.value, str)):
            return
        self.values_of(value)

    def _lower_Assign(self, node: ast.Assign) -> None:
        targets = node.targets
        if self.makes_array(node.value):
            assert isinstance(node.value, ast.Call)
            self.make_array(node, node.value)
            return
        if len(targets) == 1 and not isinstance(targets[0], ast.Tuple | ast.List):
            self.assign(targets[0], self.expression(node.value))
            return
        values = self.values_of(node.value)
        values = [self._settled(node.value, value) for value in values]
        for target in targets:
            self._unpack(target, values, node)

    def _settled(self, node: ast.expr, value: Expression) -> Expression:
        """``value`` in a local of its own, so that assigning the targets cannot change it."""
        if isinstance(value, IRConstant):
            return value
        name = self.fresh()
        self.emit_assign(node, name, value)
        return self.at(node, IRName(name))

    def _unpack(self, target: ast.expr, values: list[Expression], node: ast.stmt) -> None:
        if not isinstance(target, ast.Tuple | ast.List):
            if len(values) != 1:
                raise self.refuse(
                    node, f"{len(values)} values cannot go into one name; unpack them"
                )
            self.assign(target, values[0])
            return
        if len(target.elts) != len(values):
            raise self.refuse(
                node,
                f"{len(values)} value{'s' * (len(values) != 1)} cannot be unpacked into "
                f"{len(target.elts)} names",
            )
        for element, value in zip(target.elts, values, strict=True):
            self.assign(element, value)

    def assign(self, target: ast.expr, value: Expression) -> None:
        """``target = value`` for a name or an array element."""
        if isinstance(target, ast.Name):
            self.emit_assign(target, self.target_name(target), value)
        elif isinstance(target, ast.Subscript):
            self._store(target, value)
        elif isinstance(target, ast.Tuple | ast.List):
            raise self.refuse(target, "nested unpacking is not built yet; unpack in two steps")
        else:
            raise self.refuse(target, "only names and array elements can be assigned")

    def target_name(self, target: ast.Name) -> str:
        """The IR name of a local that is about to be assigned."""
        if isinstance(self.frame.meanings.get(target.id), ArrayParameter):
            raise self.refuse(target, f"{target.id!r} is an array; it cannot be assigned a number")
        if isinstance(self.frame.meanings.get(target.id), TemplateNode):
            raise self.refuse(target, f"{target.id!r} is a template; it cannot be assigned")
        if self.prologue is not None and target.id in self.prologue and not self.frame.suffix:
            raise self.refuse(
                target,
                f"{target.id!r} is set before the parallel loop and cannot change in it; "
                "use another name",
            )
        return self.local(target.id)

    def _stored_array(self, target: ast.Subscript) -> tuple[ArrayParameter, bool]:
        found = self.indexed(target)
        if found is None:
            raise self.refuse(target, "only an array's elements can be assigned")
        return found

    def _store(self, target: ast.Subscript, value: Expression) -> None:
        array, is_flat = self._stored_array(target)
        mark = len(self.out)
        indices, is_flat = self.place(target, array, is_flat)
        if any(map(contains_store, self.out[mark:])) and contains_load(value):
            name = self.fresh()
            self.out.insert(mark, self.at(target, IRAssign(name, value)))
            value = self.at(target, IRName(name))
        self.emit(target, IRArrayStore(array.name, indices, value, is_flat))

    def _lower_AugAssign(self, node: ast.AugAssign) -> None:
        operator = BINARY.get(type(node.op))
        if operator is None:
            raise self.refuse(node, "'@' needs matrices, which are not built yet")
        if isinstance(node.target, ast.Name):
            read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            old: Expression = self.expression(read)
            value = self.expression(node.value)
            result = self.at(node, IRBinOp(operator, old, value))
            self.emit_assign(node, self.target_name(node.target), result)
        elif isinstance(node.target, ast.Subscript):
            self._update(node, node.target, operator)
        else:
            raise self.refuse(node.target, "only names and array elements can be assigned")

    def _update(self, node: ast.AugAssign, target: ast.Subscript, operator: str) -> None:
        """``array[index] op= value``: index once, old value before the right side."""
        array, is_flat = self._stored_array(target)
        indices, is_flat = self.place(target, array, is_flat)
        indices = [self.temporary(target, index, "i") for index in indices]
        old: Expression = self.at(target, IRArrayLoad(array.name, indices, flat=is_flat))
        mark = len(self.out)
        value = self.expression(node.value)
        if any(map(contains_store, self.out[mark:])):
            name = self.fresh()
            self.out.insert(mark, self.at(target, IRAssign(name, old)))
            old = self.at(target, IRName(name))
        result = self.at(node, IRBinOp(operator, old, value))
        stored = [again(index) for index in indices]
        self.emit(node, IRArrayStore(array.name, stored, result, is_flat))

    def _lower_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or not node.simple:
            raise self.refuse(node, "only a name can be annotated")
        dtype = self.frame.definition.scalar_type(node.annotation)
        assert dtype is not None
        name = self.target_name(node.target)
        if self.declared.setdefault(name, dtype) is not dtype:
            raise self.refuse(
                node,
                f"{node.target.id!r} is annotated {dtype} here and {self.declared[name]} before",
            )
        if node.value is not None:
            self.emit_assign(node, name, self.expression(node.value))

    # branches and loops

    def _lower_If(self, node: ast.If) -> None:
        condition = self.expression(node.test)
        start = self.assigned
        with self.collect() as then_body:
            self.block(node.body)
        after_then, self.assigned = self.assigned, start
        with self.collect() as else_body:
            self.block(node.orelse)
        self.assigned = join(after_then, self.assigned)
        self.emit(node, IRIf(condition, then_body, else_body))

    def _lower_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.refuse(node.orelse[0], "'else' of a loop is not part of the kernel language")
        with self.collect() as before:
            condition = self.expression(node.test)
        endless = isinstance(condition, IRConstant) and bool(condition.value)
        entered = self.assigned
        loop, body = self._loop_body(node.body)
        if before:
            leave: list[Statement] = [self.at(node, IRBreak())]
            body = [*before, self.at(node, IRIf(condition, [], leave)), *body]
            condition = self.at(node.test, IRConstant(True, bool_))
        self.emit(node, IRWhile(condition, body))
        self.assigned = None if endless else entered
        for state in loop.breaks:
            self.assigned = join(self.assigned, state)

    def _loop_body(self, statements: list[ast.stmt]) -> tuple[Loop, list[Statement]]:
        """The body of a sequential loop, and how it is left."""
        loop = Loop()
        self.loops.append(loop)
        self.frame.loops += 1
        with self.collect() as body:
            self.block(statements)
        self.frame.loops -= 1
        self.loops.pop()
        loop.rounds.append(self.assigned)
        return loop, body

    def _lower_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.refuse(node.orelse[0], "'else' of a loop is not part of the kernel language")
        call = node.iter
        callee = self.static(call.func) if isinstance(call, ast.Call) else None
        if callee is language.ndrange:
            raise self.refuse(
                node.iter, "tack.ndrange() is for the outermost loop; nest ranges here"
            )
        if not isinstance(call, ast.Call) or callee is not python.range:
            if self.template_of(node.iter) is not None:
                raise self.refuse(
                    node.iter, "only the outermost loop runs over a template; nest ranges here"
                )
            raise self.refuse(node.iter, "a loop in a kernel runs over range(...)")
        if not isinstance(node.target, ast.Name):
            raise self.refuse(node.target, "a loop over range has one name as its target")
        start, end, step = self.range_arguments(call)
        name = self.target_name(node.target)
        entered = self.assigned
        self.mark_assigned(name)
        loop, body = self._loop_body(node.body)
        self.emit(node, IRSequentialFor(name, start, end, step, body))
        self.assigned = entered
        if _runs(start, end, step) and entered is not None:
            self.assigned = None
            for state in [*loop.rounds, *loop.breaks]:
                self.assigned = join(self.assigned, state)

    def range_arguments(self, call: ast.Call) -> tuple[Expression, Expression, Expression]:
        """Start, end and step of a range."""
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.refuse(call, "range takes 1 to 3 arguments, none by keyword")
        values = self.evaluate(call.args)
        zero: Expression = self.at(call, IRConstant(0, None, weak=True))
        one: Expression = self.at(call, IRConstant(1, None, weak=True))
        if len(values) == 1:
            return zero, values[0], one
        step = values[2] if len(values) == 3 else one
        if isinstance(step, IRConstant) and step.value == 0:
            raise self.refuse(call, "the step of a range is not 0")
        return values[0], values[1], step

    def _lower_Break(self, node: ast.Break) -> None:
        if not self.loops:
            raise self.refuse(
                node,
                "the parallel loop has no 'break': its iterations have no order; use 'continue'",
            )
        self.loops[-1].breaks.append(self.assigned)
        self.emit(node, IRBreak())
        self.assigned = None

    def _lower_Continue(self, node: ast.Continue) -> None:
        if self.loops:
            self.loops[-1].rounds.append(self.assigned)
        self.emit(node, IRContinue())
        self.assigned = None

    # returns of inlined functions

    def function_body(self, node: ast.Call, frame: Frame) -> list[Expression]:
        """Emits the body of the inlined function ``frame`` and gives its results."""
        statements = frame.definition.source.node.body
        last, entered = statements[-1], self.assigned
        if isinstance(last, ast.Return) and not any(map(_has_return, statements[:-1])):
            self.block(statements[:-1])
            return self._results(last)
        self.block(statements)
        if frame.result_names and self.assigned is not None:
            raise self.refuse(
                last,
                f"{frame.definition.function.__name__}() can end without a return, and a "
                "value is needed; return one on every path",
            )
        results = frame.result_names or []
        self.assigned = None if entered is None else entered | set(results)
        return [self.at(node, IRName(name)) for name in results]

    def _results(self, node: ast.Return) -> list[Expression]:
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
        if frame.result_names is None:
            name = frame.definition.function.__name__
            frame.result_names = [self.fresh(name) for _ in values]
        if len(values) != len(frame.result_names):
            raise self.refuse(
                node,
                f"this return gives {len(values)} values and an earlier one "
                f"{len(frame.result_names)}",
            )
        for name, value in zip(frame.result_names, values, strict=True):
            self.emit_assign(node, name, value)
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
        self.statement(_Plain(split, node))
        if not then_falls and not else_falls and rest:
            for statement in rest:
                self.statement(statement)

    def _flagged_if(self, node: ast.If, rest: list[ast.stmt]) -> None:
        """Both arms may go on: a flag tells the paths that returned."""
        flag = f"returned.{self.count()}"
        self.emit_assign(node, flag, self.at(node, IRConstant(False, bool_)))
        self.frame.flags.append(flag)
        self.statement(_Plain(node, node))
        self.frame.flags.remove(flag)
        if not rest:
            return
        with self.collect() as body:
            self.block(rest)
        going_on = self.at(node, IRUnaryOp("not", self.at(node, IRName(flag))))
        if body:
            self.emit(node, IRIf(going_on, body, []))

    def _lower__Plain(self, node: _Plain) -> None:
        self._lower_If(node.inner)


class _Plain(ast.stmt):
    """An ``if`` whose returns are arranged already."""

    def __init__(self, inner: ast.If, place: ast.If) -> None:
        super().__init__()
        self.inner = ast.copy_location(inner, place)
        ast.copy_location(self, place)


def _returned(node: ast.Return) -> ast.expr:
    assert node.value is not None
    return node.value


def _is_bare(node: ast.Return) -> bool:
    """Whether a return gives no value, or None."""
    value = node.value
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


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


def _runs(start: Expression, end: Expression, step: Expression) -> bool:
    """Whether a range of literals has at least one value."""
    first, last, stride = (
        int(value.value) if isinstance(value, IRConstant) else None for value in (start, end, step)
    )
    if first is None or last is None or stride is None:
        return False
    return bool(range(first, last, stride))
