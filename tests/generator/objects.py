"""Objects of device classes: what a kernel is given them for, and the text of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .functions import Written
from .program import Argument, Held, Instance
from .statements import indent

__all__ = ["Holder", "class_text", "instances"]


@dataclass
class Holder:
    """An object in the making: of a class of its own, at a path such as `grid.inner`."""

    cls: str
    path: str
    extents: tuple[str, ...] = ()
    """The attributes that a loop over the object counts through, the fastest first."""
    constants: list[str] = field(default_factory=list)
    """Lines such as `K = 3`."""
    values: dict[str, Argument] = field(default_factory=dict)
    """What a call gives it."""


def class_text(holder: Holder, methods: Sequence[Written], inherited: Sequence[Written]) -> str:
    """The class, and one without a decorator from which it inherits some of the methods."""
    own = [f"tack_extents = {holder.extents!r}", ""] if holder.extents else []
    base = f"{holder.cls}Base"
    lines = [f"class {base}:", *_body([], inherited), "", ""]
    lines += ["@tack.device_class", f"class {holder.cls}({base}):"]
    lines += [*_body([*own, *holder.constants], methods), "", ""]
    return "\n".join(lines)


def _body(lines: Sequence[str], methods: Sequence[Written]) -> list[str]:
    return indent([*lines, *(line for each in methods for line in each.lines)] or ["pass"])


def instances(holders: Sequence[Holder], held: Sequence[Written]) -> dict[str, Instance]:
    """The arguments by path, objects in their places and with the functions that they hold."""
    made: dict[str, Instance] = {}
    for holder in reversed(holders):  # what is inside comes later
        values = dict(holder.values)
        for path, each in made.items():
            outer, _, name = path.rpartition(".")
            if outer == holder.path:
                values[name] = each
        for written in held:
            if written.function.owner == holder.cls:
                values[written.function.name] = Held(written.function.name)
        made[holder.path] = Instance(holder.cls, tuple(values.items()))
    return {path: each for path, each in made.items() if "." not in path}
