"""Objects of templates: what each holds, by how a kernel uses it, and what they hold in turn."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from tack.lang.bindings import Constant
from tack.lang.definition import FunctionDefinition
from tack.lang.template import (
    MISSING,
    class_value,
    class_values,
    constants_of_class,
    held_by_class,
    is_array,
    is_compiled_in,
    is_number,
    is_template,
    methods_of,
)
from tack.model.record import Record
from tack.model.spelling import article

__all__ = [
    "Attributes",
    "TemplateAttributes",
    "attributes_of",
    "classify_template_attrs",
    "is_hidden",
    "slot_value",
    "template_scope",
    "template_tree",
]

MAX_DEPTH: Final = 64
"""How many attributes lead to the innermost template at most."""


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
    for name, value in class_values(cls):
        if name not in found.constants and name not in methods and name not in held:
            found.others[name] = _describe(value)
    own = dict(own_values(template))
    held = {name: value for name, value in held.items() if name not in own}
    for name, value in (*held.items(), *own.items()):
        hides = found.constants.pop(name, MISSING) is not MISSING
        found.others.pop(name, None)
        if isinstance(value, Constant) or (hides and is_compiled_in(value)):
            found.constants[name] = value
        elif is_number(value):
            found.scalars[name] = value
        elif is_array(value):
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
