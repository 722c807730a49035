"""Lowering of a kernel: parameters, the names set before its loop, and the parallel loop."""

from __future__ import annotations

import ast
import builtins as python
import math

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRAssign,
    IRBinOp,
    IRConstant,
    IRFunction,
    IRName,
    IRParallelFor,
    IRParam,
    IRTripCount,
    Statement,
)
from tack.ir.traversal import walk_ir
from tack.lang import builtins as language
from tack.lang.array import ArrayOf
from tack.lang.bindings import assigned_name
from tack.lang.definition import Annotation, KernelDefinition
from tack.lang.lower_base import ArrayParameter, Meaning, TemplateNode, again
from tack.lang.lower_statements import StatementLowering
from tack.lang.lower_templates import passed_names, template_node
from tack.lang.source_kernel import SourceKernelDefinition
from tack.lang.template import EXTENTS
from tack.lang.vectors import VectorMeaning
from tack.model.dtypes import DType
from tack.model.signature import ArraySpec, ScalarSpec, Signature, Spec
from tack.model.spelling import article, counted
from tack.model.vectors import VectorType, component_names

__all__ = ["KernelLowering", "check_signature", "lower_kernel"]

MAX_PARAMETERS = 127


def lower_kernel(definition: KernelDefinition, signature: Signature) -> IRFunction:
    """The lowered IR of ``definition`` for ``signature``.

    Raises `CompileError` for what the language refuses, ``ValueError`` where the signature does
    not fit the kernel.
    """
    problem = check_signature(definition, signature)
    if problem is not None:
        raise ValueError(f"{definition.name}: '{signature}' does not fit: {problem}")
    if isinstance(definition, SourceKernelDefinition):
        from tack.lang.lower_declaration import DeclarationLowering

        return DeclarationLowering(definition, signature).lower()
    return KernelLowering(definition, signature).lower()


def check_signature(definition: KernelDefinition, signature: Signature) -> str | None:
    """Why ``signature`` cannot be one of the kernel's, or None."""
    names = definition.parameters
    if len(signature) != len(names):
        listed = ", ".join(names) or "none"
        return f"it has {len(signature)} entries and the kernel {len(names)} parameters ({listed})"
    for name, annotation, spec in zip(names, definition.annotations, signature, strict=True):
        problem = _contradiction(annotation, spec)
        if problem is None and isinstance(definition, SourceKernelDefinition):
            problem = definition.misfit(name, spec)
        if problem is not None:
            return f"{name!r} {problem}"
    return None


def _contradiction(annotation: Annotation | None, spec: Spec) -> str | None:
    """What of ``spec`` contradicts an annotation, in words after the parameter's name, or None."""
    if annotation is None:
        if isinstance(spec, ScalarSpec) and spec.shape:
            return f"has no annotation, and no call selects {spec}; annotate it tack.{spec}"
        return None
    if isinstance(annotation, ArrayOf):
        shown, element = str(annotation), annotation.element
        fits = isinstance(spec, ArraySpec) and (
            (spec.dtype, spec.element) == (element.dtype, element.shape)
        )
        wanted = f"{element}[:], with a colon for each dimension before the vectors"
    else:
        shown, wanted = f"tack.{annotation.__name__}", annotation.name
        if isinstance(annotation, VectorType):
            fits = spec == ScalarSpec(annotation.dtype, annotation.shape)
        else:
            fits = spec == ScalarSpec(annotation)
    return None if fits else f"is annotated {shown}, so no call has {spec} there; write {wanted}"


