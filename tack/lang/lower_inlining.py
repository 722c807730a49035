"""Inlining of device functions: which parameter takes which argument, and what it stands for."""

from __future__ import annotations

import ast
from typing import Any

from tack.ir.nodes import (
    Expression,
    IRConstant,
    IRName,
)
from tack.lang.array import ArrayOf
from tack.lang.bindings import Constant
from tack.lang.definition import FunctionDefinition
from tack.lang.fingerprint import defaults_of
from tack.lang.lower_base import FragmentMeaning, Frame, Meaning, TemplateNode
from tack.lang.lower_expressions import ExpressionLowering
from tack.lang.lower_templates import Callee
from tack.lang.vectors import (
    Value,
    VectorMeaning,
    names_of,
    parts_of,
    shape_of_value,
    vector_of,
)
from tack.model.spelling import counted
from tack.model.vectors import components_of

__all__ = ["InliningLowering"]


class InliningLowering(ExpressionLowering):
    """Lowers calls of device functions."""

    def values_of(self, node: ast.expr) -> list[Value]:
        """The values of ``node``: of a tuple, a call with several results, a shape, or just one."""
        if isinstance(node, ast.Tuple):
            return self.evaluate_values(node.elts)
        shaped = self.shape_of(node)
        if shaped is not None:
            return [self.at(node, self.extent(shaped, k)) for k in range(shaped.spec.rank)]
        if isinstance(node, ast.Call):
            callee = self.callee_of(node)
            if callee is not None:
                return self.inline(node, callee)
        return [self.value(node)]

    def inline(self, node: ast.Call, function: Callee) -> list[Value]:
        """Emits the body of ``function`` for this call, and gives its results."""
        callee = function.definition
        if callee in self.active:
            cycle = [d.name.split(":")[1] for d in self.active[self.active.index(callee) :]]
            cycle.append(cycle[0])
            raise self.refuse(node, f"recursion is not possible: {' -> '.join(cycle)}")
        frame = Frame(callee, suffix=f".{_plain(callee)}.{self.count()}")
        self._check_parameters(frame)
        self._bind(node, function, frame)
        outer, self.frame = self.frame, frame
        outer_loops, self.loops = self.loops, []
        self.active.append(callee)
        try:
            return self.function_body(frame)
        finally:
            self.active.pop()
            self.frame, self.loops = outer, outer_loops

    def fragment_of(self, node: ast.expr) -> FragmentMeaning | None:
        """The fragment that ``node`` names, or None."""
        meaning = self.frame.meanings.get(node.id) if isinstance(node, ast.Name) else None
        return meaning if isinstance(meaning, FragmentMeaning) else None

    def function_body(self, frame: Frame) -> list[Value]:
        """Lowers the body of an inlined function."""
        raise NotImplementedError

    def _check_parameters(self, frame: Frame) -> None:
        arguments = frame.definition.source.node.args
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                raise frame.refuse(star, "star parameters are not part of the kernel language")

    def _bind(self, node: ast.Call, function: Callee, frame: Frame) -> None:
        """Evaluates the arguments under the caller's bindings and names them for the callee."""
        callee = function.definition
        given = self._match(node, function)
        nodes = list(given.values())
        meanings: dict[str, Meaning] = {}
        if function.bound is not None:
            meanings[callee.parameters[0]] = function.bound
        whole = {
            id(n): self.array_of(n) or self.template_of(n) or self.fragment_of(n) for n in nodes
        }
        scalars = [n for n in nodes if whole[id(n)] is None]
        values = dict(zip(map(id, scalars), self.evaluate_values(scalars), strict=True))
        annotations = dict(zip(callee.parameters, callee.annotations, strict=True))
        for name, argument in given.items():
            if isinstance(whole[id(argument)], TemplateNode) and annotations[name] is not None:
                raise self.refuse(
                    argument,
                    f"{name!r} of {_plain(callee)}() is annotated {annotations[name]}, and this is "
                    "a template",
                )
            meanings[name] = whole[id(argument)] or self._parameter(
                node, callee, frame, name, values[id(argument)]
            )
        for name, value in defaults_of(callee).items():
            if name not in given and name not in meanings:
                literal = self._default(node, callee, name, value)
                meanings[name] = self._parameter(node, callee, frame, name, literal)
        frame.meanings = meanings

    def _match(self, node: ast.Call, function: Callee) -> dict[str, ast.expr]:
        """Parameter -> argument, in the order in which the call evaluates them."""
        callee = function.definition
        arguments = callee.source.node.args
        positional = [a.arg for a in [*arguments.posonlyargs, *arguments.args]]
        by_keyword = {a.arg for a in [*arguments.args, *arguments.kwonlyargs]}
        name = _plain(callee)
        own: set[str] = set()
        if function.bound is not None:
            if not positional:
                raise self.refuse(
                    node, f"{name}() takes no self; write @staticmethod above @tack.func"
                )
            own.add(positional.pop(0))
            by_keyword -= own
        if len(node.args) > len(positional):
            takes = counted(len(positional), "positional argument")
            raise self.refuse(node, f"{name}() takes {takes}, not {len(node.args)}")
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise self.refuse(argument, "star arguments are not part of the kernel language")
        given = dict(zip(positional, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.refuse(keyword, "star arguments are not part of the kernel language")
            if keyword.arg not in by_keyword:
                raise self.refuse(keyword, f"{name}() has no parameter {keyword.arg!r}")
            if keyword.arg in given:
                raise self.refuse(keyword, f"{name}() is given {keyword.arg!r} twice")
            given[keyword.arg] = keyword.value
        known = own.union(given, defaults_of(callee))
        missing = [p for p in callee.parameters if p not in known]
        if missing:
            raise self.refuse(node, f"{name}() is not given {', '.join(map(repr, missing))}")
        return given

    def _default(self, node: ast.Call, callee: FunctionDefinition, name: str, value: Any) -> Value:
        if isinstance(value, Constant) or type(value) in (bool, int, float):
            return self.literal(node, value)
        vector = components_of(value)
        if vector is not None:
            return vector_of(*vector)
        raise self.refuse(
            node,
            f"the default of {name!r} in {_plain(callee)}() is {value!r}, which is no number and "
            "no vector",
        )

    def _parameter(
        self, node: ast.Call, callee: FunctionDefinition, frame: Frame, name: str, value: Value
    ) -> Meaning:
        """What a parameter of an inlined function stands for, which is no array."""
        annotation = dict(zip(callee.parameters, callee.annotations, strict=True))[name]
        if isinstance(annotation, ArrayOf):
            raise self.refuse(
                node, f"{name!r} of {_plain(callee)}() is annotated {annotation}; give it an array"
            )
        shape = shape_of_value(value)
        self.check_annotation(node, f"{name!r} of {_plain(callee)}()", annotation, shape)
        assigned = name in callee.assigned_names
        if annotation is None and not assigned:
            known = tuple(map(_known_meaning, parts_of(value)))
            if None not in known:
                parts = tuple(part for part in known if part is not None)
                return VectorMeaning(shape, parts) if shape else parts[0]
        base = f"{name}{frame.suffix}"
        target = self.new_local(base, shape, annotation)
        if annotation is None and not assigned:
            self.temporaries.update(names_of(target))
        self.write(node, target, value)
        return target


def _plain(callee: FunctionDefinition) -> str:
    return callee.function.__name__


def _known_meaning(part: Expression) -> str | IRConstant | None:
    """What a parameter can stand for in place of a local of its own."""
    if isinstance(part, IRConstant):
        return part
    return part.name if isinstance(part, IRName) else None
