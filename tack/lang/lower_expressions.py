"""Lowering of expressions: which method takes each, names, attributes and subscripts."""

from __future__ import annotations

import ast
import math
from types import ModuleType
from typing import Any, Final

from tack.ir.nodes import (
    IRConstant,
)
from tack.lang.bindings import MISSING, Constant, dotted_name, resolve
from tack.lang.lower_base import (
    ArrayParameter,
    FragmentMeaning,
    Meaning,
    TemplateNode,
    VectorAttribute,
)
from tack.lang.lower_elements import ElementLowering
from tack.lang.lower_operators import OperatorLowering
from tack.lang.vectors import (
    Value,
    VectorMeaning,
    parts_of,
    vector_of,
)
from tack.model.dtypes import DType, i64
from tack.model.errors import CompileError
from tack.model.spelling import advice, counted
from tack.model.vectors import components_of, is_constant

__all__ = ["ExpressionLowering"]

_REFUSED: Final[dict[type[ast.expr], str]] = {
    ast.ListComp: "a comprehension is not part of the kernel language; write a loop",
    ast.SetComp: "a comprehension is not part of the kernel language; write a loop",
    ast.DictComp: "a comprehension is not part of the kernel language; write a loop",
    ast.GeneratorExp: "a generator is not part of the kernel language; write a loop",
    ast.Lambda: "a lambda is not part of the kernel language; write a @tack.func",
    ast.NamedExpr: "':=' is not part of the kernel language; assign in a statement of its own",
    ast.List: "a list is not part of the kernel language; use scalars or an array parameter",
    ast.Dict: "a dict is not part of the kernel language",
    ast.Set: "a set is not part of the kernel language",
    ast.JoinedStr: "text is not part of the kernel language",
    ast.Starred: "'*' is not part of the kernel language; write the values out",
    ast.Slice: "slices are not built yet; index single elements in a loop",
    ast.Tuple: "a tuple has no value here; unpack it into names",
}


