"""The checks of what workgroups and fragments are made of; a part of `tack.ir.verify`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tack.ir.nodes import (
    IRActive,
    IRAssign,
    IRBarrier,
    IRCall,
    IRFragmentLoad,
    IRFragmentStore,
    IRFunction,
    IRGroupIndex,
    IRMma,
    IRNode,
    IRWarpSize,
)
from tack.ir.operations import GROUP_REDUCTIONS

__all__ = [
    "GROUP_CHECKS",
    "is_of_lane",
    "misplaced_reduction",
    "reduction_fault",
    "workgroup_fault",
]


class _Verifying(Protocol):
    """What a check may ask of the verifier."""

    function: IRFunction

    def reached(self, stage: str) -> bool: ...


_NO_GROUPS: Final = "a kernel without groups"


def workgroup_fault(function: IRFunction, axes: int) -> str | None:
    """What is wrong with the sizes of groups, or with the arrays that they share."""
    sizes, arrays = function.workgroup, function.local_arrays
    if sizes and (len(sizes) != axes or not all(map(_is_size, sizes))):
        return f"groups of {sizes} along {axes} axes"
    for name, array in arrays.items():
        if array.shared and not sizes:
            return f"{name!r} is shared in {_NO_GROUPS}"
        if array.shared and not all(map(_is_size, array.dims)):
            return f"the size of {name!r} is not known"
    return None


def _is_size(size: object) -> bool:
    return type(size) is int and size > 0


def is_of_lane(node: IRNode) -> bool:
    """Whether an expression is about an iteration and its group: the host knows none."""
    return isinstance(node, IRGroupIndex | IRActive) or _is_reduction(node)


def _is_reduction(node: IRNode) -> bool:
    return isinstance(node, IRCall) and node.function in GROUP_REDUCTIONS


def misplaced_reduction(statement: IRNode, nodes: Sequence[IRNode]) -> int | None:
    """Which of a statement's expressions is a reduction and not the whole value of an assignment.

    Iterations could come to it in different order.
    """
    whole = statement.value if isinstance(statement, IRAssign) else None
    places = enumerate(nodes)
    return next((k for k, node in places if _is_reduction(node) and node is not whole), None)


def _check_group_index(verifier: _Verifying, node: IRGroupIndex) -> str | None:
    axes = len(verifier.function.workgroup)
    kinds = ("thread", "group") if verifier.reached("optimized") else ("thread", "group", "warp")
    if node.kind not in kinds or not 0 <= node.axis < axes:
        return f"no {node.kind} along axis {node.axis} of {axes}"
    return None


def _check_fragment(verifier: _Verifying, node: IRFragmentLoad | IRFragmentStore) -> str | None:
    if verifier.reached("optimized"):
        return "a fragment is left that no lane has a part of"
    arrays, own = verifier.function.arrays, verifier.function.local_arrays.get(node.fragment)
    param = arrays.get(node.array)
    if own is None or not own.fragment:
        return f"{node.fragment!r} is no fragment"
    if param is None or param.dims is None or len(param.dims) != len(node.indices):
        return f"{node.array!r} is no array of {len(node.indices)} dimensions"
    return None


def _check_mma(verifier: _Verifying, node: IRMma) -> str | None:
    for role, name in zip("cab", (node.c, node.a, node.b), strict=True):
        array = verifier.function.local_arrays.get(name)
        if array is None or array.fragment != role:
            return f"{name!r} is no fragment {role}"
    if verifier.reached("optimized") and not node.function:
        return "a product of fragments that no target has been asked about"
    return None


def _check_warp_size(verifier: _Verifying, _: IRWarpSize) -> str | None:
    return "the size of a warp is left" if verifier.reached("optimized") else None


def _check_barrier(verifier: _Verifying, _: IRBarrier) -> str | None:
    return None if verifier.function.workgroup else _NO_GROUPS


def _check_active(verifier: _Verifying, _: IRActive) -> str | None:
    if not verifier.function.workgroup:
        return _NO_GROUPS
    early = not verifier.reached("localized")
    return "lanes beyond the end before there are any" if early else None


GROUP_CHECKS: Final[dict[type[IRNode], Callable[..., str | None]]] = {
    IRGroupIndex: _check_group_index,
    IRBarrier: _check_barrier,
    IRActive: _check_active,
    IRFragmentLoad: _check_fragment,
    IRFragmentStore: _check_fragment,
    IRMma: _check_mma,
    IRWarpSize: _check_warp_size,
}
"""Kind -> what is wrong with a node, given the verifier; or None."""


def reduction_fault(verifier: _Verifying, node: IRCall) -> str | None:
    """What is wrong with a reduction."""
    if not verifier.function.workgroup:
        return _NO_GROUPS
    return f"{node.function} is left" if verifier.reached("optimized") else None
