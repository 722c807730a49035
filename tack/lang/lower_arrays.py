"""Lowering of arrays as wholes: extents, flat indices, and the local arrays of an iteration."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRBinOp,
    IRConstant,
    IRDimSize,
    IRLocalArray,
    IRName,
    IRUnaryOp,
    LocalArray,
)
from tack.lang import builtins as language
from tack.lang import groups
from tack.lang.lower_base import ArrayParameter
from tack.lang.lower_places import PlaceLowering
from tack.model.dtypes import DType, i64
from tack.model.errors import UnpinnedError
from tack.model.signature import MAX_RANK, ArraySpec
from tack.model.vectors import VectorType

__all__ = ["MAX_LOCAL_BYTES", "ArrayLowering"]

_SHARED: Final = (groups.shared, groups.shared_like)
_MAKERS: Final = (language.local_array, language.local_array_like, *_SHARED)
"""What makes an array inside a kernel."""

MAX_LOCAL_BYTES: Final = 65536
"""How much memory the local arrays of one iteration may have together: they live on the stack."""

_FOLDED: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
}


class ArrayLowering(PlaceLowering):
    """Lowers what concerns an array and not one element by its indices."""

    def extent(self, array: ArrayParameter, dim: int) -> Expression:
        """The extent of an array; that of a local one is a number."""
        pinned = array.spec.dims[dim]
        if array.is_local and pinned is not None:
            return IRConstant(pinned, i64)
        return IRDimSize(array.name, dim)

    def size(self, node: ast.expr, array: ArrayParameter) -> Expression:
        """How many elements an array has."""
        if array.is_local:
            return IRConstant(math.prod(extent or 0 for extent in array.spec.dims), i64)
        sizes = [self.at(node, self.extent(array, dim)) for dim in range(array.spec.rank)]
        result: Expression = sizes[0] if sizes else IRConstant(1, i64)
        for size in sizes[1:]:
            result = self.at(node, IRBinOp("*", result, size))
        return result

    def flat_place(
        self, node: ast.Subscript, array: ArrayParameter
    ) -> tuple[list[Expression], bool]:
        """The index of ``array.flat[index]``, and whether it is a flat one still."""
        return self.flat_indices(node, array, self.expression(self.flat_node(node, array)))

    def flat_node(self, node: ast.Subscript, array: ArrayParameter) -> ast.expr:
        """The one index of ``array.flat[index]``."""
        if isinstance(node.slice, ast.Tuple | ast.Slice):
            raise self.refuse(node, f"{array.spoken}.flat takes one index")
        return node.slice

    def flat_indices(
        self, node: ast.Subscript, array: ArrayParameter, index: Expression
    ) -> tuple[list[Expression], bool]:
        """What an array is indexed by at a flat index, and whether that is a flat one still."""
        self._check_flat(node, array, index)
        if array.spec.rank == 1:
            return [index], False
        if array.spec.is_strided:
            return self._unravel(node, array, index), False
        return [index], True

    def _unravel(
        self, node: ast.Subscript, array: ArrayParameter, index: Expression
    ) -> list[Expression]:
        """The indices of the element of a strided array that is so many behind the first."""
        left = self.held_index(node, index)
        indices: list[Expression] = []
        for dim in reversed(range(1, array.spec.rank)):
            size = self.at(node, self.extent(array, dim))
            indices.insert(0, self.at(node, IRBinOp("%", left, size)))
            left = self.temporary(node, self.at(node, IRBinOp("//", left, size)), "flat")
        return [left, *indices] if array.spec.rank else []

    def _check_flat(self, node: ast.Subscript, array: ArrayParameter, index: Expression) -> None:
        """Refuses a literal flat index that no array of this type has."""
        if not isinstance(index, IRConstant):
            return
        if index.value < 0:
            raise self.refuse(
                node,
                f"the index {index.value} is negative, and indices do not wrap around; write "
                f"{array.spoken}.size - {-index.value}",
            )
        sizes = [dim for dim in array.spec.dims if dim is not None]
        if len(sizes) == array.spec.rank and index.value >= math.prod(sizes):
            raise self.refuse(node, f"the index {index.value} is out of range for {array.spec}")

    # local arrays

    def array_of(self, node: ast.expr) -> ArrayParameter | None:
        """The array that ``node`` names, or None."""
        raise NotImplementedError

    def makes_array(self, node: ast.expr) -> bool:
        """Whether ``node`` is a call that makes a local or a shared array."""
        if not isinstance(node, ast.Call):
            return False
        callee = self.static(node.func)
        return any(callee is maker for maker in _MAKERS)

    def make_array(self, node: ast.Assign, call: ast.Call) -> None:
        """``name = tack.local_array(...)``: from here on the name is that array."""
        maker = self.static(call.func)
        spoken, is_shared = f"tack.{maker.__name__}", maker in _SHARED
        kind = "shared" if is_shared else "local"
        if is_shared:
            self.workgroup_of(call, f"{spoken}()")
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Name):
            raise self.refuse(node, f"a {kind} array gets one name")
        self.check_name(target, f"a {kind} array")
        if self.prologue is not None and not self.loop_entered:
            whose = "a group" if is_shared else "an iteration"
            raise self.refuse(
                node, f"a {kind} array belongs to {whose}; make it inside the parallel loop"
            )
        find = self._alike if maker.__name__.endswith("_like") else self._named
        spec, extents = find(call, spoken)
        name = self.local_name(target.id)
        self.frame.meanings[target.id] = ArrayParameter(name, spec, is_local=True)
        self.arrays[name] = LocalArray(spec.dtype, extents, is_shared)
        if not is_shared:
            self._check_room(call, spec.dtype, extents)
            self.emit(node, IRLocalArray(name))
        self.mark_assigned(name)

    def workgroup_of(self, node: ast.AST, what: str) -> tuple[int, ...]:
        """How many iterations are a group along each axis; refuses ``what`` without groups."""
        if not self.workgroup:
            raise self.refuse(
                node, f"{what} is for kernels with groups; write @tack.kernel(group=256)"
            )
        return self.workgroup

    def local_name(self, name: str) -> str:
        """The IR name of a local of the frame; inlined functions get names of their own."""
        return f"{name}{self.frame.suffix}"

    def check_name(self, target: ast.Name, kind: str) -> None:
        """A name is one array for good: nothing would copy one array into another."""
        node = self.frame.definition.source.node
        bindings = [
            inner
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name)
            and inner.id == target.id
            and not isinstance(inner.ctx, ast.Load)
        ]
        if len(bindings) > 1 or target.id in self.frame.definition.parameters:
            raise self.refuse(
                target, f"{target.id!r} names {kind}, and something else too; use two names"
            )

    def _named(self, call: ast.Call, spoken: str) -> tuple[ArraySpec, tuple[int, ...]]:
        """What ``spoken``, called with a dtype and a shape, makes, and all its extents."""
        if call.keywords or len(call.args) != 2:
            raise self.refuse(
                call, f"{spoken} takes a dtype and a shape, as in {spoken}(tack.f32, 4)"
            )
        first, shape = call.args
        extents = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        vector = self.static(first)
        element = vector.shape if isinstance(vector, VectorType) else ()
        dtype = vector.dtype if isinstance(vector, VectorType) else self._dtype(first)
        if not 1 <= len(extents) <= MAX_RANK - len(element):
            raise self.refuse(
                shape, f"such an array has 1 to {MAX_RANK} dimensions, those of vectors included"
            )
        dims = tuple(map(self._extent, extents))
        return ArraySpec(dtype, dims, element=element), (*dims, *element)

    def _alike(self, call: ast.Call, spoken: str) -> tuple[ArraySpec, tuple[int, ...]]:
        """What ``spoken``, called with an array and a dtype, makes, and all its extents."""
        if call.keywords or len(call.args) not in (1, 2):
            raise self.refuse(call, f"{spoken} takes an array and perhaps a dtype")
        array = self.array_of(call.args[0])
        if array is None:
            raise self.refuse(call.args[0], f"{spoken} takes an array")
        element = array.spec.element
        if element and len(call.args) == 2:
            raise self.refuse(
                call.args[1],
                "an array like one of vectors has their type; write "
                f"{spoken.removesuffix('_like')}(...) with a vector type for another",
            )
        dims = tuple(dim for dim in array.spec.dims if dim is not None)
        if len(dims) != array.spec.rank:
            wanted = tuple(dim or 3 for dim in array.spec.dims)
            pinned = ArraySpec(array.spec.dtype, wanted, element=array.spec.element)
            refusal = self.refuse(
                call,
                f"the size that {spoken} makes is known while compiling; pin the extents of "
                f"{array.spoken!r} in the signature, as in {pinned}",
            )
            raise UnpinnedError(refusal.message, refusal.position, array.name)
        if not dims:
            raise self.refuse(call.args[0], f"{spoken} makes arrays of 1 to {MAX_RANK} dimensions")
        dtype = self._dtype(call.args[1]) if len(call.args) == 2 else array.spec.dtype
        return ArraySpec(dtype, dims, element=element), (*dims, *element)

    def _dtype(self, node: ast.expr) -> DType:
        dtype = self.static(node)
        if not isinstance(dtype, DType):
            raise self.refuse(node, "the type of such an array is a dtype, such as tack.f32")
        return dtype

    def _extent(self, node: ast.expr) -> int:
        mark = len(self.out)
        extent = self.constant_of(self.expression(node))
        if extent is None or len(self.out) != mark:
            raise self.refuse(
                node,
                "the size of such an array is known while compiling: literals, tack.constant and "
                "extents that the signature pins",
            )
        if extent < 1:
            raise self.refuse(node, f"an extent of such an array is 1 or more, not {extent}")
        return extent

    def constant_of(self, node: Expression) -> int | None:
        """The value of an integer expression that is known now."""
        if isinstance(node, IRConstant):
            return node.value if type(node.value) is int else None
        if isinstance(node, IRDimSize):
            return self.pinned.get((node.array, node.dim))
        if isinstance(node, IRName):
            return self.known.get(node.name)
        if isinstance(node, IRUnaryOp) and node.op == "-":
            operand = self.constant_of(node.operand)
            return None if operand is None else -operand
        if isinstance(node, IRBinOp) and node.op in _FOLDED:
            left, right = self.constant_of(node.left), self.constant_of(node.right)
            return None if left is None or right is None else _FOLDED[node.op](left, right)
        return None

    def _check_room(self, call: ast.Call, dtype: DType, dims: tuple[int, ...]) -> None:
        size = math.prod(dims) * dtype.itemsize
        self.local_bytes += size
        if self.local_bytes > MAX_LOCAL_BYTES:
            raise self.refuse(
                call,
                f"this local array has {size} bytes, and all of an iteration together may have "
                f"{MAX_LOCAL_BYTES}; pass an array with a row for each iteration",
            )
