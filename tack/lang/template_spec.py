"""Specs of templates: of live objects, of classes for a build, and the way back to the class."""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from tack.lang.array import ArrayOf
from tack.lang.bindings import Constant
from tack.lang.definition import FunctionDefinition
from tack.lang.template import (
    annotation_of,
    constants_of_class,
    extents_of,
    is_device_class,
    is_number,
    methods_of,
)
from tack.lang.template_objects import Attributes, attributes_of, template_tree
from tack.model.dtypes import DTYPES, DType, bool_
from tack.model.signature import ArraySpec, PlainSpec, ScalarSpec, Signature, TemplateSpec
from tack.model.vectors import VectorType, components_of, vector_type

__all__ = [
    "Origin",
    "class_of",
    "constant_value",
    "functions_of",
    "is_gone",
    "others_of",
    "spec",
    "spec_of",
    "vector_value",
]

Hint = DType | VectorType | ArrayOf | None

ArraySpecOf = Callable[[tuple[str, ...], Any, Hint], "ArraySpec | str"]
"""Path, array and annotation -> its spec, or why no kernel can read it."""

ScalarSpecOf = Callable[[tuple[str, ...], Any, Hint], ScalarSpec]


class Origin:
    """What a spec was made of in this process.

    Two are equal if they mean the same code: one class with the same methods, found at the same
    functions. The class is held weakly, so that a variant does not keep it.
    """

    def __init__(
        self,
        cls: type,
        functions: dict[str, FunctionDefinition] | None = None,
        others: dict[str, str] | None = None,
    ) -> None:
        self.cls = weakref.ref(cls)
        self.functions: Final = functions or {}
        self.others: Final = others or {}
        methods = sorted(methods_of(cls).items())
        self._facts = (
            self.cls,
            tuple((name, weakref.ref(m.definition), m.static) for name, m in methods),
            tuple(sorted(self.functions.items())),
            extents_of(cls),
        )
        self._hash = hash(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and self._facts == other._facts

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<origin {self.cls()!r}>"


def spec_of(template: object, array_spec: ArraySpecOf, scalar_spec: ScalarSpecOf) -> TemplateSpec:
    """The spec of a live object, whose arrays and scalars the caller's functions judge.

    Raises ``TypeError`` for a cycle, and where two attributes flatten to one name.
    """
    template_tree(template)
    return _spec_of(template, (), array_spec, scalar_spec)


def _spec_of(
    template: object, path: tuple[str, ...], array_spec: ArraySpecOf, scalar_spec: ScalarSpecOf
) -> TemplateSpec:
    own: Attributes = attributes_of(template)
    cls = type(template)
    arrays: dict[str, ArraySpec] = {}
    others = dict(own.others)
    for name, value in own.arrays.items():
        found = array_spec((*path, name), value, annotation_of(cls, name))
        if isinstance(found, str):
            others[name] = found
        else:
            arrays[name] = found
    return _make(
        cls,
        constants=own.constants,
        arrays=arrays,
        scalars={
            name: scalar_spec((*path, name), value, annotation_of(cls, name))
            for name, value in own.scalars.items()
        },
        children={
            name: _spec_of(child, (*path, name), array_spec, scalar_spec)
            for name, child in own.children.items()
        },
        functions=own.functions,
        others=others,
    )


def _make(
    cls: type,
    *,
    constants: dict[str, Any],
    arrays: dict[str, ArraySpec],
    scalars: dict[str, ScalarSpec],
    children: dict[str, TemplateSpec],
    functions: dict[str, FunctionDefinition],
    others: dict[str, str],
) -> TemplateSpec:
    return TemplateSpec(
        type=_name_of(cls),
        constants=tuple(sorted((n, _constant_text(value)) for n, value in constants.items())),
        arrays=_by_name(arrays),
        scalars=_by_name(scalars),
        children=_by_name(children),
        functions=tuple(sorted((n, f.name) for n, f in functions.items())),
        origin=Origin(cls, functions, others),
    )


def _by_name(entries: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, entries[name]) for name in sorted(entries))


