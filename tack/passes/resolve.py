"""resolve: what the signature knows becomes a constant."""

from __future__ import annotations

from tack.ir.nodes import IRConstant, IRDimSize, IRFunction, IRNode
from tack.ir.traversal import transform_ir
from tack.model.dtypes import i64

__all__ = ["resolve"]


def resolve(function: IRFunction) -> IRFunction:
    """Turns each `IRDimSize` of a pinned dimension into its i64 constant, in place."""
    dims = {param.name: param.dims for param in function.params if param.dims is not None}
    if all(extent is None for each in dims.values() for extent in each):
        return function

    def pinned(node: IRNode) -> IRConstant | None:
        if not isinstance(node, IRDimSize):
            return None
        extent = dims[node.array][node.dim]
        return None if extent is None else IRConstant(extent, i64)

    transform_ir(function, pinned)
    return function