class ExpressionLowering(OperatorLowering, ElementLowering):
    """Lowers every expression but calls."""

    def value(self, node: ast.expr) -> Value:
        """The value of ``node``; statements that it needs are emitted first."""
        method = getattr(self, f"_lower_{type(node).__name__}", None)
        if method is None:
            default = f"{type(node).__name__} is not part of the kernel language"
            raise self.refuse(node, _REFUSED.get(type(node), default))
        value: Value = method(node)
        for part in parts_of(value):
            if part is value or not self.positions.has(part):
                self.at(node, part)
        return value

    def static(self, node: ast.expr) -> Any:
        """What a static name stands for, or `MISSING`."""
        dotted = dotted_name(node)
        if dotted is None or dotted.split(".")[0] in self.frame.locals:
            return MISSING
        return resolve(self.frame.definition.function, dotted)

    def undefined(self, node: ast.expr, dotted: str) -> CompileError:
        """The error for a static name that stands for nothing that a kernel can use."""
        first, _, rest = dotted.partition(".")
        owner, _, name = dotted.rpartition(".")
        module = resolve(self.frame.definition.function, owner) if rest else MISSING
        if isinstance(module, ModuleType):
            known = getattr(module, "__all__", dir(module))
            near = advice(name, [each for each in known if not each.startswith("_")])
            return self.refuse(
                node, f"{owner} has no {name!r}" + (f"; {near}" if near.endswith("?") else "")
            )
        if rest and resolve(self.frame.definition.function, first) is not MISSING:
            return self.refuse(
                node,
                f"{dotted!r} is not to be had here: attributes are read of modules only; give it a "
                f"name of its own outside, as in {dotted.lower().replace('.', '_')} = {dotted}",
            )
        return self.refuse(node, f"the name {dotted!r} is not defined")

    # names

    def _lower_Name(self, node: ast.Name) -> Value:
        if node.id not in self.frame.locals:
            return self._static_value(node, node.id)
        meaning = self.meaning(node)
        return self._value_of(node, meaning)

    def _value_of(self, node: ast.expr, meaning: Meaning) -> Value:
        """The value of what a name or an attribute stands for."""
        if isinstance(meaning, TemplateNode):
            raise self.refuse(
                node,
                f"the template {meaning.label!r} has no value of its own; read an attribute of it",
            )
        if isinstance(meaning, ArrayParameter):
            advice = "" if meaning.spec.rank else f": {ast.unparse(node)}[()]"
            raise self.refuse(
                node,
                f"the array {ast.unparse(node)!r} has no value of its own; "
                f"index an element of it{advice}",
            )
        if isinstance(meaning, FragmentMeaning):
            raise self.refuse(
                node,
                f"the fragment {ast.unparse(node)!r} has no value of its own; give it to tack.mma "
                "or tack.store_fragment",
            )
        if isinstance(meaning, VectorAttribute):
            return self.load(node, meaning.array, [], False)
        return self.read(meaning)

    def meaning(self, node: ast.Name) -> Meaning:
        """What a local name stands for, having a value on every path to here."""
        meaning = self.frame.meanings.get(node.id, self.local(node.id))
        parts = meaning.parts if isinstance(meaning, VectorMeaning) else (meaning,)
        names = {part for part in parts if isinstance(part, str)}
        if self.assigned is not None and not names <= self.assigned:
            raise self.refuse(
                node, f"{node.id!r} may have no value here; assign it on every path before"
            )
        return meaning

    def local(self, name: str) -> str:
        """What a scalar local of the frame is called in IR."""
        meaning = self.frame.meanings.get(name)
        return meaning if isinstance(meaning, str) else self.local_name(name)

    def _static_value(self, node: ast.expr, dotted: str) -> Value:
        value = self.static(node)
        if value is MISSING:
            raise self.undefined(node, dotted)
        vector = components_of(value)
        if vector is not None:
            if not is_constant(value):
                name, type_ = dotted.rpartition(".")[2], vector[0]
                raise self.refuse(
                    node,
                    f"{dotted!r} is a vector outside the kernel, which could change unseen; write "
                    f"{name} = tack.constant({tuple(vector[1])}, tack.{type_.name})",
                )
            return vector_of(*vector)
        if isinstance(value, Constant) or self._is_of_mathematics(dotted, value):
            return self.literal(node, value)
        if isinstance(value, tuple):
            raise self.refuse(
                node, f"{dotted!r} is a tuple, which has no value here; write {dotted}[0]"
            )
        if isinstance(value, bool | int | float) or hasattr(value, "__float__"):
            name = dotted.rpartition(".")[2]
            name = name if name == dotted else name.upper()
            if getattr(value, "shape", ()) != ():
                raise self.refuse(
                    node, f"{dotted!r} is an array outside the kernel; make it a parameter"
                )
            # The source's own words, where they are there to be copied: inf is no name in Python.
            shown = repr(value) if name == dotted else dotted
            raise self.refuse(
                node,
                f"{dotted!r} is a plain {type(value).__name__} outside the kernel, which could "
                f"change unseen; write {name} = tack.constant({shown}, tack.<dtype>)",
            )
        if isinstance(value, DType) or callable(value):
            raise self.refuse(node, f"{dotted!r} is not a number; call it, or write a number")
        raise self.refuse(
            node,
            f"{dotted!r} is a {type(value).__name__}; from outside a kernel come only "
            "tack.constant numbers, scalar types, device functions and modules",
        )

    def _is_of_mathematics(self, dotted: str, value: Any) -> bool:
        """Whether a name is that of a number that Python and NumPy have for good."""
        owner, _, name = dotted.rpartition(".")
        if name not in ("inf", "nan", "pi", "e", "tau") or type(value) is not float:
            return False
        module = resolve(self.frame.definition.function, owner) if owner else None
        if owner:
            return isinstance(module, ModuleType) and module.__name__ in ("math", "numpy")
        return value is getattr(math, name)  # from math import inf

    # attributes and subscripts

    def _lower_Attribute(self, node: ast.Attribute) -> Value:
        dotted = dotted_name(node)
        if dotted is not None and dotted.split(".")[0] not in self.frame.locals:
            if components_of(self.static(node.value)) is not None:
                return self.swizzle(node, self.value(node.value))
            return self._static_value(node, dotted)
        member = self.member_of(node)
        if member is not None:
            return self._value_of(node, member)
        array = self.array_of(node.value)
        if array is not None:
            if node.attr == "size":
                return self.size(node, array)
            if node.attr == "ndim":
                return IRConstant(array.spec.rank, i64)
            if node.attr in ("shape", "flat"):
                advice = f"write .{node.attr}[{'k' if node.attr == 'shape' else 'i'}]"
                raise self.refuse(node, f"a {node.attr} has no value of its own; {advice}")
            known = ".shape[k], .size, .ndim and .flat[i]"
            turned = "; for x.T[i, j] write x[j, i]" if node.attr == "T" else ""
            raise self.refuse(node, f"arrays have {known} here, and no .{node.attr}{turned}")
        return self.swizzle(node, self.value(node.value))

    def _lower_Subscript(self, node: ast.Subscript) -> Value:
        shaped = self.shape_of(node.value)
        if shaped is not None:
            return self.dim_size(node, shaped)
        self.check_chain(node)
        found = self.indexed(node)
        if found is None:
            table = self.static(node.value)
            if isinstance(table, tuple):
                return self._tabulated(node, table)
            if self.template_of(node.value) is not None:
                raise self.refuse(node, "a template cannot be indexed; index an array of it")
            return self.component(node, self.value(node.value))
        array, is_flat = found
        indices, is_flat = self.indices_of(node, array, is_flat)
        return self.load(node, array, indices, is_flat)

    def _tabulated(self, node: ast.Subscript, table: tuple[Any, ...]) -> Value:
        """A number of a tuple outside the kernel, at a literal index."""
        name, index = ast.unparse(node.value), self.expression(node.slice)
        if not isinstance(index, IRConstant) or type(index.value) is not int:
            raise self.refuse(
                node,
                f"{name} is a tuple outside the kernel, and its index is a literal; pass an array "
                "to look numbers up while the kernel runs",
            )
        if not 0 <= index.value < len(table):
            raise self.refuse(
                node, f"{name} has {counted(len(table), 'number')}, so no {name}[{index.value}]"
            )
        value = table[index.value]
        if is_constant(value):
            vector = components_of(value)
            assert vector is not None
            return vector_of(*vector)
        if not isinstance(value, Constant) and type(value) not in (bool, int, float):
            what = type(value).__name__
            raise self.refuse(node, f"{ast.unparse(node)} is a {what}, and a kernel reads numbers")
        return self.literal(node, value)