def _name_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def spec(cls: type, /, **attributes: object) -> TemplateSpec:
    """The spec of an object of ``cls``, a `device_class`, as a build has it: without the object.

    Numbers of the class are in it already. Each keyword is an attribute of the object: a text such
    as ``"i32[:]"`` or ``"i64"`` for what a call passes, another spec for a template, a device
    function, or a number in place of the class's own.

    Raises ``TypeError`` for what cannot be an attribute, ``ValueError`` for a text that is no spec.

    >>> from tack.lang.template import device_class
    >>> @device_class
    ... class Grid:
    ...     corners = 8
    >>> spec(Grid, connectivity="i32[:]", n="i64").scalars
    (('n', ScalarSpec(dtype=<dtype i64>)),)
    """
    if not is_device_class(cls):
        raise TypeError(f"tack.spec takes a @tack.device_class, not {cls!r}")
    constants = constants_of_class(cls)
    arrays: dict[str, ArraySpec] = {}
    scalars: dict[str, ScalarSpec] = {}
    children: dict[str, TemplateSpec] = {}
    functions: dict[str, FunctionDefinition] = {}
    for name, value in attributes.items():
        where = f"tack.spec({cls.__qualname__}, {name}={value!r})"
        if name.startswith("_"):
            raise TypeError(f"{where}: names that start with '_' are invisible to kernels")
        if isinstance(value, str):
            found = _plain_spec(where, value)
            if isinstance(found, ArraySpec):
                arrays[name] = found
                constants.pop(name, None)
            elif name in constants:
                raise TypeError(
                    f"{where}: {cls.__qualname__}.{name} is a number of the class, which is "
                    f"compiled in; write the number, as in {name}={constants[name]!r}"
                )
            else:
                scalars[name] = found
        elif isinstance(value, TemplateSpec):
            children[name] = value
            constants.pop(name, None)
        elif isinstance(value, FunctionDefinition):
            functions[name] = value
            constants.pop(name, None)
        elif name in constants and is_number(value):
            constants[name] = value
        elif is_number(value) or components_of(value) is not None:
            raise TypeError(f"{where}: {_passed(cls, name, value)}")
        else:
            raise TypeError(
                f"{where}: an attribute is a text such as 'i32[:]', a spec, a device function or "
                "a number"
            )
    return _make(
        cls,
        constants=constants,
        arrays=arrays,
        scalars=scalars,
        children=children,
        functions=functions,
        others={},
    )


def _passed(cls: type, name: str, value: object) -> str:
    """Why ``value`` is not in a spec, and what is."""
    vector = components_of(value)
    if vector is not None:
        return f"a call passes the vectors of an object; write its type, as in {name}='{vector[0]}'"
    return (
        f"{cls.__qualname__} has no number {name!r}, so a call passes it; write its type, as in "
        f"{name}='i64'"
    )


def _plain_spec(where: str, text: str) -> PlainSpec:
    specs = Signature.parse(text).specs
    found = specs[0] if len(specs) == 1 else None
    if found is None or isinstance(found, TemplateSpec):
        raise ValueError(f"{where}: {text!r} is not one scalar or array")
    if isinstance(found, ScalarSpec) and found.shape:
        return ArraySpec(found.dtype, (), element=found.shape)
    return found


def _constant_text(value: Any) -> str:
    """A number with its type as Python writes it, which no two different bit patterns share."""
    if isinstance(value, Constant):
        if value.dtype is not None and value.dtype is not bool_:
            return f"{value.dtype.name}({value.literal!r})"
        value = value.literal
    vector = components_of(value)
    if vector is not None:
        return f"{vector[0].name}({', '.join(map(repr, vector[1]))})"
    if hasattr(value, "item"):
        value = value.item()
    plain = next(kind for kind in (bool, int, float) if isinstance(value, kind))
    return repr(plain(value))


def vector_value(text: str) -> tuple[VectorType, list[int | float]] | None:
    """Type and numbers of a constant that is a vector; None for a number."""
    name, _, inner = text.removesuffix(")").partition("(")
    type_ = vector_type(name)
    if type_ is None:
        return None
    return type_, [constant_value(number)[0] for number in inner.split(", ")]


def constant_value(text: str) -> tuple[bool | int | float, DType | None]:
    """The number that a spec's constant writes, and its dtype; None takes what it meets."""
    if text in ("True", "False"):
        return text == "True", bool_
    name, bracket, inner = text.partition("(")
    dtype = DTYPES[name] if bracket else None
    number = inner.removesuffix(")") if bracket else text
    is_float = not number.lstrip("-").isdigit()
    return (float(number) if is_float else int(number)), dtype


def class_of(template: TemplateSpec) -> type:
    """The class of a spec: of where it was made, or found by name.

    Raises ``ValueError`` where there is none.
    """
    if isinstance(template.origin, Origin):
        cls = template.origin.cls()
        if cls is not None:
            return cls
        raise ValueError(f"the class {template.type} is gone")
    found = _named(template.type)
    if not is_device_class(found):
        raise ValueError(f"{template.type} is no class under @tack.device_class")
    return found


def _named(reference: str) -> object:
    """What ``module:qualified.name`` stands for; ``ValueError`` for nothing."""
    module, _, qualname = reference.partition(":")
    try:
        value: object = sys.modules.get(module) or importlib.import_module(module)
        for name in qualname.split("."):
            value = getattr(value, name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no {reference} ({error})") from None
    return value


def is_gone(template: TemplateSpec) -> bool:
    """Whether a class that the spec was made of was collected."""
    return any(
        isinstance(node.origin, Origin) and node.origin.cls() is None
        for _, node in template.nodes()
    )


def functions_of(template: TemplateSpec) -> dict[str, FunctionDefinition]:
    """The device functions that an object of this spec holds; ``ValueError`` if one is gone."""
    if isinstance(template.origin, Origin):
        return template.origin.functions
    found: dict[str, FunctionDefinition] = {}
    for name, reference in template.functions:
        value = _named(reference)
        if isinstance(value, FunctionDefinition):
            found[name] = value
            continue
        raise ValueError(f"{reference} is no @tack.func")
    return found


def others_of(template: TemplateSpec) -> dict[str, str]:
    """What an object of this spec holds that no kernel can read, where that is known."""
    return template.origin.others if isinstance(template.origin, Origin) else {}
