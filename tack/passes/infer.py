"""infer: one type for each local, a least fixpoint over its assignments.

The components of a vector are locals that have one type together (`IRFunction.groups`).

Two rounds. In the first, what is weak takes the type of what it meets (``acc = 0; acc += x[i]`` is
of x's type). Locals that end weak are then fixed: those assigned only literals stay weak
(`IRFunction.weak`), as do temporaries; the others become i64 or the default float; and the fixpoint
is run again.
"""

from __future__ import annotations

from typing import Final

from tack.ir.nodes import IRAssign, IRAtomic, IRFunction, IRParallelFor, IRSequentialFor, WeakLocal
from tack.ir.traversal import assigned_names, read_names, statements_of
from tack.model.dtypes import i64
from tack.model.errors import CompileError
from tack.passes.expressions import Typer
from tack.passes.lattice import Refusal, Type, Weak

__all__ = ["infer", "name_types"]

_SETTERS: Final = (IRAssign, IRAtomic, IRSequentialFor)

_Setter = IRAssign | IRAtomic | IRSequentialFor


def name_types(function: IRFunction) -> dict[str, Type | None]:
    """The type of each name that an expression may read, once ``infer`` has run."""
    weak = {name: Weak(w.floating, w.low, w.high, w.literal) for name, w in function.weak.items()}
    return {**function.locals, **weak, **_fixed_names(function)}


def infer(function: IRFunction) -> IRFunction:
    """Fills ``function.locals`` and ``function.weak``; `CompileError` for locals without a type."""
    inference = _Inference(function)
    names = inference.run()
    rules = inference.typer.rules
    function.weak = {
        name: WeakLocal(type_.floating, type_.low, type_.high, type_.literal)
        for name, type_ in names.items()
        if isinstance(type_, Weak)
    }
    function.locals = {name: rules.natural(names[name]) for name in inference.order}
    return function


def _fixed_names(function: IRFunction) -> dict[str, Type | None]:
    names: dict[str, Type | None] = {p.name: p.dtype for p in function.params if not p.is_array}
    for statement in function.body:
        if isinstance(statement, IRParallelFor):
            names.update(dict.fromkeys(statement.index_vars, i64))
    return names


class _Inference:
    def __init__(self, function: IRFunction) -> None:
        self.function = function
        self.declared = function.declared
        self.together = {name: group for group in function.groups for name in group}
        self.setters = [s for s in statements_of(function) if isinstance(s, _SETTERS)]
        self.order = list(dict.fromkeys(assigned_names(function)))
        self.pinned: dict[str, Type] = {}
        self.names = _fixed_names(function)
        self.typer = Typer(function, self.names)
        self.read = {id(s): _reads(s) for s in self.setters}
        self.found: dict[int, tuple[list[Type | None], Type]] = {}

    def run(self) -> dict[str, Type]:
        """The type of each local; literals' weak types among them."""
        while True:
            self.fixpoint()
            left = {
                name: self.typer.rules.settled(type_)
                for name in self.order
                if isinstance(type_ := self.names[name], Weak)
                and not type_.literal
                and name not in self.function.temporaries
            }
            if not left:
                break
            self.pinned |= left
        for setter in self.setters:
            self.check(setter)
        return {name: self.names[name] or i64 for name in self.order}

    def fixpoint(self) -> None:
        """Assignments are joined in order, again and again, until no local's type changes."""
        for name in self.order:
            self.names[name] = self.declared.get(name) or self.pinned.get(name)
        before: dict[str, Type | None] = {}
        while before != self.names:
            before = dict(self.names)
            for setter in self.setters:
                self.add(setter)

    def add(self, setter: _Setter) -> None:
        """Joins what ``setter`` gives to the type of its local; errors wait for `check`."""
        name = _target(setter)
        if name in self.declared:
            return
        known = self.names[name]
        try:
            type_ = self.given(setter)
            joined = type_ if known is None else self.typer.rules.meet(known, type_)
        except (CompileError, Refusal):
            return
        for each in self.together.get(name, (name,)):
            self.names[each] = joined

    def given(self, setter: _Setter) -> Type:
        """The type that ``setter`` gives its local; reading the local makes it no literal."""
        if isinstance(setter, IRSequentialFor):
            return i64
        if isinstance(setter, IRAtomic):
            return self.typer.element(setter.array)
        read = [self.names.get(name) for name in self.read[id(setter)]]
        known = self.found.get(id(setter))
        if known is None or known[0] != read:
            self.typer.at(setter)
            known = self.found[id(setter)] = (read, self.typer.visit(setter.value).type)
        return known[1]

    def check(self, setter: _Setter) -> None:
        """Raises what the language refuses about ``setter``, now that types are final."""
        name = _target(setter)
        type_ = self.given(setter)
        known = self.names[name]
        if known is None or name in self.declared:
            return
        try:
            self.typer.rules.meet(known, type_)
        except Refusal:
            raise self.typer.refuse(
                setter,
                f"{_spoken(name)} is {known} elsewhere and {type_} here, and no type holds both; "
                f"cast one of them: tack.i64(...) or tack.u64(...)",
            ) from None
        try:
            self.typer.rules.natural(known)
        except Refusal as refusal:
            raise self.typer.refuse(setter, f"{_spoken(name)}: {refusal}") from None


def _reads(setter: _Setter) -> tuple[str, ...]:
    """The names that decide what type an assignment gives."""
    return tuple(dict.fromkeys(read_names(setter.value))) if isinstance(setter, IRAssign) else ()


def _target(setter: _Setter) -> str:
    return setter.var if isinstance(setter, IRSequentialFor) else setter.target


def _spoken(name: str) -> str:
    """A local's name as the source has it; inlined ones carry a suffix after a dot."""
    return repr(name.split(".", maxsplit=1)[0])
