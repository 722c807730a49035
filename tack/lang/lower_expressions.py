"""Lowering of expressions: names, operators, indexing, shapes."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from tack.ir.nodes import (
    Expression,
    IRAssign,
    IRBinOp,
    IRBoolOp,
    IRCast,
    IRCompare,
    IRConstant,
    IRIf,
    IRIfExp,
    IRName,
    IRUnaryOp,
    Statement,
)
from tack.lang.bindings import MISSING, Constant, dotted_name, resolve
from tack.lang.lower_arrays import ArrayLowering
from tack.lang.lower_base import ArrayParameter, Meaning, TemplateNode, VectorAttribute, again
from tack.lang.lower_templates import TemplateLowering
from tack.lang.vectors import (
    Value,
    VectorMeaning,
    parts_of,
    shape_of_value,
    vector_of,
    words,
)
from tack.model.dtypes import DType, bool_, i64
from tack.model.errors import CompileError
from tack.model.spelling import advice, counted
from tack.model.vectors import components_of, is_constant

__all__ = ["BINARY", "ExpressionLowering"]

BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_UNARY: Final[dict[type[ast.unaryop], str]] = {
    ast.USub: "-",
    ast.Invert: "~",
}
_COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
NO_TRUTH: Final = "it has no truth value: write any(...) or all(...), or compare components"

_REFUSED: Final[dict[type[ast.expr], str]] = {
    ast.ListComp: "a comprehension is not part of the kernel language; write a loop",
    ast.SetComp: "a comprehension is not part of the kernel language; write a loop",
    ast.DictComp: "a comprehension is not part of the kernel language; write a loop",
    ast.GeneratorExp: "a generator is not part of the kernel language; write a loop",
    ast.Lambda: "a lambda is not part of the kernel language; write a @tack.func",
    ast.NamedExpr: "':=' is not part of the kernel language; assign in a statement of its own",
    ast.List: "a list is not part of the kernel language; use scalars or an array parameter",
    ast.Dict: "a dict is not part of the kernel language",
    ast.Set: "a set is not part of the kernel language",
    ast.JoinedStr: "text is not part of the kernel language",
    ast.Starred: "'*' is not part of the kernel language; write the values out",
    ast.Slice: "slices are not built yet; index single elements in a loop",
    ast.Tuple: "a tuple has no value here; unpack it into names",
}


class ExpressionLowering(ArrayLowering, TemplateLowering):
    """Lowers every expression but calls."""

    def value(self, node: ast.expr) -> Value:
        """The value of ``node``; statements that it needs are emitted first."""
        method = getattr(self, f"_lower_{type(node).__name__}", None)
        if method is None:
            default = f"{type(node).__name__} is not part of the kernel language"
            raise self.refuse(node, _REFUSED.get(type(node), default))
        value: Value = method(node)
        for part in parts_of(value):
            if part is value or self.positions.get(part) is None:
                self.at(node, part)
        return value

    def static(self, node: ast.expr) -> Any:
        """What a static name stands for, or `MISSING`."""
        dotted = dotted_name(node)
        if dotted is None or dotted.split(".")[0] in self.frame.locals:
            return MISSING
        return resolve(self.frame.definition.function, dotted)

    def undefined(self, node: ast.expr, dotted: str) -> CompileError:
        """The error for a static name that stands for nothing that a kernel can use."""
        first, _, rest = dotted.partition(".")
        owner, _, name = dotted.rpartition(".")
        module = resolve(self.frame.definition.function, owner) if rest else MISSING
        if isinstance(module, ModuleType):
            known = getattr(module, "__all__", dir(module))
            near = advice(name, [each for each in known if not each.startswith("_")])
            return self.refuse(
                node, f"{owner} has no {name!r}" + (f"; {near}" if near.endswith("?") else "")
            )
        if rest and resolve(self.frame.definition.function, first) is not MISSING:
            return self.refuse(
                node,
                f"{dotted!r} is not to be had here: attributes are read of modules only; give it a "
                f"name of its own outside, as in {dotted.lower().replace('.', '_')} = {dotted}",
            )
        return self.refuse(node, f"the name {dotted!r} is not defined")

    # names and literals

    def _lower_Constant(self, node: ast.Constant) -> Expression:
        return self.literal(node, node.value)

    def literal(self, node: ast.AST, value: Any) -> IRConstant:
        """A literal of the source."""
        if isinstance(value, bool):
            return IRConstant(value, bool_)
        if isinstance(value, int | float):
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                raise self.refuse(node, f"{value} fits no integer type; the widest have 64 bits")
            return IRConstant(value, None, weak=True)
        raise self.refuse(
            node, f"{value!r} is no number; the kernel language has numbers and bools only"
        )

    def _lower_Name(self, node: ast.Name) -> Value:
        if node.id not in self.frame.locals:
            return self._static_value(node, node.id)
        meaning = self.meaning(node)
        return self._value_of(node, meaning)

    def _value_of(self, node: ast.expr, meaning: Meaning) -> Value:
        """The value of what a name or an attribute stands for."""
        if isinstance(meaning, TemplateNode):
            raise self.refuse(
                node,
                f"the template {meaning.label!r} has no value of its own; read an attribute of it",
            )
        if isinstance(meaning, ArrayParameter):
            advice = "" if meaning.spec.rank else f": {ast.unparse(node)}[()]"
            raise self.refuse(
                node,
                f"the array {ast.unparse(node)!r} has no value of its own; "
                f"index an element of it{advice}",
            )
        if isinstance(meaning, VectorAttribute):
            return self.load(node, meaning.array, [], False)
        return self.read(meaning)

    def meaning(self, node: ast.Name) -> Meaning:
        """What a local name stands for, having a value on every path to here."""
        meaning = self.frame.meanings.get(node.id, self.local(node.id))
        parts = meaning.parts if isinstance(meaning, VectorMeaning) else (meaning,)
        names = {part for part in parts if isinstance(part, str)}
        if self.assigned is not None and not names <= self.assigned:
            raise self.refuse(
                node, f"{node.id!r} may have no value here; assign it on every path before"
            )
        return meaning

    def local(self, name: str) -> str:
        """What a scalar local of the frame is called in IR."""
        meaning = self.frame.meanings.get(name)
        return meaning if isinstance(meaning, str) else self.local_name(name)

    def _static_value(self, node: ast.expr, dotted: str) -> Value:
        value = self.static(node)
        if value is MISSING:
            raise self.undefined(node, dotted)
        vector = components_of(value)
        if vector is not None:
            if not is_constant(value):
                name, type_ = dotted.rpartition(".")[2], vector[0]
                raise self.refuse(
                    node,
                    f"{dotted!r} is a vector outside the kernel, which could change unseen; write "
                    f"{name} = tack.constant({tuple(vector[1])}, tack.{type_.name})",
                )
            return vector_of(*vector)
        if isinstance(value, Constant):
            return IRConstant(value.literal, value.dtype, weak=value.dtype is None)
        if self._is_of_mathematics(dotted, value):
            return self.literal(node, value)
        if isinstance(value, tuple):
            raise self.refuse(
                node, f"{dotted!r} is a tuple, which has no value here; write {dotted}[0]"
            )
        if isinstance(value, bool | int | float) or hasattr(value, "__float__"):
            name = dotted.rpartition(".")[2]
            name = name if name == dotted else name.upper()
            if getattr(value, "shape", ()) != ():
                raise self.refuse(
                    node, f"{dotted!r} is an array outside the kernel; make it a parameter"
                )
            # The source's own words, where they are there to be copied: inf is no name in Python.
            shown = repr(value) if name == dotted else dotted
            raise self.refuse(
                node,
                f"{dotted!r} is a plain {type(value).__name__} outside the kernel, which could "
                f"change unseen; write {name} = tack.constant({shown}, tack.<dtype>)",
            )
        if isinstance(value, DType) or callable(value):
            raise self.refuse(node, f"{dotted!r} is not a number; call it, or write a number")
        raise self.refuse(
            node,
            f"{dotted!r} is a {type(value).__name__}; from outside a kernel come only "
            "tack.constant numbers, scalar types, device functions and modules",
        )

    def _is_of_mathematics(self, dotted: str, value: Any) -> bool:
        """Whether a name is that of a number that Python and NumPy have for good."""
        owner, _, name = dotted.rpartition(".")
        if name not in ("inf", "nan", "pi", "e", "tau") or type(value) is not float:
            return False
        module = resolve(self.frame.definition.function, owner) if owner else None
        if owner:
            return isinstance(module, ModuleType) and module.__name__ in ("math", "numpy")
        return value is getattr(math, name)  # from math import inf

    # operators

    def _lower_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate_values([node.left, node.right])
        return self.binary(node, node.op, left, right)

    def binary(self, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Value:
        """``left op right``, componentwise but for ``@``."""
        operator = BINARY.get(type(op))
        if operator is None:
            return self.product(node, left, right)
        return self.componentwise(
            node, [left, right], lambda one, other: IRBinOp(operator, one, other), f"'{operator}'"
        )

    def _lower_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return IRUnaryOp("not", self.condition(node.operand))
        value = self.value(node.operand)
        return self.componentwise(node, [value], lambda operand: self._unary(node, operand), "")

    def _unary(self, node: ast.UnaryOp, operand: Expression) -> Expression:
        if isinstance(operand, IRConstant) and operand.weak:
            return self._fold_sign(node, operand)
        if isinstance(node.op, ast.UAdd):
            return IRUnaryOp("-", self.at(node, IRUnaryOp("-", operand)))
        return IRUnaryOp(_UNARY[type(node.op)], operand)

    def _fold_sign(self, node: ast.UnaryOp, operand: IRConstant) -> Expression:
        """A literal with a sign is a literal."""
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.USub):
            return self.literal(node, -operand.value)
        if isinstance(operand.value, float):
            raise self.refuse(node, "'~' takes an integer, not a float")
        return self.literal(node, ~int(operand.value))

    def _lower_Compare(self, node: ast.Compare) -> Value:
        operators = []
        for operator in node.ops:
            if type(operator) not in _COMPARE:
                word = {"Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in"}
                raise self.refuse(
                    node,
                    f"'{word[type(operator).__name__]}' is not part of the kernel language; "
                    "compare with == or !=",
                )
            operators.append(_COMPARE[type(operator)])
        if len(operators) == 1:
            values = self.evaluate_values([node.left, *node.comparators])
            return self.componentwise(
                node,
                values,
                lambda one, two: IRCompare(operators[0], one, two),
                f"'{operators[0]}'",
            )
        left, middle = self.evaluate([node.left, node.comparators[0]])
        middle = self.temporary(node.comparators[0], middle)
        return self._chain(node, left, middle, operators, 0)

    def _chain(
        self, node: ast.Compare, left: Expression, right: Expression, operators: list[str], k: int
    ) -> Expression:
        """Comparison ``k`` of a chain whose operands are evaluated, and the rest behind it."""
        first = self.at(node, IRCompare(operators[k], left, right))
        if k + 1 == len(operators):
            return first
        with self.guarded() as later:
            following = self.expression(node.comparators[k + 1])
            if k + 2 < len(operators):
                following = self.temporary(node.comparators[k + 1], following)
            second = self._chain(node, again(right), following, operators, k + 1)
        return self._choose_bool(node, "and", first, later, second)

    @contextmanager
    def guarded(self) -> Iterator[list[Statement]]:
        """Collects the statements of an operand that may not be evaluated.

        What they assign counts only inside.
        """
        before = self.assigned
        with self.collect() as statements:
            yield statements
        self.assigned = before

    def _lower_BoolOp(self, node: ast.BoolOp) -> Expression:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        return self._bool_chain(node, operator, node.values)

    def _bool_chain(self, node: ast.BoolOp, operator: str, values: list[ast.expr]) -> Expression:
        first = self.condition(values[0])
        if len(values) == 1:
            return first
        with self.guarded() as later:
            second = self._bool_chain(node, operator, values[1:])
        return self._choose_bool(node, operator, first, later, second)

    def _choose_bool(
        self,
        node: ast.expr,
        operator: str,
        first: Expression,
        later: list[Statement],
        second: Expression,
    ) -> Expression:
        """``first and/or second``, where ``later`` must run before ``second`` and only then."""
        if not later:
            return self.at(node, IRBoolOp(operator, first, second))
        name = self.fresh()
        self.emit_assign(node, name, self.at(node, IRCast(first, bool_)))
        later.append(self.at(node, IRAssign(name, self.at(node, IRCast(second, bool_)))))
        condition: Expression = self.at(node, IRName(name))
        then_body, else_body = (later, []) if operator == "and" else ([], later)
        self.emit(node, IRIf(condition, then_body, else_body))
        return self.at(node, IRName(name))

    def condition(self, node: ast.expr) -> Expression:
        """The value of ``node`` where its truth is asked."""
        return self.scalar(node, self.value(node), NO_TRUTH)

    def _lower_IfExp(self, node: ast.IfExp) -> Value:
        condition = self.condition(node.test)
        with self.guarded() as then_body:
            then_value = self.value(node.body)
        with self.guarded() as else_body:
            else_value = self.value(node.orelse)
        shape = shape_of_value(then_value)
        if shape != shape_of_value(else_value):
            raise self.refuse(
                node,
                f"the two values differ: {words([then_value, else_value])}; make them alike",
            )
        if not then_body and not else_body:
            if shape:
                condition = self.reusable(node.test, condition)
            return self.componentwise(
                node, [then_value, else_value], lambda one, two: IRIfExp(condition, one, two), ""
            )
        name = self.fresh_result("t", shape)
        for branch, body, value in (
            (node.body, then_body, then_value),
            (node.orelse, else_body, else_value),
        ):
            with self.collect() as assignments:
                self.write(branch, name, value)
            body.extend(assignments)
        self.emit(node, IRIf(condition, then_body, else_body))
        return self.read(name)

    # arrays

    def _lower_Attribute(self, node: ast.Attribute) -> Value:
        dotted = dotted_name(node)
        if dotted is not None and dotted.split(".")[0] not in self.frame.locals:
            if components_of(self.static(node.value)) is not None:
                return self.swizzle(node, self.value(node.value))
            return self._static_value(node, dotted)
        member = self.member_of(node)
        if member is not None:
            return self._value_of(node, member)
        array = self.array_of(node.value)
        if array is not None:
            if node.attr == "size":
                return self.size(node, array)
            if node.attr == "ndim":
                return IRConstant(array.spec.rank, i64)
            if node.attr in ("shape", "flat"):
                advice = f"write .{node.attr}[{'k' if node.attr == 'shape' else 'i'}]"
                raise self.refuse(node, f"a {node.attr} has no value of its own; {advice}")
            known = ".shape[k], .size, .ndim and .flat[i]"
            turned = "; for x.T[i, j] write x[j, i]" if node.attr == "T" else ""
            raise self.refuse(node, f"arrays have {known} here, and no .{node.attr}{turned}")
        return self.swizzle(node, self.value(node.value))

    def array_of(self, node: ast.expr) -> ArrayParameter | None:
        """The array that ``node`` names, or None."""
        member: object = None
        if isinstance(node, ast.Name) and node.id in self.frame.locals:
            member = self.frame.meanings.get(node.id)
        elif isinstance(node, ast.Attribute):
            member = self.member_of(node)
        if not isinstance(member, ArrayParameter):
            return None
        if member.is_local and self.assigned is not None and member.name not in self.assigned:
            raise self.refuse(
                node,
                f"{ast.unparse(node)!r} may have no value here; "
                "make the array on every path before",
            )
        return member

    def check_chain(self, node: ast.Subscript) -> None:
        """Refuses ``x[i][j]`` where it means ``x[i, j]``."""
        nodes, inner = [node.slice], node.value
        while isinstance(inner, ast.Subscript):
            nodes.insert(0, inner.slice)
            inner = inner.value
        array = self.array_of(inner) if len(nodes) > 1 else None
        if array is not None and not array.spec.element and len(nodes) <= array.spec.rank:
            indices = ", ".join(map(ast.unparse, nodes))
            raise self.refuse(
                node,
                f"a part of {array.spoken!r} is no array here; write {ast.unparse(inner)}"
                f"[{indices}]",
            )

    def indexed(self, node: ast.Subscript) -> tuple[ArrayParameter, bool] | None:
        """The array that ``node`` indexes, and whether it does as ``.flat[i]``; None if none."""
        target = node.value
        if isinstance(target, ast.Attribute) and target.attr == "flat":
            array = self.array_of(target.value)
            if array is not None:
                return array, True
        array = self.array_of(target)
        return None if array is None else (array, False)

    def shape_of(self, node: ast.expr) -> ArrayParameter | None:
        """The array whose ``.shape`` ``node`` is, or None."""
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return self.array_of(node.value)
        return None

    def _lower_Subscript(self, node: ast.Subscript) -> Value:
        shaped = self.shape_of(node.value)
        if shaped is not None:
            return self.dim_size(node, shaped)
        self.check_chain(node)
        found = self.indexed(node)
        if found is None:
            table = self.static(node.value)
            if isinstance(table, tuple):
                return self._tabulated(node, table)
            if self.template_of(node.value) is not None:
                raise self.refuse(node, "a template cannot be indexed; index an array of it")
            return self.component(node, self.value(node.value))
        array, is_flat = found
        indices, is_flat = self.indices_of(node, array, is_flat)
        return self.load(node, array, indices, is_flat)

    def _tabulated(self, node: ast.Subscript, table: tuple[Any, ...]) -> Value:
        """A number of a tuple outside the kernel, at a literal index."""
        name, index = ast.unparse(node.value), self.expression(node.slice)
        if not isinstance(index, IRConstant) or type(index.value) is not int:
            raise self.refuse(
                node,
                f"{name} is a tuple outside the kernel, and its index is a literal; pass an array "
                "to look numbers up while the kernel runs",
            )
        if not 0 <= index.value < len(table):
            raise self.refuse(
                node, f"{name} has {counted(len(table), 'number')}, so no {name}[{index.value}]"
            )
        value = table[index.value]
        if isinstance(value, Constant):
            return IRConstant(value.literal, value.dtype, weak=value.dtype is None)
        if is_constant(value):
            vector = components_of(value)
            assert vector is not None
            return vector_of(*vector)
        if type(value) not in (bool, int, float):
            what = type(value).__name__
            raise self.refuse(node, f"{ast.unparse(node)} is a {what}, and a kernel reads numbers")
        return self.literal(node, value)

    def dim_size(self, node: ast.Subscript, array: ArrayParameter) -> Expression:
        """``array.shape[k]`` for a literal ``k``."""
        index = node.slice
        negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        inner = index.operand if isinstance(index, ast.UnaryOp) and negative else index
        if not isinstance(inner, ast.Constant) or type(inner.value) is not int:
            raise self.refuse(node, "the index of a shape is a literal, as in .shape[0]")
        dim = -inner.value if negative else inner.value
        if not -array.spec.rank <= dim < array.spec.rank:
            has = counted(array.spec.rank, "dimension")
            raise self.refuse(node, f"{array.spoken!r} has {has}, so no .shape[{dim}]")
        return self.extent(array, dim % array.spec.rank)

    def indices_of(
        self, node: ast.Subscript, array: ArrayParameter, is_flat: bool
    ) -> tuple[list[Expression], bool]:
        """The indices of a subscript, evaluated, and whether they are one flat index."""
        if not is_flat:
            indices = self.evaluate(self.index_nodes(node, array))
            self.check_indices(node, array, indices)
            return indices, False
        return self.flat_place(node, array)

    def index_nodes(self, node: ast.Subscript, array: ArrayParameter) -> list[ast.expr]:
        """The index expressions of a subscript, as many as the array has dimensions."""
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) != array.spec.rank:
            raise self.refuse(
                node,
                f"{array.spoken!r} has {counted(array.spec.rank, 'dimension')} and is given "
                f"{counted(len(nodes), 'index')}{_meant(array, len(nodes))}",
            )
        return nodes

    def check_indices(
        self, node: ast.Subscript, array: ArrayParameter, indices: list[Expression]
    ) -> None:
        """Refuses literal indices that no array of this type has."""
        for axis, index in enumerate(indices):
            if not isinstance(index, IRConstant):
                continue
            extent = array.spec.all_dims[axis]
            if index.value < 0:
                whole = extent if axis >= array.spec.rank else f"{array.spoken}.shape[{axis}]"
                raise self.refuse(
                    node,
                    f"the index {index.value} is negative, and indices do not wrap around; write "
                    f"{whole} - {-index.value}",
                )
            if extent is not None and index.value >= extent:
                raise self.refuse(node, f"the index {index.value} is out of range for {array.spec}")


def _meant(array: ArrayParameter, given: int) -> str:
    """Advice where a wrong number of indices tells what was meant.

    An array without dimensions has one element. One index too few may mean that the last axis
    holds vectors.
    """
    spec = array.spec
    if not spec.rank:
        return "; the index of its one element is ()"
    width = spec.dims[-1]
    if spec.element or given != spec.rank - 1 or not (width is None or 2 <= width <= 4):
        return ""
    name = f"{spec.dtype}x{width or 3}"
    return (
        f"; if its last axis holds vectors, annotate it tack.Array[tack.{name}] and write "
        f"{name}[{', '.join(':' * given)}] in signatures"
    )
