"""Lowering of literals and operators: arithmetic, comparisons, and what runs one side alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
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
from tack.lang.bindings import Constant
from tack.lang.lower_base import again
from tack.lang.lower_places import PlaceLowering
from tack.lang.vectors import (
    Value,
    shape_of_value,
    words,
)
from tack.model.dtypes import bool_

__all__ = ["BINARY", "OperatorLowering"]

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


class OperatorLowering(PlaceLowering):
    """Lowers literals and operators, of vectors by component."""

    def _lower_Constant(self, node: ast.Constant) -> Expression:
        return self.literal(node, node.value)

    def literal(self, node: ast.AST, value: Any) -> IRConstant:
        """A number of the source, or one that `tack.constant` made."""
        if isinstance(value, Constant):
            return IRConstant(value.literal, value.dtype, weak=value.dtype is None)
        if isinstance(value, bool):
            return IRConstant(value, bool_)
        if isinstance(value, int | float):
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                raise self.refuse(node, f"{value} fits no integer type; the widest have 64 bits")
            return IRConstant(value, None, weak=True)
        raise self.refuse(
            node, f"{value!r} is no number; the kernel language has numbers and bools only"
        )

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
