"""Objects of a device class: what of them is static, and what stands for them in a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from .types import DTYPES, I64, Dtype, OracleRefused, TemplateType
from .values import Value, cast, literal
from .vectors import Vector, of_numpy

__all__ = ["Template", "is_template", "own_attributes"]

_MARK = "__tack_device_class__"

Wrap = Callable[..., Any]


def is_template(given: Any) -> bool:
    """Whether the class of an object is a device class."""
    return bool(getattr(type(given), _MARK, False))


def _plain_function(found: Any) -> FunctionType | None:
    """The function under `@tack.func`; `None` for anything else."""
    inner = getattr(found, "__wrapped__", None)
    decorated = type(found).__module__.partition(".")[0] == "tack"
    return inner if decorated and isinstance(inner, FunctionType) else None


def _is_number(found: Any) -> bool:
    if isinstance(found, np.generic):
        return found.dtype.kind in "biuf"
    return isinstance(found, bool | int | float)


def _constant(found: Any) -> Value:
    """A number of the class: a literal, or what `tack.constant` says."""
    dtype = getattr(found, "dtype", None)
    if isinstance(found, np.generic) or dtype is None:
        return literal(found.item() if isinstance(found, np.generic) else found)
    if dtype.name == "bool":
        return literal(bool(found))
    return cast(DTYPES[dtype.name], float(found) if isinstance(found, float) else int(found))


def _spelled(found: Any) -> str:
    """A number of the class, as a signature writes it."""
    dtype = getattr(found, "dtype", None)
    kind = next(each for each in (bool, int, float) if isinstance(found, each | np.generic))
    plain = found.item() if isinstance(found, np.generic) else kind(found)
    typed = dtype is not None and not isinstance(found, np.generic) and dtype.name != "bool"
    return f"{dtype.name}({plain!r})" if typed else repr(plain)


class Template:
    """Stands for an object. `type` is its static type.

    `scalar` and `array` make what stands for the numbers and arrays that it holds.
    """

    def __init__(self, given: Any, scalar: Wrap, array: Wrap) -> None:
        cls = type(given)
        members: dict[str, Any] = {}
        spelled: dict[str, str] = {}
        functions: dict[str, FunctionType] = {}
        methods: dict[str, tuple[FunctionType, bool]] = {}
        for name, found in _class_attributes(cls).items():
            static = isinstance(found, staticmethod)
            function = _plain_function(found.__func__ if static else found)
            if function is not None:
                methods[name] = (function, static)
            elif name[0] != "_" and _is_number(found):
                members[name], spelled[name] = _constant(found), _spelled(found)
            elif name[0] != "_" and _is_held(cls, found):
                members[name] = self._held(found, scalar, array)
                if isinstance(members[name], Vector) and not found.flags.writeable:
                    numbers = ", ".join(map(repr, found.ravel().tolist()))
                    spelled[name] = f"{members[name].type}({numbers})"
        for name, found in own_attributes(given):
            methods.pop(name, None)
            if _is_number(found) and name in spelled:
                members[name], spelled[name] = _constant(found), _spelled(found)
                continue
            members.pop(name, None)
            spelled.pop(name, None)
            function = _plain_function(found)
            if function is not None:
                functions[name] = function
            elif _is_number(found):
                members[name] = scalar(found, _annotation(cls, name))
            elif isinstance(found, np.ndarray) or is_template(found):
                members[name] = self._held(found, scalar, array)
        self._members = members
        self._functions = functions
        self._methods = methods
        self._extents = _extents(cls)
        self._device: Callable[[FunctionType], Callable[..., Any]] | None = None
        types = {name: each.type for name, each in members.items()}
        self.type = TemplateType(
            f"{cls.__module__}:{cls.__qualname__}",
            tuple(sorted(types.items())),
            tuple(sorted(spelled.items())),
            tuple(sorted(functions.items())),
            tuple((name, *each) for name, each in sorted(methods.items())),
        )

    @staticmethod
    def _held(found: Any, scalar: Wrap, array: Wrap) -> Any:
        """What stands for an array, a vector or a template."""
        if not isinstance(found, np.ndarray):
            return Template(found, scalar, array)
        return of_numpy(found) if type(found).__name__ == "Vector" else array(found)

    def attach(self, device: Callable[[FunctionType], Callable[..., Any]]) -> None:
        """Says how a device function is called under the shim."""
        self._device = device
        for each in self._members.values():
            if isinstance(each, Template):
                each.attach(device)

    def __getattr__(self, name: str) -> Any:
        if name in self._members:
            return self._members[name]
        assert self._device is not None
        if name in self._functions:
            return self._device(self._functions[name])
        if name in self._methods:
            function, static = self._methods[name]
            call = self._device(function)
            return call if static else lambda *given, **named: call(self, *given, **named)
        raise OracleRefused(f"no attribute {name}")

    def __iter__(self) -> Iterator[Value]:
        return (Value(I64, number) for number, _ in enumerate(self._indices()))

    def parts(self) -> Iterator[tuple[Value, ...]]:
        """The indices of the loop over a template, the fastest extent first."""
        for indices in self._indices():
            yield tuple(Value(I64, each) for each in reversed(indices))

    def _indices(self) -> Iterable[tuple[int, ...]]:
        if not self._extents:
            raise OracleRefused("a template without extents")
        extents = [max(int(self._members[name].payload), 0) for name in self._extents]
        return itertools.product(*(range(each) for each in reversed(extents)))


def _is_held(cls: type, found: Any) -> bool:
    """Whether a class has an array, vector or template of another class, for all its objects."""
    if not is_template(found):
        return isinstance(found, np.ndarray)
    return not issubclass(type(found), cls) and not issubclass(cls, type(found))


def _annotation(cls: type, name: str) -> Dtype | None:
    """The scalar type that a class body gives an attribute."""
    for owner in cls.__mro__:
        hint = vars(owner).get("__annotations__", {}).get(name)
        if hint is not None:
            spelled = str(getattr(hint, "name", hint)).rpartition(".")[2]
            return DTYPES.get(spelled)
    return None


def _class_attributes(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        found.update(vars(owner))
    return found


def own_attributes(given: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, in slots too, under names that kernels see."""
    names = list(getattr(given, "__dict__", {}))
    for name, found in _class_attributes(type(given)).items():
        if isinstance(found, MemberDescriptorType) and hasattr(given, name):
            names.append(name)
    for name in names:
        if name[0] != "_":
            yield name, getattr(given, name)


def _extents(cls: type) -> tuple[str, ...]:
    declared = getattr(cls, "tack_extents", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)
