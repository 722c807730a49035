"""pack: which value goes into which slot, and array elements by one flat index.

A slot is given only to what the kernel or the host program uses, since packing one costs time in
every call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAtomic,
    IRBinOp,
    IRConstant,
    IRDimSize,
    IRFunction,
    IRName,
    IRNode,
    IRParam,
    IRStride,
    LocalArray,
)
from tack.ir.traversal import kernel_loop, walk_ir
from tack.model.dtypes import i64
from tack.model.launch import Slot
from tack.passes.fold import fold

__all__ = ["Layout", "kernel_loop", "pack", "pack_all"]


_ACCESSES: Final = (IRArrayLoad, IRArrayStore, IRAtomic)


@dataclass(frozen=True, slots=True)
class Layout:
    """The slots of a kernel, the number of its parallel loops, and the parameters it stores to."""

    slots: tuple[Slot, ...]
    loops: int
    written: tuple[int, ...]
    aligned: tuple[int, ...]

    def position(self, *slot: object) -> int:
        """The number of a slot, such as ``position("scalar", 0, "f32")``."""
        return self.slots.index(slot)


def pack(function: IRFunction, *, every_loop: bool = False) -> Layout:
    """Gives each array access of decomposed IR its flat index, in place, and lays out the slots.

    The index is i64: row-major in elements, or in bytes by the strides of a strided array. Slots
    come in the order of the parameters: of an array its pointer and the extents and strides that
    are used; then the extents of the parallel loop. A kernel that is called with the numbers of its
    iterations does not need the first of them; one that counts by itself does (``every_loop``).
    """
    _flatten(function)
    loop = kernel_loop(function)
    nodes = list(walk_ir(function))
    slots = list(_parameter_slots(function, nodes))
    slots.extend(("loop", d) for d in range(not every_loop, len(loop.extents)))
    changed = {node.array for node in nodes if isinstance(node, IRAtomic)}
    stored = changed | {node.array for node in nodes if isinstance(node, IRArrayStore)}
    written, aligned = (
        tuple(k for k, param in enumerate(function.params) if param.name in arrays)
        for arrays in (stored, changed)
    )
    return Layout(tuple(slots), len(loop.extents), written, aligned)


def pack_all(function: IRFunction, written: Collection[str]) -> Layout:
    """The layout of a source kernel: a slot for whatever its author may use.

    They come in the same order; ``written`` are the arrays that it declares to write.
    """
    slots: list[Slot] = []
    for number, param in enumerate(function.params):
        if param.dims is None:
            assert param.dtype is not None
            slots.append(("scalar", number, param.dtype.name))
            continue
        slots.append(("pointer", number))
        slots += [("extent", number, axis) for axis, dim in enumerate(param.dims) if dim is None]
        if param.is_strided:
            slots += [("stride", number, axis) for axis in range(len(param.dims))]
    extents = kernel_loop(function).extents
    slots += [("loop", number) for number in range(len(extents))]
    numbers = tuple(k for k, param in enumerate(function.params) if param.name in written)
    return Layout(tuple(slots), len(extents), numbers, ())


def _parameter_slots(function: IRFunction, nodes: Sequence[IRNode]) -> Iterator[Slot]:
    arrays = {n.array for n in nodes if isinstance(n, _ACCESSES)}
    extents = {(n.array, n.dim) for n in nodes if isinstance(n, IRDimSize)}
    strides = {(n.array, n.dim) for n in nodes if isinstance(n, IRStride)}
    scalars = {n.name for n in nodes if isinstance(n, IRName)}
    for number, param in enumerate(function.params):
        if param.dims is None:
            if param.name in scalars:
                assert param.dtype is not None
                yield ("scalar", number, param.dtype.name)
            continue
        if param.name in arrays:
            yield ("pointer", number)
        for axis in range(len(param.dims)):
            if (param.name, axis) in extents:
                yield ("extent", number, axis)
        for axis in range(len(param.dims)):
            if (param.name, axis) in strides:
                yield ("stride", number, axis)


def _flatten(function: IRFunction) -> None:
    arrays = function.arrays
    # By identity: an expression may stand in several places.
    accesses = {id(node): node for node in walk_ir(function) if isinstance(node, _ACCESSES)}
    for node in accesses.values():
        if not node.flat:
            node.indices = [_flat_index(node.array, arrays[node.array], node.indices)]
        node.flat = False


def _flat_index(
    name: str, array: IRParam | LocalArray, indices: Sequence[Expression]
) -> Expression:
    """``(i * n1 + j) * n2 + k``, or ``i * s0 + j * s1 + k * s2``; 0 without dimensions."""
    assert array.dims is not None
    if not indices:
        return IRConstant(0, i64)
    if array.is_strided:
        flat: Expression = IRConstant(0, i64)
        for axis, index in enumerate(indices):
            if not _is_zero(index):
                term = IRBinOp("*", index, IRStride(name, axis, i64), i64)
                flat = term if _is_zero(flat) else IRBinOp("+", flat, term, i64)
        return flat
    result, *others = indices
    for axis, index in enumerate(others, start=1):
        result = _folded("+", _folded("*", result, _extent(name, axis, array.dims[axis])), index)
    return result


def _is_zero(node: Expression) -> bool:
    return isinstance(node, IRConstant) and node.value == 0


def _folded(op: str, left: Expression, right: Expression) -> Expression:
    """``left op right``, where both are numbers their number."""
    node = IRBinOp(op, left, right, i64)
    result = fold(node) or node
    assert isinstance(result, Expression)
    return result


def _extent(array: str, axis: int, pinned: int | None) -> Expression:
    return IRDimSize(array, axis, i64) if pinned is None else IRConstant(pinned, i64)
