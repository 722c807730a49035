"""Lowering of what can be read and assigned: names, elements of arrays, components of either."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRBinOp,
    IRConstant,
    IRIf,
    IRIfExp,
    IRName,
)
from tack.ir.traversal import walk_ir
from tack.lang.lower_base import (
    ArrayParameter,
    Meaning,
    again,
    contains_load,
)
from tack.lang.lower_vectors import VectorLowering
from tack.lang.vectors import (
    Value,
    VectorMeaning,
    VectorValue,
    names_of,
    parts_of,
    shape_of_value,
    sub_shape,
    words,
)
from tack.model.dtypes import DType
from tack.model.vectors import VectorType, as_words, component_names

__all__ = ["Case", "Place", "PlaceLowering", "Slot"]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one component lies: a local, or an element of an array, by one index if ``flat``."""

    array: str | None
    name: str = ""
    indices: tuple[Expression, ...] = ()
    flat: bool = False


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


class PlaceLowering(VectorLowering):
    """Lowers reading and assigning."""

    # names

    def read(self, meaning: Meaning) -> Value:
        """The value of what a name stands for, which is no array and no template."""
        if isinstance(meaning, VectorMeaning):
            return VectorValue(meaning.shape, tuple(map(_read, meaning.parts)))
        assert isinstance(meaning, str | IRConstant)
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

    # arrays of vectors

    def load(
        self, node: ast.AST, array: ArrayParameter, indices: list[Expression], is_flat: bool
    ) -> Value:
        """An element of an array: a number, or the vector that its last axes hold."""
        if not array.spec.element:
            return IRArrayLoad(array.name, indices, flat=is_flat)
        return self.content(node, self.element(node, array, indices, is_flat))

    def element(
        self, node: ast.AST, array: ArrayParameter, indices: list[Expression], is_flat: bool
    ) -> Place:
        """The place of an element; one of several components has its indices evaluated once."""
        if not array.spec.element:
            return Place((), (Case((Slot(array.name, "", tuple(indices), is_flat),)),))
        if is_flat:
            return self._flat_element(node, array, indices[0])
        held = [self.reusable(node, index) for index in indices]
        slots = []
        for at in _positions(array.spec.element):
            inner = [self.at(node, IRConstant(k, None, weak=True)) for k in at]
            slots.append(Slot(array.name, "", (*map(again, held), *inner)))
        return Place(array.spec.element, (Case(tuple(slots)),))

    def _flat_element(self, node: ast.AST, array: ArrayParameter, index: Expression) -> Place:
        """The place of the vector that is so many behind the first of a contiguous array."""
        count = math.prod(array.spec.element)
        scale: Expression = self.at(node, IRConstant(count, None, weak=True))
        first: Expression = self.at(node, IRBinOp("*", self.held_index(node, index), scale))
        first = self.temporary(node, first, "flat")
        slots = []
        for k in range(count):
            behind: Expression = self.at(node, IRConstant(k, None, weak=True))
            at = self.at(node, IRBinOp("+", again(first), behind))
            slots.append(Slot(array.name, "", (at,), flat=True))
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
        indices = [again(index) for index in slot.indices]
        return self.at(node, IRArrayLoad(slot.array, indices, flat=slot.flat))

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
                self.emit(node, IRArrayStore(slot.array, indices, again(part), slot.flat))

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
