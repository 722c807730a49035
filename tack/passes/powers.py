"""``**`` of integers, exact modulo 2^bits, by squaring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tack.ir.nodes import Expression, IRBinOp, IRIf, IRName, IRWhile
from tack.passes.build import compare, constant, dtype_of, literal, negative, operate, select

if TYPE_CHECKING:
    from tack.passes.decompose import Block

__all__ = ["power"]

_UNROLLED: Final = 64
"""Literal exponents up to this are written out."""


def power(node: IRBinOp, out: Block, natural: bool) -> Expression:
    """``base ** exponent``; ``natural`` says that the exponent is never negative.

    A negative exponent gives 0, but for bases 1 and -1 the 1 or -1 that it is.
    """
    known = literal(node.right)
    if known is not None and 0 <= known <= _UNROLLED:
        return _unrolled(node.left, known, out)
    base, exponent = out.hold(node.left), out.hold(node.right)
    result = out.local(dtype_of(base), "power")
    looped = out.inner()
    _loop(base, exponent, result, looped)
    if natural:
        out.statements.extend(looped.statements)
        return result
    negatives = out.inner()
    negatives.assign(result, _to_negative(base, exponent))
    out.statements.append(IRIf(compare("<", exponent, 0), negatives.statements, looped.statements))
    return result


def _unrolled(base: Expression, exponent: int, out: Block) -> Expression:
    """Squares, multiplied where the exponent has a bit."""
    if exponent == 0:
        return constant(1, base)
    square = out.hold(base)
    result: Expression | None = None
    while True:
        if exponent & 1:
            result = square if result is None else out.hold(operate("*", result, square))
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = out.hold(operate("*", square, square))


def _loop(base: Expression, exponent: Expression, result: IRName, out: Block) -> None:
    square = out.local(dtype_of(base), "square")
    left = out.local(dtype_of(exponent), "exponent")
    out.assign(result, constant(1, base))
    out.assign(square, base)
    out.assign(left, exponent)
    body, multiply = out.inner(), out.inner()
    multiply.assign(result, operate("*", result, square))
    odd = compare("!=", operate("&", left, constant(1, left)), 0)
    body.statements.append(IRIf(odd, multiply.statements))
    body.assign(square, operate("*", square, square))
    body.assign(left, operate("shr", left, constant(1, left)))
    out.statements.append(IRWhile(compare("!=", left, 0), body.statements))


def _to_negative(base: Expression, exponent: Expression) -> Expression:
    one, zero = constant(1, base), constant(0, base)
    result: Expression = zero
    if dtype_of(base).is_signed:
        odd = compare("!=", operate("&", exponent, constant(1, exponent)), 0)
        result = select(compare("==", base, -1), select(odd, negative(one), one), zero)
    return select(compare("==", base, 1), one, result)
