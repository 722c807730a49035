"""Lowering of what names an array, and of the indices that name an element of it."""

from __future__ import annotations

import ast

from tack.ir.nodes import (
    Expression,
    IRConstant,
)
from tack.lang.lower_arrays import ArrayLowering
from tack.lang.lower_base import ArrayParameter
from tack.lang.lower_templates import TemplateLowering
from tack.model.spelling import counted

__all__ = ["ElementLowering"]


class ElementLowering(ArrayLowering, TemplateLowering):
    """Finds the array and the indices that a subscript means."""

    def array_of(self, node: ast.expr) -> ArrayParameter | None:
        """The array that ``node`` names, or None."""
        member: object = None
        if isinstance(node, ast.Name) and node.id in self.frame.locals:
            member = self.frame.meanings.get(node.id)
        elif isinstance(node, ast.Attribute):
            member = self.member_of(node)
        if not isinstance(member, ArrayParameter):
            return None
        if member.is_local and self.assigned is not None and member.name not in self.assigned:
            raise self.refuse(
                node,
                f"{ast.unparse(node)!r} may have no value here; "
                "make the array on every path before",
            )
        return member

    def check_chain(self, node: ast.Subscript) -> None:
        """Refuses ``x[i][j]`` where it means ``x[i, j]``."""
        nodes, inner = [node.slice], node.value
        while isinstance(inner, ast.Subscript):
            nodes.insert(0, inner.slice)
            inner = inner.value
        array = self.array_of(inner) if len(nodes) > 1 else None
        if array is not None and not array.spec.element and len(nodes) <= array.spec.rank:
            indices = ", ".join(map(ast.unparse, nodes))
            raise self.refuse(
                node,
                f"a part of {array.spoken!r} is no array here; write {ast.unparse(inner)}"
                f"[{indices}]",
            )

    def indexed(self, node: ast.Subscript) -> tuple[ArrayParameter, bool] | None:
        """The array that ``node`` indexes, and whether it does as ``.flat[i]``; None if none."""
        target = node.value
        if isinstance(target, ast.Attribute) and target.attr == "flat":
            array = self.array_of(target.value)
            if array is not None:
                return array, True
        array = self.array_of(target)
        return None if array is None else (array, False)

    def shape_of(self, node: ast.expr) -> ArrayParameter | None:
        """The array whose ``.shape`` ``node`` is, or None."""
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return self.array_of(node.value)
        return None

    def dim_size(self, node: ast.Subscript, array: ArrayParameter) -> Expression:
        """``array.shape[k]`` for a literal ``k``."""
        index = node.slice
        negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        inner = index.operand if isinstance(index, ast.UnaryOp) and negative else index
        if not isinstance(inner, ast.Constant) or type(inner.value) is not int:
            raise self.refuse(node, "the index of a shape is a literal, as in .shape[0]")
        dim = -inner.value if negative else inner.value
        if not -array.spec.rank <= dim < array.spec.rank:
            has = counted(array.spec.rank, "dimension")
            raise self.refuse(node, f"{array.spoken!r} has {has}, so no .shape[{dim}]")
        return self.extent(array, dim % array.spec.rank)

    def indices_of(
        self, node: ast.Subscript, array: ArrayParameter, is_flat: bool
    ) -> tuple[list[Expression], bool]:
        """The indices of a subscript, evaluated, and whether they are one flat index."""
        if not is_flat:
            indices = self.evaluate(self.index_nodes(node, array))
            self.check_indices(node, array, indices)
            return indices, False
        return self.flat_place(node, array)

    def index_nodes(self, node: ast.Subscript, array: ArrayParameter) -> list[ast.expr]:
        """The index expressions of a subscript, as many as the array has dimensions."""
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) != array.spec.rank:
            raise self.refuse(
                node,
                f"{array.spoken!r} has {counted(array.spec.rank, 'dimension')} and is given "
                f"{counted(len(nodes), 'index')}{_meant(array, len(nodes))}",
            )
        return nodes

    def check_indices(
        self, node: ast.Subscript, array: ArrayParameter, indices: list[Expression]
    ) -> None:
        """Refuses literal indices that no array of this type has."""
        for axis, index in enumerate(indices):
            if not isinstance(index, IRConstant):
                continue
            extent = array.spec.all_dims[axis]
            if index.value < 0:
                whole = extent if axis >= array.spec.rank else f"{array.spoken}.shape[{axis}]"
                raise self.refuse(
                    node,
                    f"the index {index.value} is negative, and indices do not wrap around; write "
                    f"{whole} - {-index.value}",
                )
            if extent is not None and index.value >= extent:
                raise self.refuse(node, f"the index {index.value} is out of range for {array.spec}")


def _meant(array: ArrayParameter, given: int) -> str:
    """Advice where a wrong number of indices tells what was meant.

    An array without dimensions has one element. One index too few may mean that the last axis
    holds vectors.
    """
    spec = array.spec
    if not spec.rank:
        return "; the index of its one element is ()"
    width = spec.dims[-1]
    if spec.element or given != spec.rank - 1 or not (width is None or 2 <= width <= 4):
        return ""
    name = f"{spec.dtype}x{width or 3}"
    return (
        f"; if its last axis holds vectors, annotate it tack.Array[tack.{name}] and write "
        f"{name}[{', '.join(':' * given)}] in signatures"
    )
