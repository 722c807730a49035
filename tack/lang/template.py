"""Classes of templates: objects that a kernel takes apart.

One source so serves many data structures.

`device_class` marks a class. What an object of it gives to a kernel follows from where it stands:
numbers of the class are compiled in, numbers of the object are passed at each call, arrays are
passed as arrays, templates are taken apart in turn, and device functions are inlined.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any, Final, TypeGuard, TypeVar

from tack.lang.array import Array, ArrayOf
from tack.lang.definition import FunctionDefinition
from tack.model.dtypes import DType, plain_number
from tack.model.record import Record
from tack.model.vectors import VectorType, is_constant

__all__ = [
    "EXTENTS",
    "MISSING",
    "WORKING_KINDS",
    "Method",
    "annotation_of",
    "class_value",
    "class_values",
    "constants_of_class",
    "device_class",
    "extents_of",
    "held_by_class",
    "is_array",
    "is_compiled_in",
    "is_device_class",
    "is_template",
    "methods_of",
]

EXTENTS: Final = "tack_extents"
"""The class attribute that names the 1 to 3 extents of a template, the fastest first."""

WORKING_KINDS: Final = (
    "int, float, bool and NumPy scalars, vectors, NumPy arrays, objects of a @tack.device_class, "
    "and @tack.func functions"
)
"""What an attribute that a kernel reads may be."""

_MARK: Final = "__tack_device_class__"
MISSING: Final = object()
_Class = TypeVar("_Class", bound=type)


def device_class(cls: _Class) -> _Class:
    """Marks a class whose objects may be passed to kernels; subclasses are marked with it.

    Numbers of the class are compiled in; numbers and arrays of an object are passed at each call;
    ``@tack.func`` methods are inlined. Names that start with ``_`` are invisible to kernels. With a
    class attribute ``tack_extents = ("nx", "ny")``, 1 to 3 names of attributes, the fastest first,
    a kernel may run over an object: ``for c in obj`` or ``for i, j in obj``.

    Raises ``TypeError`` for what is no class, or extents that are not 1 to 3 names.

    >>> from tack.lang.template_objects import classify_template_attrs
    >>> @device_class
    ... class Grid:
    ...     corners = 8
    ...     def __init__(self, n):
    ...         self.n = n
    >>> classify_template_attrs(Grid(5))
    TemplateAttributes(scalars={'corners': 8}, arrays={}, runtime_scalars={'n': 5})
    """
    if not isinstance(cls, type):
        raise TypeError(f"tack.device_class marks a class, not {type(cls).__name__}")
    setattr(cls, _MARK, True)
    if extents_of(cls) and not hasattr(cls, "__iter__"):
        cls.__iter__ = _iterate  # type: ignore[attr-defined]
    return cls


def is_device_class(value: object) -> TypeGuard[type]:
    """Whether ``value`` is a class that `device_class` marked, or a subclass of one."""
    return isinstance(value, type) and getattr(value, _MARK, False) is True


def is_template(value: object) -> bool:
    """Whether a kernel takes ``value`` apart."""
    return is_device_class(type(value))


def extents_of(cls: type) -> tuple[str, ...]:
    """The names of the extents of a class, the fastest first; empty if it declares none."""
    found = class_value(cls, EXTENTS)
    if found is MISSING:
        return ()
    names = (found,) if isinstance(found, str) else found
    if (
        not isinstance(names, tuple | list)
        or not 1 <= len(names) <= 3
        or not all(isinstance(n, str) and n.isidentifier() and n[0] != "_" for n in names)
        or len(set(names)) != len(names)
    ):
        raise TypeError(
            f"{cls.__qualname__}.{EXTENTS} is {found!r}; write 1 to 3 names of attributes, the "
            f'fastest first, as in {EXTENTS} = ("nx", "ny")'
        )
    return tuple(names)


class Cell(int):
    """The index of one iteration over a template: a number, and the tuple of its parts."""

    parts: tuple[int, ...]

    def __iter__(self) -> Iterator[int]:
        return iter(self.parts)


def _iterate(template: Any) -> Iterator[Cell]:
    """What a parallel loop over ``template`` goes through, in plain Python."""
    extents = [max(int(getattr(template, name)), 0) for name in extents_of(type(template))]
    total = 1
    for extent in extents:
        total *= extent
    for number in range(total):
        cell, rest, parts = Cell(number), number, []
        for extent in extents:
            parts.append(rest % extent)
            rest //= extent
        cell.parts = tuple(parts)
        yield cell


class Method(Record):
    """A device function of a class; a static one takes no self."""

    definition: FunctionDefinition
    static: bool


def methods_of(cls: type) -> dict[str, Method]:
    """The device functions of ``cls`` along its MRO: what overrides one replaces or removes it."""
    found: dict[str, Method] = {}
    for owner in reversed(cls.__mro__):
        for name, value in vars(owner).items():
            inner = value.__func__ if isinstance(value, staticmethod) else value
            if isinstance(inner, FunctionDefinition):
                found[name] = Method(inner, static=inner is not value)
            else:
                found.pop(name, None)
    return found


def class_value(cls: type, name: str) -> Any:
    """What a class has under ``name`` along its MRO, as it stands there; no descriptor runs."""
    for owner in cls.__mro__:
        if name in vars(owner):
            return vars(owner)[name]
    return MISSING


def is_number(value: object) -> bool:
    """Whether ``value`` is a number of Python or NumPy."""
    return plain_number(value) is not None


def is_array(value: object) -> bool:
    """Whether ``value`` is a NumPy array."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def annotation_of(cls: type, name: str) -> DType | VectorType | ArrayOf | None:
    """The type that the class body, or one above it, annotates an attribute with.

    None where there is no annotation, or one that is no type of the kernel language.
    """
    for owner in cls.__mro__[:-1]:
        hints = vars(owner).get("__annotations__") or {}
        if name not in hints:
            continue
        hint = hints[name]
        if isinstance(hint, str):
            hint = _named(owner, hint)
        return hint if isinstance(hint, DType | VectorType | ArrayOf) else None
    return None


