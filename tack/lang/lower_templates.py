"""Lowering of templates: what an attribute chain on a template parameter stands for.

A parameter that is a template means a node of its spec. A chain walks down the nodes and stops at
the first attribute that is no template: ``self.inner.data.shape[0]`` reads an array's shape.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tack.ir.nodes import IRConstant
from tack.lang.definition import FunctionDefinition
from tack.lang.lower_base import (
    ArrayParameter,
    LoweringBase,
    Meaning,
    TemplateNode,
    VectorAttribute,
)
from tack.lang.template import WORKING_KINDS, extents_of, methods_of
from tack.lang.template_spec import (
    class_of,
    constant_value,
    functions_of,
    others_of,
    vector_value,
)
from tack.lang.vectors import VectorMeaning
from tack.model.errors import CompileError, TemplateError
from tack.model.signature import ArraySpec, FlatParameter, TemplateSpec

__all__ = ["Callee", "TemplateLowering", "template_node"]


@dataclass(frozen=True, slots=True)
class Callee:
    """A device function that is called, and the template that is its self, if it has one."""

    definition: FunctionDefinition
    bound: TemplateNode | None = None


def template_node(
    label: str,
    spec: TemplateSpec,
    names: dict[tuple[str, ...], str],
    path: tuple[str, ...] = (),
) -> TemplateNode:
    """What a template parameter stands for; ``names`` are the IR names of what it passes, by path.

    Raises ``ValueError`` where the class or a function of the spec is not to be had.
    """
    cls = class_of(spec)
    members: dict[str, Meaning] = {}
    for name, text in spec.constants:
        members[name] = _constant(text)
    for name, array in spec.arrays:
        passed = ArrayParameter(names[(*path, name)], array)
        members[name] = passed if array.rank or not array.element else VectorAttribute(passed)
    for name, _ in spec.scalars:
        members[name] = names[(*path, name)]
    for name, child in spec.children:
        members[name] = template_node(f"{label}.{name}", child, names, (*path, name))
    return TemplateNode(
        label=label,
        type=cls.__qualname__,
        members=members,
        methods={n: (m.definition, m.static) for n, m in methods_of(cls).items()},
        functions=functions_of(spec),
        extents=extents_of(cls),
        others=others_of(spec),
    )


def _constant(text: str) -> Meaning:
    """What a number or vector of the class stands for."""
    vector = vector_value(text)
    if vector is not None:
        type_, numbers = vector
        parts = (IRConstant(number, type_.dtype) for number in numbers)
        return VectorMeaning(type_.shape, tuple(parts))
    value, dtype = constant_value(text)
    return IRConstant(value, dtype, weak=dtype is None)


def passed_names(
    position: int, flat: Sequence[FlatParameter], parameters: Sequence[str]
) -> dict[tuple[str, ...], str]:
    """Path -> IR name of what the template at ``position`` passes."""
    return {each.path: each.name(parameters) for each in flat if each.argument == position}


class TemplateLowering(LoweringBase):
    """Resolves names that lead through templates."""

    def template_of(self, node: ast.expr) -> TemplateNode | None:
        """The template that ``node`` names, or None."""
        meaning = self._meaning_of(node)
        return meaning if isinstance(meaning, TemplateNode) else None

    def _meaning_of(self, node: ast.expr) -> Meaning | None:
        """What a local name, or an attribute of a template, stands for; None for anything else."""
        if isinstance(node, ast.Name) and node.id in self.frame.locals:
            return self.frame.meanings.get(node.id)
        return self.member_of(node) if isinstance(node, ast.Attribute) else None

    def member_of(self, node: ast.Attribute) -> Meaning | None:
        """What an attribute of a template stands for; None if ``node`` is no such attribute.

        Raises `TemplateError` for an attribute that the template lacks, and for a path that goes
        on behind a number.
        """
        owner = self._owner_of(node)
        if owner is None:
            return None
        if node.attr not in owner.members:
            raise self._unknown(node, owner)
        return owner.members[node.attr]

    def _owner_of(self, node: ast.Attribute) -> TemplateNode | None:
        """The template whose attribute or method ``node`` is; None if it is of something else."""
        meaning = self._meaning_of(node.value)
        if isinstance(meaning, str | IRConstant) and isinstance(node.value, ast.Attribute):
            raise self._not_a_template(node, node.value)
        return meaning if isinstance(meaning, TemplateNode) else None

    def callee_of(self, node: ast.Call) -> Callee | None:
        """The device function that a call inlines; None if it calls something else."""
        if isinstance(node.func, ast.Attribute):
            owner = self._owner_of(node.func)
            if owner is not None:
                return self._method(node.func, owner)
        found = self.static(node.func)
        return Callee(found) if isinstance(found, FunctionDefinition) else None

    def _method(self, node: ast.Attribute, owner: TemplateNode) -> Callee:
        name = node.attr
        if name in owner.functions:
            return Callee(owner.functions[name])
        hidden = name in owner.members or name in owner.others
        if name not in owner.methods or hidden:
            raise self._uncallable(node, owner)
        definition, static = owner.methods[name]
        return Callee(definition, None if static else owner)

    def _unknown(self, node: ast.Attribute, owner: TemplateNode) -> CompileError:
        name, where = node.attr, f"{owner.label}.{node.attr}"
        if name.startswith("_"):
            return self.refuse_template(
                node, f"{where}: names that start with '_' are invisible to kernels"
            )
        if name in owner.methods or name in owner.functions:
            return self.refuse_template(node, f"{where} is a method; call it: {where}(...)")
        if name in owner.others:
            kind, advice = _told(owner.others[name], f"what works: {WORKING_KINDS}")
            return self.refuse_template(
                node, f"{where} is {kind}, which a kernel cannot read; {advice}"
            )
        return self.refuse_template(
            node,
            f"{owner.label} ({owner.type}) has no attribute {name!r}; it has "
            f"{_listed(owner.members)}",
        )

    def _uncallable(self, node: ast.Attribute, owner: TemplateNode) -> CompileError:
        name, where = node.attr, f"{owner.label}.{node.attr}"
        if name in owner.members:
            return self.refuse_template(node, f"{where} is {_kind(owner, name)}, no method")
        if name in owner.others:
            kind, advice = _told(owner.others[name], "decorate a function @tack.func")
            return self.refuse_template(
                node, f"{where} is {kind}, which a kernel cannot call; {advice}"
            )
        return self.refuse_template(
            node,
            f"{owner.label} ({owner.type}) has no method {name!r}; it has "
            f"{_listed([*owner.methods, *owner.functions])}",
        )

    def refuse_template(self, node: ast.AST, message: str) -> TemplateError:
        """The error for what a template lacks, for the caller to raise."""
        return TemplateError(message, self.frame.definition.source.position(node))

    def _not_a_template(self, node: ast.Attribute, number: ast.Attribute) -> TemplateError:
        owner = self.template_of(number.value)
        assert owner is not None
        where = f"{owner.label}.{number.attr}"
        return self.refuse_template(
            node,
            f"{where} is {_kind(owner, number.attr)}, so it has no {node.attr!r}; {owner.label} "
            f"has {_listed(owner.members)}",
        )


def _told(found: str, otherwise: str) -> tuple[str, str]:
    """What is said of what no kernel can use: its kind, and what to do, of its own or else."""
    kind, _, advice = found.partition("; ")
    return kind, advice or otherwise


def _kind(owner: TemplateNode, name: str) -> str:
    member = owner.members[name]
    if isinstance(member, ArrayParameter):
        return f"an array ({ArraySpec.__str__(member.spec)})"
    if isinstance(member, TemplateNode):
        return "a template"
    return "a vector" if isinstance(member, VectorMeaning | VectorAttribute) else "a number"


def _listed(names: Sequence[str] | dict[str, Meaning]) -> str:
    return ", ".join(sorted(names)) or "none"
