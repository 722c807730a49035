"""Vectors and matrices while a kernel is lowered: records of scalar expressions.

A value of several components never reaches the IR: each component is an expression of its own,
each local of several components as many locals (`v.x`, `m.r0c1`), so that passes and writers know
scalars only, and what a component is follows from the rules of scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tack.ir.nodes import Expression, IRConstant
from tack.model.vectors import COMPONENTS, VectorType, as_words

__all__ = [
    "Value",
    "VectorMeaning",
    "VectorValue",
    "names_of",
    "parts_of",
    "rows_of",
    "shape_of_value",
    "sub_shape",
    "swizzled",
    "vector_of",
    "words",
]


@dataclass(frozen=True, slots=True)
class VectorValue:
    """A vector, or a matrix row by row."""

    shape: tuple[int, ...]
    parts: tuple[Expression, ...]


Value = Expression | VectorValue
"""What an expression of the source is: a number or several."""


@dataclass(frozen=True, slots=True)
class VectorMeaning:
    """What the name of a vector stands for: an IR name or a literal for each component."""

    shape: tuple[int, ...]
    parts: tuple[str | IRConstant, ...]


def vector_of(type_: VectorType, numbers: Sequence[int | float]) -> VectorValue:
    """A vector whose components are literals of their type."""
    return VectorValue(type_.shape, tuple(IRConstant(each, type_.dtype) for each in numbers))


def names_of(meaning: str | VectorMeaning) -> tuple[str, ...]:
    """The IR names of a local."""
    return (meaning,) if isinstance(meaning, str) else tuple(map(str, meaning.parts))


def swizzled(name: str, shape: tuple[int, ...]) -> list[int] | None:
    """The positions that ``name`` picks of a vector of ``shape``; None for no such components."""
    letters = COMPONENTS[: shape[0]] if len(shape) == 1 else ""
    if not 1 <= len(name) <= len(COMPONENTS) or not set(name) <= set(letters):
        return None
    return [letters.index(letter) for letter in name]


def sub_shape(shape: tuple[int, ...], position: int) -> tuple[tuple[int, ...], range]:
    """Shape and positions of component ``position`` of a vector, or of that row of a matrix."""
    width = shape[1] if len(shape) == 2 else 1
    return shape[1:], range(position * width, (position + 1) * width)


def parts_of(value: Value) -> tuple[Expression, ...]:
    """The expressions of a value."""
    return value.parts if isinstance(value, VectorValue) else (value,)


def shape_of_value(value: Value) -> tuple[int, ...]:
    """The shape of a value; a number has none."""
    return value.shape if isinstance(value, VectorValue) else ()


def rows_of(value: VectorValue) -> list[Value]:
    """What indexing by each position gives: components, or the rows of a matrix."""
    rows: list[Value] = []
    for position in range(value.shape[0]):
        shape, places = sub_shape(value.shape, position)
        picked = tuple(value.parts[place] for place in places)
        rows.append(VectorValue(shape, picked) if shape else picked[0])
    return rows


def words(values: Sequence[Value] | Value) -> str:
    """What values are, for messages: ``a number and a vector of 3``."""
    listed = values if isinstance(values, Sequence) else [values]
    return " and ".join(f"a {as_words(shape_of_value(value))}" for value in listed)
