"""Lowering of vectors and matrices: components, swizzles, operators by component, products."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRBinOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRIfExp,
    IRUnaryOp,
)
from tack.lang.lower_base import (
    LoweringBase,
    again,
)
from tack.lang.vectors import (
    Value,
    VectorValue,
    parts_of,
    rows_of,
    shape_of_value,
    swizzled,
    words,
)
from tack.model import formulas
from tack.model.dtypes import bool_, i64
from tack.model.spelling import counted
from tack.model.vectors import COMPONENTS, VectorType, as_words

__all__ = ["VECTOR_FUNCTIONS", "VectorLowering"]


class _Term:
    """An expression with operators, for `tack.model.formulas`."""

    def __init__(self, owner: LoweringBase, node: ast.AST, ir: Expression) -> None:
        self.owner, self.node, self.ir = owner, node, ir

    def _with(self, op: str, other: _Term) -> _Term:
        ir = IRBinOp(op, again(self.ir), again(other.ir))
        return _Term(self.owner, self.node, self.owner.at(self.node, ir))

    def __add__(self, other: _Term) -> _Term:
        return self._with("+", other)

    def __sub__(self, other: _Term) -> _Term:
        return self._with("-", other)

    def __mul__(self, other: _Term) -> _Term:
        return self._with("*", other)

    def __truediv__(self, other: _Term) -> _Term:
        return self._with(
            "/", _Term(self.owner, self.node, self.owner.reusable(self.node, other.ir))
        )

    def __neg__(self) -> _Term:
        ir = self.owner.at(self.node, IRUnaryOp("-", again(self.ir)))
        return _Term(self.owner, self.node, ir)


class VectorLowering(LoweringBase):
    """Lowers what vectors and matrices have and numbers have not."""

    # operators

    def componentwise(
        self,
        node: ast.AST,
        values: Sequence[Value],
        make: Callable[..., Expression],
        what: str,
    ) -> Value:
        """``make`` of the values' components; numbers are repeated, other shapes are refused."""
        shapes = {shape for value in values if (shape := shape_of_value(value))}
        if not shapes:
            return self.at(node, make(*values))
        if len(shapes) > 1:
            product = "; '@' is the product of matrices" if what == "'*'" else ""
            raise self.refuse(
                node,
                f"{what} goes by components, and these are {words(values)}; make them of one size"
                f"{product}",
            )
        (shape,) = shapes
        count = len(next(v.parts for v in values if isinstance(v, VectorValue)))
        columns = [
            value.parts if isinstance(value, VectorValue) else (self.reusable(node, value),) * count
            for value in values
        ]
        parts = (self.at(node, make(*map(again, row))) for row in zip(*columns, strict=True))
        return VectorValue(shape, tuple(parts))

    def _terms(self, node: ast.AST, value: VectorValue) -> list[list[_Term]]:
        """The rows of a matrix, or the one row of a vector, each component evaluated once."""
        width = value.shape[-1]
        parts = [_Term(self, node, self.reusable(node, part)) for part in value.parts]
        return [parts[start : start + width] for start in range(0, len(parts), width)]

    def product(self, node: ast.AST, left: Value, right: Value) -> Value:
        """``left @ right``: a vector is a row on the left and a column on the right."""
        if not isinstance(left, VectorValue) or not isinstance(right, VectorValue):
            raise self.refuse(
                node, f"'@' is the product of matrices and vectors, not of {words([left, right])}"
            )
        if left.shape[-1] != right.shape[0]:
            raise self.refuse(
                node,
                f"{words(left)} @ {words(right)}: the left one has {left.shape[-1]} columns, the "
                f"right one {right.shape[0]} rows",
            )
        rows, columns = self._terms(node, left), self._terms(node, right)
        if len(right.shape) == 1:
            columns = [[term] for term in columns[0]]
        result = formulas.product(rows, columns)
        shape = left.shape[:-1] + right.shape[1:]
        return self._from_terms(shape, [term for row in result for term in row])

    def _from_terms(self, shape: tuple[int, ...], terms: Sequence[_Term]) -> Value:
        parts = tuple(term.ir for term in terms)
        return VectorValue(shape, parts) if shape else parts[0]

    # functions

    def vector_function(self, node: ast.Call, name: str, values: list[Value]) -> Value:
        """One of `VECTOR_FUNCTIONS` of these values."""
        kind, arity = VECTOR_FUNCTIONS[name]
        rank = 2 if kind.endswith("matrix") else 1
        if len(values) != arity:
            raise self.refuse(node, f"{name} takes {counted(arity, kind)}, not {len(values)}")
        shapes = list(map(shape_of_value, values))
        vectors = [value for value in values if isinstance(value, VectorValue)]
        wrong = (
            len(set(shapes)) > 1
            or len(shapes[0]) != rank
            or (name == "cross" and shapes[0] != (3,))
            or (kind == "square matrix" and len(set(shapes[0])) > 1)
        )
        if wrong:
            alike = f"{kind}s of one size" if arity > 1 else f"a {kind}"
            needed = "two vectors of 3" if name == "cross" else alike
            raise self.refuse(node, f"{name} takes {needed}, not {words(values)}")
        return self._apply(node, name, vectors)

    def _apply(self, node: ast.Call, name: str, values: list[VectorValue]) -> Value:
        first, last = self._terms(node, values[0]), self._terms(node, values[-1])
        shape = values[0].shape
        if name == "cross":
            return self._from_terms(shape, formulas.cross(first[0], last[0]))
        if name in ("transpose", "inverse"):
            if name == "inverse":
                whole = _Term(self, node, self.temporary(node, formulas.determinant(first).ir))
                rows = formulas.inverse(first, whole)
            else:
                rows = formulas.transpose(first)
            return self._from_terms(shape[::-1], [term for row in rows for term in row])
        if name == "determinant":
            term: _Term = formulas.determinant(first)
            return term.ir
        total: Expression = formulas.dot(first[0], last[0]).ir
        if name == "dot":
            return total
        length = self.at(node, IRCall("sqrt", [total]))
        if name == "length":
            return length
        whole = _Term(self, node, self.temporary(node, length))
        return self._from_terms(shape, [term / whole for term in first[0]])

    def any_or_all(self, node: ast.Call, name: str, values: list[Value]) -> Value:
        """Whether any, or every, component of a vector is true."""
        if len(values) != 1 or not isinstance(values[0], VectorValue):
            raise self.refuse(node, f"{name} takes one vector, not {words(values) or 'nothing'}")
        first, *rest = (self.at(node, IRCast(part, bool_)) for part in values[0].parts)
        result: Expression = first
        for part in rest:
            result = self.at(node, IRBinOp("|" if name == "any" else "&", result, part))
        return result

    # making and taking apart

    def construct(self, node: ast.Call, type_: VectorType, values: list[Value]) -> Value:
        """``tack.f32x3(...)``: of components, of smaller vectors, or of one value to convert."""
        parts = [part for value in values for part in parts_of(value)]
        shape = shape_of_value(values[0]) if len(values) == 1 else None
        if shape == ():
            parts = [self.reusable(node, parts[0])] * type_.count
        other_matrix = shape is not None and len(shape) == 2 and shape != type_.shape
        if len(parts) != type_.count or other_matrix:
            given = f"{words(values)}, {len(parts)} in all" if values else "nothing"
            raise self.refuse(
                node, f"{type_.name} has {type_.count} components, and is given {given}"
            )
        casts = (self.at(node, IRCast(again(part), type_.dtype)) for part in parts)
        return VectorValue(type_.shape, tuple(casts))

    def swizzle(self, node: ast.Attribute, value: Value) -> Value:
        """``v.x`` or ``v.zyx``."""
        picked = self._picked(node, shape_of_value(value))
        parts = parts_of(value)
        if len(picked) == 1:
            return parts[picked[0]]
        if len(set(picked)) < len(picked):
            parts = tuple(self.reusable(node, part) for part in parts)
        return VectorValue((len(picked),), tuple(again(parts[k]) for k in picked))

    def _picked(self, node: ast.Attribute, shape: tuple[int, ...]) -> list[int]:
        if not shape:
            raise self.refuse(node, f"a number has no attribute {node.attr!r} here")
        picked = swizzled(node.attr, shape)
        if picked is None:
            has = (
                f"has .{' .'.join(COMPONENTS[: shape[0]])} and their combinations of 2 to 4"
                if len(shape) == 1
                else "has elements m[i, j] and rows m[i]"
            )
            raise self.refuse(node, f"a {as_words(shape)} {has}, no .{node.attr}")
        return picked

    def component(self, node: ast.Subscript, value: Value) -> Value:
        """``v[i]``, ``m[i, j]`` or the row ``m[i]``."""
        for index in self._component_indices(node, shape_of_value(value)):
            assert isinstance(value, VectorValue)
            rows, literal = rows_of(value), self.literal_index(node, index, value.shape)
            value = rows[literal] if literal is not None else self._chosen(node, rows, index)
        return value

    def _component_indices(self, node: ast.Subscript, shape: tuple[int, ...]) -> list[Expression]:
        """The indices of a subscript of a vector or matrix, evaluated."""
        if not shape:
            raise self.refuse(
                node, "only arrays, their .flat and .shape, and vectors can be indexed"
            )
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) > len(shape):
            raise self.refuse(node, f"a {as_words(shape)} is given {len(nodes)} indices")
        return [
            index if _is_literal(index) else self.held_index(place, index)
            for place, index in zip(nodes, self.evaluate(nodes), strict=True)
        ]

    def literal_index(self, node: ast.AST, index: Expression, shape: tuple[int, ...]) -> int | None:
        """The value of a literal index, which must be in range; None for one of run time."""
        if not isinstance(index, IRConstant):
            return None
        number = index.value
        if not isinstance(number, int):
            raise self.refuse(
                node, f"an index is an integer, not {number}; write // or cast it: int(...)"
            )
        if not 0 <= number < shape[0]:
            raise self.refuse(
                node,
                f"the index {number} is out of range: a {as_words(shape)} has 0 to {shape[0] - 1}",
            )
        return int(number)

    def _chosen(self, node: ast.AST, rows: list[Value], index: Expression) -> Value:
        """The row that a run-time index picks; the last one for an index out of range."""
        result = rows[-1]
        for position in reversed(range(len(rows) - 1)):

            def choose(one: Expression, other: Expression, position: int = position) -> Expression:
                return IRIfExp(self._is(node, index, position), one, other)

            result = self.componentwise(node, [rows[position], result], choose, "")
        return result

    def _is(self, node: ast.AST, index: Expression, position: int) -> Expression:
        number = self.at(node, IRConstant(position, i64))
        return self.at(node, IRCompare("==", again(index), number))


def _is_literal(index: Expression) -> bool:
    return isinstance(index, IRConstant) and not isinstance(index.value, bool)


VECTOR_FUNCTIONS: Final[dict[str, tuple[str, int]]] = {
    "dot": ("vector", 2),
    "cross": ("vector", 2),
    "length": ("vector", 1),
    "normalize": ("vector", 1),
    "transpose": ("matrix", 1),
    "determinant": ("square matrix", 1),
    "inverse": ("square matrix", 1),
}
"""Function of `tack` -> what it takes, and how many of them."""
