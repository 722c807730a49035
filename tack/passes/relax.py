"""relax: what a floating-point mode allows beyond the letter of the kernel.

It comes before decomposition, so that it sees what the author wrote: the formulas of elementary
functions, the rounding of f16 and bf16 and other decompositions rely on every rounding, and keep
them in any mode. f16 and bf16 themselves are rounded after each operation in any mode too.
"""

from __future__ import annotations

import math
from typing import Final

from tack.ir.nodes import Expression, IRBinOp, IRCall, IRConstant, IRFunction, IRNode, IRUnaryOp
from tack.ir.traversal import transform_body
from tack.model.dtypes import DType, f32, f64
from tack.passes.build import constant, dtype_of, operate

__all__ = ["relax"]


def relax(function: IRFunction, *, fp: str, regroups: bool = False) -> IRFunction | None:
    """Does in place what ``fp`` allows; None where that is nothing.

    ``contract``: a product that is an operand of a sum or difference, in the same expression,
    becomes a ``mulacc`` with it. ``fast``: division by a constant becomes a product, and the
    operations are marked as ``relaxed`` for a target that ``regroups`` and fuses them itself; for
    another one they are contracted.
    """
    if fp == "strict":
        return None
    fast = fp == "fast"

    def rewrite(node: IRNode) -> IRNode | None:
        if not isinstance(node, IRBinOp) or dtype_of(node) not in (f32, f64):
            return None
        new = _by_reciprocal(node) if fast else None
        if not (fast and regroups):
            return _contracted(node) or new
        result = new or node
        result.relaxed = result.op in _RELAXED
        function.relaxed = function.relaxed or result.relaxed
        return new

    transform_body(function, rewrite)
    return function


_RELAXED: Final = frozenset({"+", "-", "*", "/"})


def _contracted(node: IRBinOp) -> Expression | None:
    """``a * b + c`` and its kind as one operation, else None; of two products the left one."""
    left, right = node.left, node.right
    if node.op == "+":
        if _is_product(left):
            return _mulacc(left, right)
        return _mulacc(right, left) if _is_product(right) else None
    if node.op != "-":
        return None
    if _is_product(left):
        return _mulacc(left, _negated(right))
    if _is_product(right):
        assert isinstance(right, IRBinOp)
        factor = operate("*", _negated(right.left), right.right)
        return _mulacc(factor, left)
    return None


def _is_product(node: Expression) -> bool:
    return isinstance(node, IRBinOp) and node.op == "*"


def _mulacc(product: Expression, addend: Expression) -> IRCall:
    assert isinstance(product, IRBinOp)
    return IRCall("mulacc", [product.left, product.right, addend], product.dtype)


def _negated(node: Expression) -> Expression:
    if isinstance(node, IRConstant):
        return constant(-node.value, node)
    if isinstance(node, IRUnaryOp) and node.op == "-":
        return node.operand
    return IRUnaryOp("-", node, node.dtype)


def _by_reciprocal(node: IRBinOp) -> IRBinOp | None:
    """A division by a constant as a product, where the reciprocal is a normal number."""
    divisor = node.right
    if node.op != "/" or not isinstance(divisor, IRConstant) or divisor.value == 0:
        return None
    dtype = dtype_of(node)
    reciprocal = constant(1.0 / float(divisor.value), dtype)
    size = abs(float(reciprocal.value))
    if not (math.isfinite(size) and size >= _least_normal(dtype)):
        return None
    return operate("*", node.left, reciprocal)


def _least_normal(dtype: DType) -> float:
    return 2.0 ** (-126 if dtype is f32 else -1022)
