"""Formulas on NumPy's numbers: what elementary functions are in plain Python.

NumPy rounds each operation as targets do, so that the bits are those of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tack.elementary.term import Formula, Guarded, Term
from tack.model.dtypes import numpy_name

__all__ = ["evaluate"]


def evaluate(formula: Formula, *args: Any) -> Any:
    """The result of a formula with one result, of NumPy scalars or arrays of one shape."""
    with np.errstate(all="ignore"):
        return _run(formula, args)[0]


def _run(formula: Formula, args: tuple[Any, ...]) -> tuple[Any, ...]:
    values: dict[Term, Any] = dict(zip(formula.parameters, args, strict=True))
    for term in formula.terms():
        if term not in values:
            values[term] = _APPLY[term.op](term, *(values[each] for each in term.operands))
    return tuple(values[each] for each in formula.results)


def _type(term: Term) -> np.dtype[Any]:
    return np.dtype(numpy_name(term.dtype))


def _scalar(x: Any) -> Any:
    """An array, but the scalar in one of rank 0."""
    return x[()]


def _bitcast(term: Term, x: Any) -> Any:
    return _scalar(np.asarray(x).view(_type(term)))


def _guarded(term: Term, condition: Any, *rest: Any) -> tuple[Any, ...]:
    assert isinstance(term.value, Guarded)
    formula = term.value.formula
    count = len(formula.parameters)
    args, otherwise = rest[:count], rest[count:]
    if not np.any(condition):
        return otherwise
    pairs = zip(_run(formula, args), otherwise, strict=True)
    return tuple(_scalar(np.where(condition, one, other)) for one, other in pairs)


_APPLY: Final[dict[str, Callable[..., Any]]] = {
    "constant": lambda term: _type(term).type(term.value),
    "+": lambda _, a, b: a + b,
    "-": lambda _, a, b: a - b,
    "*": lambda _, a, b: a * b,
    "/": lambda _, a, b: a / b,
    "&": lambda _, a, b: a & b,
    "|": lambda _, a, b: a | b,
    "^": lambda _, a, b: a ^ b,
    "shl": lambda _, a, b: a << b,
    "shr": lambda _, a, b: a >> b,
    "neg": lambda _, a: -a,
    "not": lambda _, a: np.logical_not(a),
    "<": lambda _, a, b: a < b,
    "<=": lambda _, a, b: a <= b,
    ">": lambda _, a, b: a > b,
    ">=": lambda _, a, b: a >= b,
    "==": lambda _, a, b: a == b,
    "!=": lambda _, a, b: a != b,
    "select": lambda _, condition, a, b: _scalar(np.where(condition, a, b)),
    "abs": lambda _, a: np.abs(a),
    "copysign": lambda _, a, b: np.copysign(a, b),
    "sqrt": lambda _, a: np.sqrt(a),
    "round": lambda _, a: np.rint(a),
    "floor": lambda _, a: np.floor(a),
    "trunc": lambda _, a: np.trunc(a),
    "bitcast": _bitcast,
    "cast": lambda term, a: _scalar(np.asarray(a).astype(_type(term))),
    "guarded": _guarded,
    "result": lambda term, results: results[term.value],
}
"""Operation -> its value, of the term and the values of its operands."""