def _named(owner: type, text: str) -> object:
    """What an annotation in quotes stands for: a name, or an array of what a name stands for."""
    outer, bracket, inner = text.strip().strip("\"'").partition("[")
    if bracket:
        element = _named(owner, inner.removesuffix("]"))
        is_array = _named(owner, outer) is Array and isinstance(element, VectorType)
        return ArrayOf(element) if is_array and isinstance(element, VectorType) else None
    first, *rest = outer.split(".")
    value: object = getattr(sys.modules.get(owner.__module__), first, None)
    for attribute in rest:
        value = getattr(value, attribute, None) if isinstance(value, types.ModuleType) else None
    return value


def constants_of_class(cls: type) -> dict[str, Any]:
    """The numbers of a class, which kernels compile in."""
    return {name: value for name, value in class_values(cls) if is_compiled_in(value)}


def is_compiled_in(value: object) -> bool:
    """Whether a value of a class is part of the code: a number, or a vector that cannot change."""
    return is_number(value) or is_constant(value)


def held_by_class(cls: type) -> dict[str, Any]:
    """The arrays and templates of a class, which its objects have as if they were their own.

    An object of the class itself, or of one above or below it, is none of them: it would hold
    itself.
    """
    return {
        name: value
        for name, value in class_values(cls)
        if (is_array(value) and not is_constant(value))
        or (
            is_template(value)
            and not issubclass(type(value), cls)
            and not issubclass(cls, type(value))
        )
    }


def class_values(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class has under visible names, by name."""
    names = dict.fromkeys(n for owner in cls.__mro__[:-1] for n in vars(owner) if n[0] != "_")
    for name in sorted(names):
        yield name, class_value(cls, name)
