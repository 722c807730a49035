"""Lowering of statements: assignments, branches and sequential loops."""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Sequence
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRBreak,
    IRConstant,
    IRContinue,
    IRIf,
    IRName,
    IRSequentialFor,
    IRWhile,
    Statement,
)
from tack.lang import builtins as language
from tack.lang import groups
from tack.lang.lower_base import (
    ArrayParameter,
    Loop,
    TemplateNode,
    join,
)
from tack.lang.lower_places import Case, Place, Slot
from tack.lang.lower_print import PrintLowering
from tack.lang.vectors import (
    Value,
    VectorMeaning,
    VectorValue,
    names_of,
    parts_of,
    rows_of,
    shape_of_value,
)
from tack.model.dtypes import bool_
from tack.model.spelling import counted
from tack.model.variant import MAX_AXES
from tack.model.vectors import VectorType, as_words

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


class StatementLowering(PrintLowering):
    """Lowers statements."""

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
            self.condition(node.test)
        self.assigned = before

    def _lower_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and (value.value is ... or isinstance(value.value, str)):
            return
        if isinstance(value, ast.Call) and self.static(value.func) is groups.barrier:
            self.barrier(value)
            return
        if isinstance(value, ast.Call) and self.fragment_statement(value):
            return
        if isinstance(value, ast.Call) and self.is_print(value):
            self.print_(value)
            return
        self.values_of(value)

    def _lower_Assign(self, node: ast.Assign) -> None:
        targets = node.targets
        if self.makes_array(node.value):
            assert isinstance(node.value, ast.Call)
            self.make_array(node, node.value)
            return
        if isinstance(node.value, ast.Call) and self.makes_fragment(node.value):
            self.make_fragment(node, node.value)
            return
        if len(targets) == 1 and not isinstance(targets[0], ast.Tuple | ast.List):
            self.assign(targets[0], self.value(node.value))
            return
        # In locals of their own, so that assigning the targets cannot change them.
        values = [self.settled(node.value, value) for value in self.values_of(node.value)]
        for target in targets:
            self._unpack(target, values, node)

    def _unpack(self, target: ast.expr, values: list[Value], node: ast.stmt) -> None:
        if not isinstance(target, ast.Tuple | ast.List):
            if len(values) != 1:
                raise self.refuse(
                    node, f"{len(values)} values cannot go into one name; unpack them"
                )
            self.assign(target, values[0])
            return
        if len(values) == 1 and isinstance(values[0], VectorValue):
            values = rows_of(values[0])
        if len(target.elts) != len(values):
            raise self.refuse(
                node,
                f"{counted(len(values), 'value')} cannot be unpacked into "
                f"{counted(len(target.elts), 'name')}",
            )
        for element, value in zip(target.elts, values, strict=True):
            self.assign(element, value)

    def assign(self, target: ast.expr, value: Value) -> None:
        """``target = value`` for a name, an array element, or components of a vector."""
        if isinstance(target, ast.Name):
            self.write(target, self.target(target, shape_of_value(value)), value)
        elif isinstance(target, ast.Tuple | ast.List):
            raise self.refuse(target, "nested unpacking is not built yet; unpack in two steps")
        else:
            mark = len(self.out)
            place = self.place(target)
            self.fill(target, place, self.protect(target, value, mark))

    def target_name(self, target: ast.Name) -> str:
        """The IR name of a local that is about to be assigned a number."""
        name = self.target(target, ())
        assert isinstance(name, str)
        return name

    def target(self, target: ast.Name, shape: tuple[int, ...]) -> str | VectorMeaning:
        """What a local that is about to be assigned a value of ``shape`` stands for."""
        meaning = self.frame.meanings.get(target.id)
        if isinstance(meaning, ArrayParameter):
            raise self.refuse(target, f"{target.id!r} is an array; it cannot be assigned a value")
        if isinstance(meaning, TemplateNode):
            raise self.refuse(target, f"{target.id!r} is a template; it cannot be assigned")
        self._may_change(target)
        number = isinstance(meaning, str) or target.id in self.frame.numbers
        known = meaning.shape if isinstance(meaning, VectorMeaning) else () if number else shape
        if known != shape:
            raise self.refuse(
                target,
                f"{target.id!r} is a {as_words(known)} elsewhere and a {as_words(shape)} here; use "
                "another name",
            )
        if not shape:
            self.frame.numbers.add(target.id)
            return self.local(target.id)
        if not isinstance(meaning, VectorMeaning):
            meaning = self.new_vector(f"{target.id}{self.frame.suffix}", shape)
            self.frame.meanings[target.id] = meaning
        return meaning

    def _may_change(self, target: ast.Name) -> None:
        if self.prologue is not None and target.id in self.prologue and not self.frame.suffix:
            raise self.refuse(
                target,
                f"{target.id!r} is set before the parallel loop and cannot change in it; "
                "use another name",
            )

    def place(self, node: ast.expr, *, twice: bool = False) -> Place:
        """What ``node`` assigns to: an array's element, or components of one or of a local.

        With ``twice`` its indices are used twice.
        """
        if isinstance(node, ast.Subscript):
            self.check_chain(node)
            found = self.indexed(node)
            if found is not None:
                array, is_flat = found
                indices, is_flat = self.indices_of(node, array, is_flat)
                if twice:
                    indices = [self.temporary(node, index, "i") for index in indices]
                return self.element(node, array, indices, is_flat)
        if isinstance(node, ast.Attribute | ast.Subscript):
            return self.place_within(node, self.place(node.value, twice=twice))
        if isinstance(node, ast.Name) and node.id in self.frame.locals:
            meaning = self.meaning(node)
            if isinstance(meaning, VectorMeaning):
                self._may_change(node)
                return Place(
                    meaning.shape, (Case(tuple(Slot(None, str(p)) for p in meaning.parts)),)
                )
            if isinstance(meaning, TemplateNode):
                raise self.refuse(
                    node, f"attributes of {node.id!r} are read only; store results in an array"
                )
            if isinstance(meaning, str | IRConstant):
                raise self.refuse(
                    node, f"{node.id!r} is a number here, which has no parts to assign"
                )
        raise self.refuse(
            node, "only names, elements of arrays, and components of vectors can be assigned"
        )

    def _lower_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            old = self.value(read)
            result = self.binary(node, node.op, old, self.value(node.value))
            self.assign(ast.copy_location(node.target, node), result)
            return
        # The index once, and the old value before the right side.
        place = self.place(node.target, twice=True)
        old = self.content(node.target, place)
        mark = len(self.out)
        value = self.value(node.value)
        old = self.protect(node.target, old, mark)
        self.fill(node, place, self.binary(node, node.op, old, value))

    def _lower_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or not node.simple:
            raise self.refuse(node, "only a name can be annotated")
        annotation = self.frame.definition.value_type(node.annotation)
        shape = annotation.shape if isinstance(annotation, VectorType) else ()
        value = None if node.value is None else self.value(node.value)
        if value is not None:
            self.check_annotation(node, repr(node.target.id), annotation, shape_of_value(value))
        target = self.target(node.target, shape)
        dtype = annotation.dtype if isinstance(annotation, VectorType) else annotation
        for name in names_of(target):
            if self.declared.setdefault(name, dtype) is not dtype:
                raise self.refuse(
                    node,
                    f"{node.target.id!r} is annotated {annotation} here and "
                    f"{'x'.join(map(str, (self.declared[name], *shape)))} before",
                )
        if value is not None:
            self.write(node, target, value)

    # branches and loops

    def _lower_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
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
            condition = self.condition(node.test)
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

    def _loop_body(
        self, statements: list[ast.stmt], indices: Sequence[tuple[ast.expr, str]] = ()
    ) -> tuple[Loop, list[Statement]]:
        """The body of a sequential loop, and how it is left; of several it sets the ``indices``."""
        loop = Loop(several=bool(indices))
        self.loops.append(loop)
        self.frame.loops += 1
        with self.collect() as body:
            for target, counter in indices:
                self.assign(target, self.at(target, IRName(counter)))
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
            assert isinstance(call, ast.Call)
            self._nested_loops(node, call)
            return
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

    def _nested_loops(self, node: ast.For, call: ast.Call) -> None:
        """Loops over ``tack.ndrange``, the last index fastest; the extents are read on entry."""
        extents, target = self.ndrange_parts(node, call)
        held = [parts_of(self.settled(call, extent))[0] for extent in extents]
        for element in target.elts:
            if not isinstance(element, ast.Name):
                raise self.refuse(element, "the targets of a loop over tack.ndrange are names")
        entered, counters = self.assigned, [self.fresh("at") for _ in held]
        _, body = self._loop_body(node.body, list(zip(target.elts, counters, strict=True)))
        for counter, extent in reversed(list(zip(counters, held, strict=True))):
            zero, one = (self.at(call, IRConstant(k, None, weak=True)) for k in (0, 1))
            body = [self.at(node, IRSequentialFor(counter, zero, extent, one, body))]
        self.out.extend(body)
        self.assigned = entered

    def ndrange_parts(self, node: ast.For, call: ast.Call) -> tuple[list[Expression], ast.Tuple]:
        """The extents of ``tack.ndrange`` and as many targets."""
        args = self._spread(call)
        if call.keywords or not 1 <= len(args) <= MAX_AXES:
            raise self.refuse(call, f"tack.ndrange takes 1 to {MAX_AXES} extents")
        extents = self.evaluate(args)
        target = node.target
        if isinstance(target, ast.Tuple) and len(target.elts) == len(extents):
            return extents, target
        if len(extents) == 1:
            raise self.refuse(call, "tack.ndrange of 1 extent gives tuples; write range(...)")
        raise self.refuse(
            target,
            f"tack.ndrange of {len(extents)} extents gives {len(extents)} indices; "
            f"write {', '.join('ijk'[: len(extents)])}",
        )

    def _spread(self, call: ast.Call) -> list[ast.expr]:
        """The extents of ``tack.ndrange``, those of ``*x.shape`` written out."""
        args: list[ast.expr] = []
        for each in call.args:
            inner = each.value if isinstance(each, ast.Starred) else each
            array = self.shape_of(inner)
            if array is not None and inner is each:
                raise self.refuse(each, f"a shape is several extents; write *{ast.unparse(each)}")
            if array is None or inner is each:
                args.append(each)
                continue
            for dim in range(array.spec.rank):
                axis = ast.copy_location(ast.Constant(dim), each)
                args.append(ast.copy_location(ast.Subscript(inner, axis, ast.Load()), each))
        return args

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
        if self.loops[-1].several:
            raise self.refuse(
                node,
                "a break of tack.ndrange leaves all of its loops at once, which is not built; nest "
                "loops over range(...), and leave each by a flag",
            )
        self.loops[-1].breaks.append(self.assigned)
        self.emit(node, IRBreak())
        self.assigned = None

    def _lower_Continue(self, node: ast.Continue) -> None:
        if self.loops:
            self.loops[-1].rounds.append(self.assigned)
        self.emit(node, IRContinue())
        self.assigned = None


def _runs(start: Expression, end: Expression, step: Expression) -> bool:
    """Whether a range of literals has at least one value."""
    first, last, stride = (
        int(value.value) if isinstance(value, IRConstant) else None for value in (start, end, step)
    )
    if first is None or last is None or stride is None:
        return False
    return bool(range(first, last, stride))
