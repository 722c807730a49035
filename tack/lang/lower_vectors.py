"""Lowering of vectors and matrices: components, swizzles, operators by component, products."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRBinOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRIf,
    IRIfExp,
    IRName,
    IRUnaryOp,
)
from tack.ir.traversal import walk_ir
from tack.lang.lower_base import (
    ArrayParameter,
    LoweringBase,
    Meaning,
    again,
    contains_load,
)
from tack.lang.vectors import (
    Value,
    VectorMeaning,
    VectorValue,
    names_of,
    parts_of,
    rows_of,
    shape_of_value,
    sub_shape,
    swizzled,
    words,
)
from tack.model import formulas
from tack.model.dtypes import DType, bool_, i64
from tack.model.vectors import COMPONENTS, VectorType, as_words, component_names

__all__ = ["VECTOR_FUNCTIONS", "Case", "Place", "Slot", "VectorLowering"]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one component lies: a local, or an element of an array."""

    array: str | None
    name: str = ""
    indices: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """The slots of a place where run-time indices have these values."""

    slots: tuple[Slot, ...]
    where: tuple[tuple[Expression, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """What can be assigned: one case, or one for each value of the run-time indices."""

    shape: tuple[int, ...]
    cases: tuple[Case, ...]

    def pick(self, shape: tuple[int, ...], positions: Sequence[int]) -> Place:
        """The part of this place that lies at ``positions``."""
        cases = (Case(tuple(c.slots[k] for k in positions), c.where) for c in self.cases)
        return Place(shape, tuple(cases))


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

    # names

    def read(self, meaning: Meaning) -> Value:
        """The value of what a name stands for, which is no array."""
        if isinstance(meaning, VectorMeaning):
            return VectorValue(meaning.shape, tuple(map(_read, meaning.parts)))
        assert not isinstance(meaning, ArrayParameter)
        return _read(meaning)

    def write(self, node: ast.AST, target: str | VectorMeaning, value: Value) -> None:
        """Emits the assignments of ``value`` to names that it may read."""
        names = (target,) if isinstance(target, str) else target.parts
        shape = () if isinstance(target, str) else target.shape
        slots = tuple(Slot(None, str(name)) for name in names)
        self.fill(node, Place(shape, (Case(slots),)), value)

    def new_local(
        self, base: str, shape: tuple[int, ...], annotation: DType | VectorType | None
    ) -> str | VectorMeaning:
        """A local called ``base``, of the annotated type if there is one."""
        target = self.new_vector(base, shape) if shape else base
        if annotation is not None:
            dtype = annotation.dtype if isinstance(annotation, VectorType) else annotation
            self.declared.update(dict.fromkeys(names_of(target), dtype))
        return target

    def new_vector(self, base: str, shape: tuple[int, ...]) -> VectorMeaning:
        """The locals of a vector called ``base``, which share one type."""
        names = component_names(base, shape)
        self.groups.append(names)
        return VectorMeaning(shape, names)

    def check_annotation(
        self,
        node: ast.AST,
        what: str,
        annotation: DType | VectorType | None,
        shape: tuple[int, ...],
    ) -> None:
        """Refuses a value of another shape than ``annotation`` says."""
        wanted = annotation.shape if isinstance(annotation, VectorType) else ()
        if annotation is not None and wanted != shape:
            raise self.refuse(
                node, f"{what} is annotated {annotation}, and this is a {as_words(shape)}"
            )

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
            raise self.refuse(
                node, f"{name} takes {arity} {kind}{'s' * (arity > 1)}, not {len(values)}"
            )
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
            raise self.refuse(node, "only arrays, vectors and an array's .shape can be indexed")
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) > len(shape):
            raise self.refuse(node, f"a {as_words(shape)} is given {len(nodes)} indices")
        return [
            index if isinstance(index, IRConstant) else self._held_index(place, index)
            for place, index in zip(nodes, self.evaluate(nodes), strict=True)
        ]

    def _held_index(self, node: ast.AST, index: Expression) -> Expression:
        """A run-time index in an i64 of its own: declared, so that a float is refused."""
        name = f"index.{self.count()}"
        self.declared[name] = i64
        self.emit_assign(node, name, index)
        return self.at(node, IRName(name))

    def literal_index(self, node: ast.AST, index: Expression, shape: tuple[int, ...]) -> int | None:
        """The value of a literal index, which must be in range; None for one of run time."""
        if not isinstance(index, IRConstant):
            return None
        number = index.value
        if not isinstance(number, int) or not 0 <= number < shape[0]:
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

    # arrays of vectors

    def load(self, node: ast.AST, array: ArrayParameter, indices: list[Expression]) -> Value:
        """An element of an array: a number, or the vector that its last axes hold."""
        if not array.spec.element:
            return IRArrayLoad(array.name, indices)
        place = self.element(node, array, indices)
        return self.content(node, place)

    def element(self, node: ast.AST, array: ArrayParameter, indices: list[Expression]) -> Place:
        """The place of an element; one of several components has its indices evaluated once."""
        if not array.spec.element:
            return Place((), (Case((Slot(array.name, "", tuple(indices)),)),))
        held = [self.reusable(node, index) for index in indices]
        slots = []
        for at in _positions(array.spec.element):
            inner = [self.at(node, IRConstant(k, None, weak=True)) for k in at]
            slots.append(Slot(array.name, "", (*map(again, held), *inner)))
        return Place(array.spec.element, (Case(tuple(slots)),))

    # places

    def content(self, node: ast.AST, place: Place) -> Value:
        """What lies in a place now; of the last case where an index is out of range."""
        values = [
            self._vector(place.shape, [self._slot(node, slot) for slot in case.slots])
            for case in place.cases
        ]
        result = values[-1]
        for case, value in zip(reversed(place.cases[:-1]), reversed(values[:-1]), strict=True):

            def choose(one: Expression, other: Expression, case: Case = case) -> Expression:
                for index, position in reversed(case.where):
                    one = self.at(node, IRIfExp(self._is(node, index, position), one, other))
                return one

            result = self.componentwise(node, [value, result], choose, "")
        return result

    def _slot(self, node: ast.AST, slot: Slot) -> Expression:
        if slot.array is None:
            return self.at(node, IRName(slot.name))
        return self.at(node, IRArrayLoad(slot.array, [again(index) for index in slot.indices]))

    def _vector(self, shape: tuple[int, ...], parts: list[Expression]) -> Value:
        return VectorValue(shape, tuple(parts)) if shape else parts[0]

    def fill(self, node: ast.AST, place: Place, value: Value) -> None:
        """Emits the assignments of ``value`` to ``place``, as if they were one.

        Where an index is out of range nothing is assigned.
        """
        if shape_of_value(value) != place.shape:
            raise self.refuse(
                node, f"this is {words(value)}, and goes into a {as_words(place.shape)}"
            )
        if len(place.cases) == 1:
            if _reads_what_it_fills(parts_of(value), place.cases[0].slots):
                value = self.settled(node, value)
            self._fill_slots(node, place.cases[0].slots, value)
            return
        value = self.settled(node, value)
        for case in place.cases:
            with self.collect() as body:
                self._fill_slots(node, case.slots, value)
            for index, position in reversed(case.where):
                body = [self.at(node, IRIf(self._is(node, index, position), body, []))]
            self.out.extend(body)

    def _fill_slots(self, node: ast.AST, slots: Sequence[Slot], value: Value) -> None:
        for slot, part in zip(slots, parts_of(value), strict=True):
            if slot.array is None:
                self.emit_assign(node, slot.name, again(part))
            else:
                indices = [again(index) for index in slot.indices]
                self.emit(node, IRArrayStore(slot.array, indices, again(part)))

    def place_within(self, node: ast.Attribute | ast.Subscript, outer: Place) -> Place:
        """The component, swizzle or row of ``outer`` that ``node`` names."""
        if isinstance(node, ast.Attribute):
            picked = self._picked(node, outer.shape)
            if len(set(picked)) < len(picked):
                raise self.refuse(
                    node, f".{node.attr} names a component twice; it can be read only"
                )
            return outer.pick((len(picked),) if len(picked) > 1 else (), picked)
        for index in self._component_indices(node, outer.shape):
            literal = self.literal_index(node, index, outer.shape)
            if literal is not None:
                outer = outer.pick(*sub_shape(outer.shape, literal))
                continue
            cases: list[Case] = []
            for position in range(outer.shape[0]):
                inner = outer.pick(*sub_shape(outer.shape, position))
                cases += [Case(c.slots, (*c.where, (index, position))) for c in inner.cases]
            outer = Place(outer.shape[1:], tuple(cases))
        return outer


def _read(part: str | IRConstant) -> Expression:
    return IRName(part) if isinstance(part, str) else IRConstant(part.value, part.dtype, part.weak)


def _positions(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def _reads_what_it_fills(parts: Sequence[Expression], slots: Sequence[Slot]) -> bool:
    """Whether a component reads what an earlier one has filled by then."""
    for position, part in enumerate(parts):
        names = {slot.name for slot in slots[:position] if slot.array is None}
        if names and any(isinstance(n, IRName) and n.name in names for n in walk_ir(part)):
            return True
        if position and slots[0].array is not None and contains_load(part):
            return True
    return False


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
