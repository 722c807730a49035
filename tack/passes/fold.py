"""Constant folding, with the arithmetic of the type; a part of ``optimize``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRBinOp,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRIfExp,
    IRNode,
    IRUnaryOp,
)
from tack.model.dtypes import bool_
from tack.passes import arithmetic

__all__ = ["fold"]


def fold(node: IRNode) -> Expression | None:
    """What a typed expression with folded operands comes to, or None where it stays."""
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node)


def _binary(node: IRBinOp) -> Expression | None:
    left, right = node.left, node.right
    if not (isinstance(left, IRConstant) and isinstance(right, IRConstant)):
        return None
    assert node.dtype is not None
    value = arithmetic.operate(node.op, left.value, right.value, node.dtype)
    return IRConstant(value, node.dtype)


def _unary(node: IRUnaryOp) -> Expression | None:
    operand, dtype = node.operand, node.dtype
    if not isinstance(operand, IRConstant):
        return None
    assert dtype is not None
    if node.op == "not":
        return IRConstant(not operand.value, bool_)
    if dtype.is_float:
        return IRConstant(-operand.value, dtype)
    value = int(operand.value)
    return IRConstant(dtype.wrap(-value if node.op == "-" else ~value), dtype)


def _compare(node: IRCompare) -> Expression | None:
    left, right = node.left, node.right
    if not (isinstance(left, IRConstant) and isinstance(right, IRConstant)):
        return None
    return IRConstant(arithmetic.COMPARE[node.op](left.value, right.value), bool_)


def _logic(node: IRBoolOp) -> Expression | None:
    """Either operand may decide: the other has no effect."""
    decisive = node.op == "or"
    for known, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(known, IRConstant):
            return IRConstant(decisive, bool_) if known.value == decisive else other
    return None


def _choice(node: IRIfExp) -> Expression | None:
    if not isinstance(node.condition, IRConstant):
        return None
    return node.then_value if node.condition.value else node.else_value


def _call(node: IRCall) -> Expression | None:
    values = [arg.value for arg in node.args if isinstance(arg, IRConstant)]
    if len(values) < len(node.args):
        return None
    assert node.dtype is not None
    value = arithmetic.call(node.function, values, node.dtype)
    return None if value is None else IRConstant(value, node.dtype)


def _cast(node: IRCast) -> Expression | None:
    assert node.dtype is not None
    if node.value.dtype is node.dtype:
        return node.value
    if not isinstance(node.value, IRConstant):
        return None
    return IRConstant(arithmetic.convert(node.value.value, node.dtype), node.dtype)


_RULES: Final[dict[type[IRNode], Callable[..., Expression | None]]] = {
    IRBinOp: _binary,
    IRUnaryOp: _unary,
    IRCompare: _compare,
    IRBoolOp: _logic,
    IRIfExp: _choice,
    IRCall: _call,
    IRCast: _cast,
}
