"""Elementary functions and random numbers as IR, by the formulas of ``tack.elementary``.

A term that is read once stands where it is read; others are evaluated into temporaries, in the
order in which they are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from tack.elementary.counter_based import random_formula
from tack.elementary.functions import formula_of
from tack.elementary.term import Formula, Guarded, Term
from tack.ir.nodes import (
    Expression,
    IRBinOp,
    IRCall,
    IRCompare,
    IRConstant,
    IRIf,
    IRIfExp,
    IRName,
    IRUnaryOp,
)
from tack.ir.operations import COMPARISONS, TARGET_BINARY
from tack.model.dtypes import DTYPES, f32
from tack.passes.build import bitcast, cast, dtype_of

if TYPE_CHECKING:
    from tack.passes.decompose import Block

__all__ = ["elementary", "random_number"]


def elementary(node: IRCall, out: Block, native: Container[tuple[str, str]] = ()) -> Expression:
    """The value of an elementary function; of f16 and bf16 that of f32, rounded.

    One that is ``native`` is called.
    """
    dtype = dtype_of(node)
    wide = f32 if dtype.is_narrow_float else dtype
    if (node.function, wide.name) in native:
        return cast(IRCall(node.function, [cast(arg, wide) for arg in node.args], wide), dtype)
    args = [out.hold(cast(arg, wide)) for arg in node.args]
    (result,) = _written(formula_of(node.function, wide), args, out)
    return cast(out.hold(result), dtype)


def random_number(node: IRCall, out: Block) -> Expression:
    """The random number of a seed and a counter."""
    args = [out.hold(arg) for arg in node.args]
    (result,) = _written(random_formula(node.function), args, out)
    return result


def _written(formula: Formula, args: Sequence[Expression], out: Block) -> list[Expression]:
    """The results of a formula; what must come first is written to ``out``."""
    terms, uses = _order(formula)
    values: dict[Term, Expression] = dict(zip(formula.parameters, args, strict=True))
    guarded: dict[Term, list[IRName]] = {}
    for term in terms:
        if term in values:
            continue
        if isinstance(term.value, Guarded):
            operands = [out.hold(values[each]) for each in term.operands]
            guarded[term] = _guarded(term.value.formula, operands, out)
        elif term.op == "result":
            assert isinstance(term.value, int)
            values[term] = guarded[term.operands[0]][term.value]
        else:
            value = _expression(term, [values[each] for each in term.operands])
            values[term] = out.hold(value) if uses[term] > 1 else value
    return [values[term] for term in formula.results]


@cache
def _order(formula: Formula) -> tuple[tuple[Term, ...], Counter[Term]]:
    """The terms of a formula, operands first, and how often each is read."""
    terms = tuple(formula.terms())
    return terms, Counter(operand for term in terms for operand in term.operands)


def _guarded(formula: Formula, operands: Sequence[Expression], out: Block) -> list[IRName]:
    """Locals that hold the results of a formula where its condition holds, else the others."""
    condition, *rest = operands
    count = len(formula.parameters)
    args, otherwise = rest[:count], rest[count:]
    results = [out.evaluate(value) for value in otherwise]
    inner = out.inner()
    for result, value in zip(results, _written(formula, args, inner), strict=True):
        inner.assign(result, value)
    out.statements.append(IRIf(condition, inner.statements))
    return results


def _expression(term: Term, operands: list[Expression]) -> Expression:
    if term.op == "constant":
        assert isinstance(term.value, int | float)
        return IRConstant(term.value, term.dtype)
    if term.op in TARGET_BINARY:
        return IRBinOp(term.op, operands[0], operands[1], term.dtype)
    if term.op in COMPARISONS:
        return IRCompare(term.op, operands[0], operands[1], term.dtype)
    write = _NODES.get(term.op)
    if write is None:
        return IRCall(term.op, operands, term.dtype)
    return write(term, *operands)


def _unsigned(node: Expression) -> Expression:
    """An integer with its bits in the unsigned type, from which targets make floats."""
    return cast(node, DTYPES[f"u{dtype_of(node).bits}"])


_NODES: Final[dict[str, Callable[..., Expression]]] = {
    "neg": lambda term, a: IRUnaryOp("-", a, term.dtype),
    "not": lambda term, a: IRUnaryOp("not", a, term.dtype),
    "select": lambda term, condition, a, b: IRIfExp(condition, a, b, term.dtype),
    "bitcast": lambda term, a: bitcast(_unsigned(a) if term.dtype.is_float else a, term.dtype),
    "cast": lambda term, a: cast(a, term.dtype),
}
"""Operation -> its node, where that is no binary operator, comparison or builtin of that name."""
