"""Templates: objects that a kernel takes apart, so that one source serves many data structures.

`device_class` marks a class. What an object of it gives to a kernel follows from where it stands:
numbers of the class are compiled in, numbers of the object are passed at each call, arrays are
passed as arrays, templates are taken apart in turn, and device functions are inlined.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeGuard, TypeVar

from tack.lang.array import Array, ArrayOf
from tack.lang.bindings import Constant
from tack.lang.definition import FunctionDefinition
from tack.model.dtypes import DType, plain_number
from tack.model.record import Record
from tack.model.spelling import article
from tack.model.vectors import VectorType, is_constant

__all__ = [
    "EXTENTS",
    "MISSING",
    "WORKING_KINDS",
    "Attributes",
    "Method",
    "TemplateAttributes",
    "annotation_of",
    "attributes_of",
    "class_value",
    "classify_template_attrs",
    "constants_of_class",
    "device_class",
    "extents_of",
    "held_by_class",
    "is_device_class",
    "is_hidden",
    "is_number",
    "is_template",
    "methods_of",
    "slot_value",
    "template_scope",
    "template_tree",
]

EXTENTS: Final = "tack_extents"
"""The class attribute that names the 1 to 3 extents of a template, the fastest first."""

WORKING_KINDS: Final = (
    "int, float, bool and NumPy scalars, vectors, NumPy arrays, objects of a @tack.device_class, "
    "and @tack.func functions"
)
"""What an attribute that a kernel reads may be."""

MAX_DEPTH: Final = 64
"""How many attributes lead to the innermost template at most."""

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


def class_has(cls: type, name: str) -> bool:
    """Whether a class has ``name`` along its MRO."""
    return class_value(cls, name) is not MISSING


def is_number(value: object) -> bool:
    """Whether ``value`` is a number of Python or NumPy, or a `constant` that is one."""
    return plain_number(value) is not None


def _is_array(value: object) -> bool:
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
    return {name: value for name, value in _class_values(cls) if _is_compiled_in(value)}


def _is_compiled_in(value: object) -> bool:
    return is_number(value) or is_constant(value)


def held_by_class(cls: type) -> dict[str, Any]:
    """The arrays and templates of a class, which its objects have as if they were their own.

    An object of the class itself, or of one above or below it, is none of them: it would hold
    itself.
    """
    return {
        name: value
        for name, value in _class_values(cls)
        if (_is_array(value) and not is_constant(value))
        or (
            is_template(value)
            and not issubclass(type(value), cls)
            and not issubclass(cls, type(value))
        )
    }


def _class_values(cls: type) -> Iterator[tuple[str, Any]]:
    names = dict.fromkeys(n for owner in cls.__mro__[:-1] for n in vars(owner) if n[0] != "_")
    for name in sorted(names):
        yield name, class_value(cls, name)


class Attributes(Record):
    """The attributes of one object, without what it holds below, by how a kernel uses them.

    ``others`` maps the names of what no kernel can read to what it is.
    """

    constants: dict[str, Any]
    scalars: dict[str, Any]
    arrays: dict[str, Any]
    children: dict[str, Any]
    functions: dict[str, FunctionDefinition]
    others: dict[str, str]


_memo: ContextVar[dict[int, Attributes] | None] = ContextVar("tack_template_scope", default=None)


@contextmanager
def template_scope() -> Iterator[None]:
    """Inside, each object's attributes are sorted out once.

    For the length of a call that keeps the objects alive and changes none of them.
    """
    if _memo.get() is not None:
        yield
        return
    token = _memo.set({})
    try:
        yield
    finally:
        _memo.reset(token)


def attributes_of(template: object) -> Attributes:
    """The attributes of an object, by how a kernel uses them."""
    memo = _memo.get()
    if memo is None:
        return _sort_out(template)
    found = memo.get(id(template))
    if found is None:
        found = memo[id(template)] = _sort_out(template)
    return found


def own_values(template: object) -> Iterator[tuple[str, Any]]:
    """What an object itself holds under visible names, in its ``__dict__`` and its slots."""
    cls = type(template)
    for name, value in dict(getattr(template, "__dict__", {})).items():
        if isinstance(name, str) and name[:1] != "_" and not is_hidden(cls, name):
            yield name, value
    for owner in cls.__mro__:
        for name, slot in vars(owner).items():
            if name[0] != "_" and isinstance(slot, types.MemberDescriptorType):
                value = slot_value(template, slot)
                if value is not MISSING and class_value(cls, name) is slot:
                    yield name, value


def slot_value(template: object, slot: types.MemberDescriptorType) -> Any:
    """What an object has in a slot, or `MISSING`; nothing that its class overrides is asked."""
    try:
        return slot.__get__(template, type(template))
    except AttributeError:
        return MISSING


def is_hidden(cls: type, name: str) -> bool:
    """Whether the class has a property or the like that Python asks before the object."""
    return hasattr(type(class_value(cls, name)), "__set__")


def _sort_out(template: object) -> Attributes:
    cls = type(template)
    found = Attributes(constants_of_class(cls), {}, {}, {}, {}, {})
    methods, held = methods_of(cls), held_by_class(cls)
    for name, value in _class_values(cls):
        if name not in found.constants and name not in methods and name not in held:
            found.others[name] = _describe(value)
    own = dict(own_values(template))
    held = {name: value for name, value in held.items() if name not in own}
    for name, value in (*held.items(), *own.items()):
        hides = found.constants.pop(name, MISSING) is not MISSING
        found.others.pop(name, None)
        if isinstance(value, Constant) or (hides and is_number(value)):
            found.constants[name] = value
        elif is_number(value):
            found.scalars[name] = value
        elif _is_array(value):
            found.arrays[name] = value
        elif is_template(value):
            found.children[name] = value
        elif isinstance(value, FunctionDefinition):
            found.functions[name] = value
        else:
            found.others[name] = _describe(value)
    return found


def _describe(value: object) -> str:
    """What an attribute that no kernel can read is."""
    if isinstance(value, property):
        return "a property"
    if isinstance(value, classmethod):
        return "a class method; write a method or a @staticmethod"
    if isinstance(value, types.FunctionType | staticmethod):
        return "a plain method; decorate it @tack.func"
    if isinstance(value, FunctionDefinition):
        return "a device function"
    if is_template(value):
        return f"{article(type(value).__name__)} of a class that it belongs to"
    if isinstance(value, types.MemberDescriptorType):
        return "a slot without a value; set it on the object"
    return "None" if value is None else article(type(value).__name__)


class TemplateAttributes(NamedTuple):
    """What a template gives to a kernel, by flattened name.

    ``scalars`` are compiled in; ``arrays`` and ``runtime_scalars`` are passed at each call.
    """

    scalars: dict[str, Any]
    arrays: dict[str, Any]
    runtime_scalars: dict[str, Any]


def classify_template_attrs(template: object) -> TemplateAttributes:
    """The attributes of a template and of those it holds, by how a kernel uses them.

    A nested attribute is named by its path, joined with ``__``. Raises ``TypeError`` for what is no
    template, for a cycle or 64 of them inside each other, and where two attributes flatten to one
    name.
    """
    found = TemplateAttributes({}, {}, {})
    places: dict[str, str] = {}
    for path, node in _tree(template):
        own = attributes_of(node)
        for group, values in zip(found, (own.constants, own.arrays, own.scalars), strict=True):
            for name, value in values.items():
                flat, place = "__".join((*path, name)), ".".join((*path, name))
                if flat in places:
                    raise TypeError(
                        f"{type(template).__qualname__}: the attributes {places[flat]} and {place} "
                        f"both flatten to {flat!r}; rename one"
                    )
                places[flat] = place
                group[flat] = value
    return found


def template_tree(template: object) -> list[tuple[str, object]]:
    """A template and all that it holds, depth first and by name, each with its path.

    The path is empty for the template itself, and joins names with ``__``. One object may stand at
    several paths. Raises ``TypeError`` for what is no template, and for a cycle.
    """
    return [("__".join(path), node) for path, node in _tree(template)]


def _tree(template: object) -> Iterator[tuple[tuple[str, ...], object]]:
    if not is_template(template):
        raise TypeError(
            f"a {type(template).__name__} is no template; decorate its class @tack.device_class"
        )
    return _walk(template, (), (template,))


def _walk(
    template: object, path: tuple[str, ...], above: tuple[object, ...]
) -> Iterator[tuple[tuple[str, ...], object]]:
    if len(path) > MAX_DEPTH:
        raise TypeError(
            f"{type(above[0]).__qualname__}: templates hold each other at most {MAX_DEPTH} deep, "
            f"and {'.'.join(path[:2])}... is deeper; keep what the kernel reads nearer"
        )
    yield path, template
    for name, child in sorted(attributes_of(template).children.items()):
        if any(child is each for each in above):
            raise TypeError(
                f"{type(above[0]).__qualname__}: templates cannot hold themselves, and "
                f"{'.'.join((*path, name))} is an object that holds it"
            )
        yield from _walk(child, (*path, name), (*above, child))
