"""How a call takes its template arguments apart: the plan that the launcher stores with a variant.

It is learned from the objects of one call, and fits all objects like them: of the same class, with
the same attributes, functions and numbers of the class. Matching it happens in C++.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tack import _core
from tack.lang.definition import KernelDefinition
from tack.lang.template import (
    EXTENTS,
    MISSING,
    class_value,
    constants_of_class,
    held_by_class,
    methods_of,
)
from tack.lang.template_objects import attributes_of, is_hidden, slot_value, template_tree
from tack.model.locks import fork_safe_lock
from tack.model.signature import Signature

__all__ = ["expansion_of"]

Path = tuple[str, ...]


def expansion_of(
    kernel: _core.Kernel, signature: Signature, args: Sequence[object]
) -> _core.Expansion:
    """The plan for calls like that of ``kernel`` with ``args``, which have ``signature``.

    It has one row for each argument, and of a vector one for each component.
    """
    flat = signature.flat()
    indices = {(each.argument, each.path): k for k, each in enumerate(flat)}
    rows: list[object] = []
    templates = dict(signature.templates)
    for position, argument in enumerate(args):
        if position in templates:
            rows.append(_Learner(position, indices).node(argument, ()))
            for _, node in template_tree(argument):
                _watch(type(node), kernel)
        else:
            rows += [k for k, each in enumerate(flat) if each.argument == position]
    return rows


class _Learner:
    """Learns the plan of one argument. Each row ends with whether kernels see the name."""

    def __init__(self, position: int, indices: dict[tuple[int, Path], int]) -> None:
        self._position = position
        self._indices = indices

    def node(self, template: object, path: Path) -> tuple[Any, ...]:
        """Class, what is expected of it, whether objects have a dictionary, its rows, slots."""
        cls = type(template)
        held: dict[Any, Any] | None = getattr(template, "__dict__", None)
        entries = tuple(
            self._entry(template, path, name, value) for name, value in (held or {}).items()
        )
        slots = tuple(self._slots(template, path))
        visible = [row[0] for row in entries if row[3]]
        visible += [row[0].__name__ for row in slots if row[3]]
        slots += tuple(
            (name, *self._action(template, path, name, value), True)
            for name, value in held_by_class(cls).items()
            if name not in visible
        )
        return weakref.ref(cls), _checks(cls, visible), held is not None, entries, slots

    def _entry(self, template: object, path: Path, name: Any, value: Any) -> tuple[Any, ...]:
        if not isinstance(name, str) or name[:1] == "_":
            return name, "skip", None, False
        if is_hidden(type(template), name):
            return name, "skip", None, True
        return name, *self._action(template, path, name, value), True

    def _action(self, template: object, path: Path, name: str, value: Any) -> tuple[str, Any]:
        own = attributes_of(template)
        if name in own.constants or name in own.functions:
            return "same", value
        if name in own.children:
            return "child", self.node(value, (*path, name))
        index = self._indices.get((self._position, (*path, name)))
        return ("skip", None) if index is None else ("value", index)

    def _slots(self, template: object, path: Path) -> Iterator[tuple[Any, ...]]:
        cls = type(template)
        for owner in cls.__mro__:
            for name, slot in vars(owner).items():
                if not isinstance(slot, types.MemberDescriptorType) or name[:1] == "_":
                    continue
                if class_value(cls, name) is not slot:
                    continue
                value = slot_value(template, slot)
                if value is MISSING:
                    yield slot, "unset", None, True
                else:
                    yield slot, *self._action(template, path, name, value), True


def _checks(cls: type, visible: list[str]) -> tuple[tuple[str, tuple[object, ...]], ...]:
    """What the class must still have under the names that matter, or must not have."""
    names = dict.fromkeys([*visible, *methods_of(cls), *constants_of_class(cls), EXTENTS])
    found = ((name, class_value(cls, name)) for name in names)
    return tuple((name, () if value is MISSING else (value,)) for name, value in found)


_watched: Final[dict[weakref.ref[type], weakref.WeakSet[_core.Kernel]]] = {}
_lock = fork_safe_lock()


def _watch(cls: type, kernel: _core.Kernel) -> None:
    """Has ``kernel`` retire its variants for ``cls`` when that is collected."""
    reference = weakref.ref(cls, _retire)
    with _lock:
        _watched.setdefault(reference, weakref.WeakSet()).add(kernel)


def _retire(reference: weakref.ref[type]) -> None:
    if sys.is_finalizing():
        return
    from tack.runtime import jit

    for kernel in _watched.pop(reference, ()):
        definition = kernel.definition
        _core.retire(kernel)
        if isinstance(definition, KernelDefinition):
            jit.forget_collected(definition)
