"""Annotations of parameters, and vector arguments as numbers.

A compiled kernel is passed one number for each component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tack.lang.array import ArrayOf
from tack.lang.definition import Annotation, KernelDefinition
from tack.model.dtypes import DType
from tack.model.spelling import article
from tack.model.vectors import VectorType

__all__ = ["annotations_of", "grouped", "numbers_of"]


def annotations_of(definition: KernelDefinition) -> tuple[Annotation | None, ...]:
    """What each parameter's annotation says, from the running function: no source is needed."""
    hints = definition.function.__annotations__
    return tuple(_hint(definition, hints.get(name)) for name in definition.parameters)


def _hint(definition: KernelDefinition, hint: object) -> Annotation | None:
    if isinstance(hint, str):
        hint = definition.annotation_in(hint)
    return hint if isinstance(hint, DType | VectorType | ArrayOf) else None


def numbers_of(definition: KernelDefinition, index: int, value: object) -> tuple[Any, ...]:
    """The numbers of the argument for parameter ``index``, which is annotated a vector or matrix.

    It is a sequence or an array of as many numbers; of a matrix one row by row, or of rows.
    ``TypeError`` for anything else.
    """
    type_ = annotations_of(definition)[index]
    assert isinstance(type_, VectorType)
    numbers = tuple(_numbers(value))
    shape = getattr(value, "shape", None)
    rows = shape is None or shape in (type_.shape, (type_.count,))
    if len(numbers) != type_.count or not rows:
        name = definition.parameters[index]
        found = f"an array of shape {shape}" if shape else f"{len(numbers)} of them"
        if not shape and not isinstance(value, list | tuple):
            found = article(type(value).__name__)
        raise TypeError(
            f"{definition.name}: {name!r} is annotated {type_}: pass a sequence of {type_.count} "
            f"numbers, not {found}"
        )
    return numbers


def _numbers(value: Any) -> Iterator[Any]:
    """What a nested sequence or an array holds."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    else:
        yield value


def grouped(definition: KernelDefinition, args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a call, one for each parameter, of one for each component."""
    rest = iter(args)
    return tuple(
        tuple(next(rest) for _ in range(annotation.count))
        if isinstance(annotation, VectorType)
        else next(rest)
        for annotation in annotations_of(definition)
    )
