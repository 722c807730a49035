"""Lowering of products by tensor cores: fragments, ``tack.mma``, and what loads and stores them."""

from __future__ import annotations

import ast
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRFragmentLoad,
    IRFragmentStore,
    IRLocalArray,
    IRMma,
    LocalArray,
)
from tack.lang import fragments
from tack.lang.lower_base import ArrayParameter, FragmentMeaning
from tack.lang.lower_groups import GroupLowering
from tack.model.dtypes import DType, bf16, f16, f32
from tack.model.tensor_cores import SIDE

__all__ = ["FragmentLowering"]

_MAKERS: Final = {
    fragments.fragment_a: "a",
    fragments.fragment_b: "b",
    fragments.fragment_c: "c",
}
"""What makes a fragment -> which operand it is."""

_OPERANDS: Final = (f16, bf16)
_SPOKEN: Final = {
    "a": "tack.fragment_a(array, row, column)",
    "b": "tack.fragment_b(array, row, column)",
    "c": "tack.fragment_c(tack.f32)",
}


class FragmentLowering(GroupLowering):
    """Lowers statements about fragments."""

    def makes_fragment(self, call: ast.Call) -> bool:
        """Whether a call makes a fragment."""
        callee = self.static(call.func)
        return any(callee is maker for maker in _MAKERS)

    def make_fragment(self, node: ast.Assign, call: ast.Call) -> None:
        """``name = tack.fragment_a(...)``: from here on the name is that fragment."""
        maker = self.static(call.func)
        role, spoken = _MAKERS[maker], f"tack.{maker.__name__}"
        if len(self.workgroup_of(call, f"{spoken}()")) > 1:
            raise self.refuse(call, "fragments are for kernels whose parallel loop has one index")
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Name):
            raise self.refuse(node, "a fragment gets one name")
        self.check_name(target, "a fragment")
        if self.prologue is not None and not self.loop_entered:
            raise self.refuse(node, "a fragment belongs to a warp; make it in the parallel loop")
        name = self.local_name(target.id)
        if role == "c":
            dtype = self._accumulated(call)
            self.emit(node, IRLocalArray(name))
        else:
            array, indices = self._block(call, call.args, spoken)
            dtype = array.spec.dtype
            if dtype not in _OPERANDS:
                raise self.refuse(
                    call.args[0], f"{spoken} takes an array of f16 or bf16, and this is {dtype}"
                )
            self.emit(node, IRFragmentLoad(name, array.name, indices))
        self.arrays[name] = LocalArray(dtype, (SIDE * SIDE,), fragment=role)
        self.frame.meanings[target.id] = FragmentMeaning(name, role, dtype)
        self.mark_assigned(name)

    def fragment_statement(self, call: ast.Call) -> bool:
        """Lowers ``tack.mma(...)`` or ``tack.store_fragment(...)``; whether it was one of them."""
        callee = self.static(call.func)
        if callee is fragments.mma:
            names = [self._fragment(call, role, k) for k, role in enumerate("cab")]
            if len(call.args) != len(names) or call.keywords:
                raise self.refuse(call, "tack.mma takes three fragments, as in tack.mma(c, a, b)")
            left, right = names[1].dtype, names[2].dtype
            if left is not right:
                raise self.refuse(
                    call, f"tack.mma takes operands of one type, and these are {left} and {right}"
                )
            c, a, b = (each.name for each in names)
            self.emit(call, IRMma(c, a, b))
        elif callee is fragments.store_fragment:
            fragment = self._fragment(call, "c", 0)
            array, indices = self._block(call, call.args[1:], "tack.store_fragment")
            if not array.spec.dtype.is_float:
                raise self.refuse(
                    call.args[1],
                    f"tack.store_fragment takes an array of floats, and this is {array.spec.dtype}",
                )
            self.emit(call, IRFragmentStore(fragment.name, array.name, indices))
        else:
            return False
        return True

    def _accumulated(self, call: ast.Call) -> DType:
        dtype = self.static(call.args[0]) if len(call.args) == 1 and not call.keywords else None
        if dtype is not f32:
            raise self.refuse(call, "an accumulator is made by tack.fragment_c(tack.f32)")
        return f32

    def _fragment(self, call: ast.Call, role: str, position: int) -> FragmentMeaning:
        """An argument that is a fragment."""
        node = call.args[position] if position < len(call.args) else None
        found = None if node is None else self.fragment_of(node)
        if node is None or found is None or found.role != role:
            raise self.refuse(
                node or call,
                f"{ast.unparse(call.func)} takes a fragment here that {_SPOKEN[role]} made",
            )
        if self.assigned is not None and found.name not in self.assigned:
            raise self.refuse(
                node,
                f"{ast.unparse(node)!r} may have no value here; make it on every path before",
            )
        return found

    def _block(
        self, call: ast.Call, arguments: list[ast.expr], spoken: str
    ) -> tuple[ArrayParameter, list[Expression]]:
        """The array, the row and the column of arguments."""
        array = self.array_of(arguments[0]) if len(arguments) == 3 and not call.keywords else None
        if array is None or array.spec.rank != 2 or array.spec.element:
            raise self.refuse(
                call, f"{spoken} takes an array of two dimensions, a row and a column"
            )
        return array, self.evaluate(arguments[1:])
