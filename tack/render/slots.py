"""The parameters of a rendered loop: one for each slot that its text uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tack.ir.nodes import IRFunction, IRParallelFor
from tack.model.dtypes import DType
from tack.model.launch import Launch, Slot
from tack.render.cfamily import Dialect
from tack.render.names import Names

__all__ = ["SlotNames", "SlotParameter", "listed"]


_WIDTH: Final = 96

_PER_AXIS: Final = {"extent": "shape", "stride": "stride"}
"""Kind of a slot that an array has for each axis -> what stands in its name."""


def listed(items: Iterable[str]) -> list[str]:
    """``items``, with commas between them and a closing parenthesis, in lines of good length."""
    *most, last = items
    lines = [""]
    for word in (*(f"{item}," for item in most), f"{last})"):
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDTH:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return lines


class SlotParameter(NamedTuple):
    """A parameter that holds a slot's value.

    Its name, its declaration, the one that promises no aliases, and the slot's number and kind.
    """

    name: str
    declaration: str
    restricted: str
    position: int
    slot: Slot


class SlotNames:
    """Gives slots their names, and notes which are used."""

    def __init__(
        self, function: IRFunction, loop: IRParallelFor, launch: Launch, names: Names
    ) -> None:
        self._function = function
        self._launch = launch
        self._names = names
        self._used: set[str] = set()
        self._numbers = {param.name: k for k, param in enumerate(function.params)}
        self._by_slot: dict[Slot, str] = {}
        for param in function.params:
            names.local(param.name)
        for slot in launch.slots:
            self._by_slot[slot] = self._choose(slot, loop)
        self._places = {
            (kind, axis): names.fresh(f"{loop.index_vars[axis]}_{kind}")
            for axis in range(len(function.workgroup))
            for kind in ("thread", "group")
        }
        self._active: dict[int, str] = {}

    def _choose(self, slot: Slot, loop: IRParallelFor) -> str:
        kind, number, *rest = slot
        if kind == "loop":
            return self._names.fresh(f"{loop.index_vars[number]}_count")
        name = self._function.params[number].name
        if kind in _PER_AXIS:
            return self._names.fresh(f"{name}_{_PER_AXIS[kind]}_{rest[0]}")
        return self._names.local(name)

    def name(self, python_name: str) -> str:
        """The name of a local, a scalar or an array."""
        name = self._names.local(python_name)
        self._used.add(name)
        array = self._function.local_arrays.get(python_name)
        return f"{name}.at" if array is not None and array.is_vector else name

    def extent(self, array: str, dim: int) -> str:
        """The name of an array's extent."""
        return self._use("extent", self._numbers[array], dim)

    def stride(self, array: str, dim: int) -> str:
        """The name of an array's stride, in bytes."""
        return self._use("stride", self._numbers[array], dim)

    def strided(self, array: str) -> DType | None:
        """The dtype of the elements of a strided array; None for another array."""
        number = self._numbers.get(array)
        param = None if number is None else self._function.params[number]
        return param.dtype if param is not None and param.is_strided else None

    def count(self, loop: int) -> str:
        """The name of an extent of the parallel loop."""
        return self._use("loop", loop)

    def place(self, kind: str, axis: int) -> str:
        """The name of the number of a thread in its group, or of a group, along an axis."""
        return self._places[kind, axis]

    def active(self, whole_warp: int = 0) -> str:
        """The name of what tells iterations, or warps of so many with one, from lanes beyond."""
        if whole_warp not in self._active:
            stem = "warp_active" if whole_warp else "active"
            self._active[whole_warp] = self._names.fresh(stem)
        return self._active[whole_warp]

    @property
    def lanes(self) -> list[int]:
        """What `active` was asked for: 0, and sizes of warps."""
        return list(self._active)

    def _use(self, *slot: object) -> str:
        name = self._by_slot[slot]
        self._used.add(name)
        return name

    def parameters(self, dialect: Dialect) -> list[SlotParameter]:
        """The parameters for the slots that were used, in their order."""
        return [each for each in self.every(dialect) if each.name in self._used]

    def every(self, dialect: Dialect) -> list[SlotParameter]:
        """A parameter for each slot, in their order."""
        return [
            SlotParameter(
                name,
                self._type(slot, dialect) + name,
                self._type(slot, dialect, dialect.restrict) + name,
                position,
                slot,
            )
            for position, (slot, name) in enumerate(self._by_slot.items())
        ]

    def _type(self, slot: Slot, dialect: Dialect, qualifier: str = "") -> str:
        """The type of a slot's parameter, as it stands in front of the name."""
        kind, number, *rest = slot
        if kind != "pointer":
            return dialect.types[rest[0] if kind == "scalar" else "i64"] + " "
        param = self._function.params[number]
        assert param.dtype is not None
        const = "" if number in self._launch.written else "const "
        element = "char" if param.is_strided else dialect.type(param.dtype)
        return f"{const}{dialect.space}{element} *{qualifier}"