class KernelLowering(StatementLowering):
    """Lowers one kernel for one signature."""

    def __init__(self, kernel: KernelDefinition, signature: Signature) -> None:
        super().__init__(kernel)
        self.kernel = kernel
        self.signature = signature
        self.node = kernel.source.node
        self.passed: dict[str, DType] = {}

    def lower(self) -> IRFunction:
        """The whole kernel."""
        self._check_parameters_of_kernel()
        params = self._parameters()
        before, loop = self._split()
        self.prologue = set()
        for statement in before:
            self._set_before(statement)
        body = [self._parallel_loop(loop)]
        return self.at(
            self.node,
            IRFunction(
                name=self.kernel.name,
                params=params,
                body=list[Statement](body),
                default_float=self.signature.default_float,
                positions=self.positions,
                declared=self.declared,
                indices=self.indices,
                temporaries=self.temporaries,
                local_arrays=self.arrays,
                groups=self.groups,
                workgroup=self.workgroup,
            ),
        )

    def _check_parameters_of_kernel(self) -> None:
        arguments = self.node.args
        for star in (arguments.vararg, arguments.kwarg):
            if star is not None:
                raise self.refuse(star, "star parameters are not part of the kernel language")

    def _parameters(self) -> list[IRParam]:
        every = self.node.args
        arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs]
        names = self.kernel.parameters
        flat = self.signature.flat()
        if len(flat) > MAX_PARAMETERS:
            raise ValueError(
                f"{self.kernel.name}: the parameters and the attributes of its templates are "
                f"{len(flat)} values, and a kernel takes {MAX_PARAMETERS}"
            )
        params = []
        for each in flat:
            name, spec = each.name(names), each.spec
            meaning: Meaning = name
            if isinstance(spec, ArraySpec):
                meaning = ArrayParameter(name, spec)
                self.pinned |= {
                    (name, axis): extent
                    for axis, extent in enumerate(spec.dims)
                    if extent is not None
                }
                param = IRParam(name, spec.dtype, spec.all_dims, spec.is_strided)
            else:
                self.mark_assigned(name)
                self.passed[name] = spec.dtype
                param = IRParam(name, spec.dtype)
            if not each.path:
                self.frame.meanings[name] = meaning
            params.append(self.at(arguments[each.argument], param))
        for name, whole in zip(names, self.signature, strict=True):
            if isinstance(whole, ScalarSpec) and whole.shape:
                parts = component_names(name, whole.shape)
                self.frame.meanings[name] = VectorMeaning(whole.shape, parts)
        for position, template in self.signature.templates:
            passed = passed_names(position, flat, names)
            self.frame.meanings[names[position]] = template_node(names[position], template, passed)
        return params

    def _split(self) -> tuple[list[ast.stmt], ast.For]:
        """The statements before the parallel loop, and the loop."""
        body = [s for s in self.node.body if not _is_text(s)]
        loops = [s for s in body if isinstance(s, ast.For)]
        if len(loops) != 1:
            where = loops[1] if loops else self.node
            inside = next(
                (s for s in body if any(isinstance(n, ast.For) for n in ast.walk(s))), None
            )
            if not loops and inside is not None:
                raise self.refuse(
                    inside,
                    "the parallel loop of a kernel stands at its top level, inside of no other "
                    "statement; decide in the loop, or in Python around the call",
                )
            raise self.refuse(
                where,
                f"a kernel has one outermost parallel loop, and this one has {len(loops)}; "
                + ("make two kernels of it" if loops else "write for i in range(...)"),
            )
        position = body.index(loops[0])
        for statement in body[position + 1 :]:
            raise self.refuse(statement, "nothing can stand after the parallel loop")
        return body[:position], loops[0]

    def _set_before(self, node: ast.stmt) -> None:
        """A name set before the loop: every iteration sets it anew, and the extents may use it."""
        if isinstance(node, ast.Assert):
            self.statement(node)
            return
        targets = _targets(node)
        if not targets or not all(isinstance(t, ast.Name | ast.Tuple) for t in targets):
            raise self.refuse(
                node, "before the parallel loop only names can be set, from scalars and shapes"
            )
        names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        for name in names:
            if name in (self.prologue or {}):
                raise self.refuse(
                    node, f"{name!r} is set twice before the parallel loop; use another name"
                )
            if name in self.kernel.parameters:
                raise self.refuse(
                    node,
                    f"the parameter {name!r} is set before the parallel loop; use another name",
                )
        position = len(self.out)
        self.statement(node)
        assert self.prologue is not None
        for statement in self.out[position:]:
            if not isinstance(statement, IRAssign) or _loads(statement):
                raise self.refuse(
                    node,
                    "the host computes what is set before the parallel loop, and it reads no array "
                    "elements and branches only in expressions; set this inside the loop",
                )
            self.prologue.add(statement.target)
            value = self.constant_of(statement.value)
            if value is not None:
                self.known[statement.target] = value
        self.prologue.update(names)

    def _parallel_loop(self, node: ast.For) -> IRParallelFor:
        if node.orelse:
            raise self.refuse(node.orelse[0], "'else' of a loop is not part of the kernel language")
        call = node.iter
        callee = self.static(call.func) if isinstance(call, ast.Call) else None
        template = self.template_of(call)
        before = len(self.out)
        if template is not None:
            names, extents, first = self._template_loop(node, template)
        elif not isinstance(call, ast.Call) or (
            callee is not python.range and callee is not language.ndrange
        ):
            raise self.refuse(
                node.iter,
                "the parallel loop runs over range(...) or tack.ndrange(...), or a template",
            )
        elif callee is python.range:
            names, extents, first = self._range_loop(node, call)
        else:
            names, extents, first = self._ndrange_loop(node, call)
        if self.workgroup and len(self.workgroup) != len(names):
            shown = (1,) * (len(names) - 1) + (math.prod(self.workgroup),)
            raise self.refuse(
                node.iter,
                f"this loop has {counted(len(names), 'index')} and group="
                f"{_shown(self.workgroup)} has {counted(len(self.workgroup), 'size')}; write one "
                f"for each, as in group={_shown(shown)}",
            )
        if len(self.out) > before:
            raise self.refuse(
                call,
                "the host computes the bounds of the parallel loop, and calls "
                "no device functions; write the expression out",
            )
        for extent in extents:
            if _loads(extent):
                raise self.refuse(
                    call,
                    "the host computes the bounds of the parallel loop, and "
                    "reads no array elements; pass the bound as a scalar",
                )
        self.loop_entered = True
        self.loop_body(node, first)
        return self.at(node, IRParallelFor(names, extents, self.out))

    def loop_body(self, node: ast.For, first: list[Statement]) -> None:
        """What an iteration does, beginning with what sets its indices."""
        for statement in [*self._own_copies(node), *first]:
            self.out.append(statement)
        self.block(node.body)

    def _range_loop(
        self, node: ast.For, call: ast.Call
    ) -> tuple[list[str], list[Expression], list[Statement]]:
        if not isinstance(node.target, ast.Name):
            raise self.refuse(node.target, "a loop over range has one name as its target")
        start, end, step = self.range_arguments(call)
        if isinstance(step, IRConstant) and step.value < 0:
            raise self.refuse(
                call, "the step of the parallel loop is positive; its iterations have no order"
            )
        name = self._target(node.target)
        if _is_literal(start, 0) and _is_literal(step, 1) and not self._reassigned(node, name):
            self.mark_assigned(name)
            return [name], [end], []
        index = f"{name}.index"
        self.assigned = (self.assigned or frozenset()) | {name}
        scaled: Expression = self.at(call, IRName(index))
        if not _is_literal(step, 1):
            scaled = self.at(call, IRBinOp("*", scaled, step))
        if not _is_literal(start, 0):
            scaled = self.at(call, IRBinOp("+", start, scaled))
        extent: Expression = end
        if not (_is_literal(start, 0) and _is_literal(step, 1)):
            extent = self.at(call, IRTripCount(start, end, step))
        return [index], [extent], [self.at(node.target, IRAssign(name, scaled))]

    def _ndrange_loop(
        self, node: ast.For, call: ast.Call
    ) -> tuple[list[str], list[Expression], list[Statement]]:
        extents, target = self.ndrange_parts(node, call)
        names, first = self._indices(node, target)
        return names, extents, first

    def _indices(self, node: ast.For, target: ast.Tuple) -> tuple[list[str], list[Statement]]:
        """The IR names of the indices of a loop that has a tuple as its target.

        An index that the body assigns is a copy, which the statements make.
        """
        names: list[str] = []
        first: list[Statement] = []
        for element in target.elts:
            if not isinstance(element, ast.Name):
                raise self.refuse(element, "the targets of a parallel loop are names")
            name = self._target(element)
            if name in names or f"{name}.index" in names:
                raise self.refuse(element, f"the index {element.id!r} stands twice")
            self.mark_assigned(name)
            if self._reassigned(node, name):
                index = f"{name}.index"
                first.append(self.at(element, IRAssign(name, self.at(element, IRName(index)))))
                name = index
            names.append(name)
        return names, first

    def _template_loop(
        self, node: ast.For, template: TemplateNode
    ) -> tuple[list[str], list[Expression], list[Statement]]:
        """One loop for each extent, the fastest last, and the index that the target names."""
        if not template.extents:
            raise self.refuse_template(
                node.iter,
                f"{template.label} ({template.type}) declares no extents; write a class attribute "
                f'such as {EXTENTS} = ("nx", "ny"), the fastest first',
            )
        slowest_first = list(reversed(template.extents))
        chains = [ast.Attribute(node.iter, name, ast.Load()) for name in slowest_first]
        located = [ast.copy_location(chain, node.iter) for chain in chains]
        extents = self.evaluate(list[ast.expr](located))
        for name, extent in zip(slowest_first, extents, strict=True):
            self._check_attribute(node, template, name, extent)
        target = node.target
        if isinstance(target, ast.Tuple):
            if len(target.elts) != len(extents):
                raise self.refuse(
                    target,
                    f"{template.label} has {counted(len(extents), 'extent')}, so its loop gives "
                    f"{counted(len(extents), 'index')}, or one that counts through all",
                )
            reordered = ast.copy_location(ast.Tuple(target.elts[::-1], target.ctx), target)
            names, first = self._indices(node, reordered)
            return names, extents, first
        if not isinstance(target, ast.Name):
            raise self.refuse(target, "the targets of a parallel loop are names")
        name = self._target(target)
        self.mark_assigned(name)
        if len(extents) == 1 and not self._reassigned(node, name):
            return [name], extents, []
        names = [f"{name}.index{axis}" for axis in range(len(extents))]
        flat: Expression = self.at(target, IRName(names[0]))
        for index, extent in zip(names[1:], extents[1:], strict=True):
            row = self.at(target, IRBinOp("*", flat, again(extent)))
            flat = self.at(target, IRBinOp("+", row, self.at(target, IRName(index))))
        return names, extents, [self.at(target, IRAssign(name, flat))]

    def _check_attribute(
        self, node: ast.For, template: TemplateNode, name: str, extent: Expression
    ) -> None:
        """Refuses an attribute that is no extent: a cast in the kernel would not reach it."""
        if isinstance(extent, IRConstant):
            found = type(extent.value).__name__ if extent.dtype is None else extent.dtype.name
        else:
            assert isinstance(extent, IRName)
            found = self.passed[extent.name].name
        if found in ("bool", "u64") or found.rstrip("0123456789") in ("float", "f", "bf"):
            raise self.refuse_template(
                node.iter,
                f"{template.label}.{name} is an extent, which is an i64, and this is "
                f"{article(found)}; make the attribute an int",
            )

    def _target(self, node: ast.Name) -> str:
        name = self.target_name(node)
        if node.id in self.kernel.parameters:
            raise self.refuse(node, f"the loop's index {node.id!r} has the name of a parameter")
        return name

    def _reassigned(self, loop: ast.For, name: str) -> bool:
        """Whether the body of the parallel loop assigns ``name``."""
        return any(
            assigned_name(inner) == name for statement in loop.body for inner in ast.walk(statement)
        )

    def _own_copies(self, loop: ast.For) -> list[Statement]:
        """Scalar parameters that the kernel assigns become locals of the iteration.

        One that is annotated keeps its type.
        """
        copies: list[Statement] = []
        for name, annotation in zip(self.kernel.parameters, self.kernel.annotations, strict=True):
            meaning = self.frame.meanings[name]
            if not isinstance(meaning, str | VectorMeaning) or not self._reassigned(loop, name):
                continue
            assert not isinstance(annotation, ArrayOf)
            shape = meaning.shape if isinstance(meaning, VectorMeaning) else ()
            own = self.new_local(f"{name}.own", shape, annotation)
            with self.collect() as copy:
                self.write(loop, own, self.read(meaning))
            copies += copy
            self.frame.meanings[name] = own
        return copies


def _targets(node: ast.stmt) -> list[ast.expr]:
    """What an assignment with a value assigns to; empty for other statements."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) and node.value is not None else []


def _shown(group: tuple[int, ...]) -> str:
    """A ``group`` as a kernel's author writes it."""
    return str(group[0]) if len(group) == 1 else str(group)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    ) or isinstance(statement, ast.Pass)


def _is_literal(value: Expression, number: int) -> bool:
    return isinstance(value, IRConstant) and value.weak and value.value == number


def _loads(node: Expression | Statement) -> bool:
    return any(isinstance(inner, IRArrayLoad) for inner in walk_ir(node))
