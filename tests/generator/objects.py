"""Objects of device classes: what a kernel is given them for, and the text of their classes.

An attribute is a parameter with a dotted name until the arguments are put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .expressions import Expressions
from .functions import Written
from .program import Argument, Held, Instance
from .scope import DTYPES_OF, Object, Scope, Variable
from .statements import indent

__all__ = ["Objects"]

_PATHS: list[list[str]] = [[], [], ["grid"], ["grid", "grid.inner"], ["grid", "grid.inner", "it"]]


@dataclass
class _Holder:
    """An object in the making: of a class of its own, at a path such as `grid.inner`."""

    cls: str
    path: str
    extents: tuple[str, ...] = ()
    """The attributes that a loop over the object counts through, the fastest first."""
    constants: list[str] = field(default_factory=list)
    """Lines such as `K = 3`."""
    values: dict[str, Argument] = field(default_factory=dict)
    """What a call gives it."""


class Objects:
    """Draws the objects that parameters may be attributes of; one may be within another."""

    def __init__(self, expressions: Expressions, scope: Scope) -> None:
        self._scope = scope
        self._pick, self._number = expressions.pick, expressions.number
        self._chance = expressions.chance
        self._holders: list[_Holder] = []

    def draw(self) -> None:
        """None, or some of `_PATHS`."""
        for path in self._pick(_PATHS):
            cls = path.rpartition(".")[2].capitalize()
            self._scope.taken.add(path.partition(".")[0])
            holder = _Holder(cls, path)
            for at in range(self._number(0, 2)):
                self._constant(holder, f"{cls.upper()}_{at}")
            self._holders.append(holder)

    def _constant(self, holder: _Holder, name: str) -> None:
        """A number of the class, or of the object in its place."""
        family = self._pick(["I", "F"])
        value: int | float = self._number(0, 9) if family == "I" else self._pick([0.5, 0.1, -0.0])
        weak = self._chance(50)
        typed = f"tack.constant({value}, tack.{self._pick(DTYPES_OF[family])})"
        holder.constants.append(f"{name} = {value if weak else typed}")
        if self._chance(20):
            holder.values[name], weak = value + 1, True
        variable = Variable(f"{holder.path}.{name}", family, weak, writable=False)
        self._scope.variables.append(variable)

    def home(self, name: str) -> str:
        """A parameter's name, or that of an attribute."""
        if self._holders and self._chance(60):
            return f"{self._pick(self._holders).path}.{name}"
        return name

    def loop(self, dims: int, names: Sequence[str]) -> tuple[str, dict[str, int], list[int]] | None:
        """A loop over an object, with an index for each of its extents or one for all of them.

        Gives the header, the attributes that it counts through and how far each index goes.
        """
        if not self._holders or not self._chance(20):
            return None
        holder = self._pick(self._holders)
        count = dims if dims > 1 else self._number(1, 2)
        sizes = [self._number(0, 4) for _ in range(count)]
        holder.extents = tuple(self._scope.fresh(each) for each in ("nx", "ny", "nz")[:count])
        attributes = {f"{holder.path}.{n}": s for n, s in zip(holder.extents, sizes, strict=True)}
        self._scope.variables += [Variable(each, "I", writable=False) for each in attributes]
        if dims == 1 and count == 2:
            sizes = [sizes[0] * sizes[1]]
        return f"for {', '.join(names)} in {holder.path}:", attributes, sizes

    def reach(self, own: tuple[str, ...]) -> None:
        """Puts the objects in reach, with what the iteration owns of them."""
        for each in self._holders:
            arrays = [a for a in self._scope.arrays if a.name.startswith(f"{each.path}.") and a.own]
            self._scope.objects.append(Object(each.cls, each.path, own if arrays else ()))

    def definitions(self, functions: Sequence[Written]) -> list[str]:
        """The lines of the device functions and the classes."""
        lines: list[str] = []
        for each in functions:
            if each.function.call not in ("method", "static"):
                lines += [*each.lines, ""]
        for holder in self._holders:
            methods = [
                each
                for each in functions
                if each.function.owner == holder.cls and each.function.call in ("method", "static")
            ]
            inherited = self._number(0, len(methods))
            lines += _class(holder, methods[inherited:], methods[:inherited])
        return lines

    def arguments(
        self, attributes: Iterable[tuple[str, Argument]], functions: Sequence[Written]
    ) -> dict[str, Instance]:
        """The objects by the parameter's name, with all that they hold."""
        values = {each.path: dict(each.values) for each in self._holders}
        for dotted, argument in attributes:
            path, _, name = dotted.rpartition(".")
            values[path][name] = argument
        found: dict[str, Instance] = {}
        for holder in reversed(self._holders):  # what is inside comes later
            for written in functions:
                name = written.function.name
                if (written.function.owner, written.function.call) == (holder.cls, "held"):
                    values[holder.path][name] = Held(name)
            made = Instance(holder.cls, tuple(values[holder.path].items()))
            outer, _, name = holder.path.rpartition(".")
            if outer:
                values[outer][name] = made
            else:
                found[name] = made
        return found


def _class(holder: _Holder, methods: Sequence[Written], inherited: Sequence[Written]) -> list[str]:
    """The class, and one without a decorator from which it inherits some of the methods."""
    own = [f"tack_extents = {holder.extents!r}", ""] if holder.extents else []
    base = f"{holder.cls}Base"
    lines = [f"class {base}:", *_body([], inherited), "", ""]
    lines += ["@tack.device_class", f"class {holder.cls}({base}):"]
    return [*lines, *_body([*own, *holder.constants], methods), "", ""]


def _body(lines: Sequence[str], methods: Sequence[Written]) -> list[str]:
    return indent([*lines, *(line for each in methods for line in each.lines)] or ["pass"])
