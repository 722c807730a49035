"""storage: array elements as they lie in memory, where that is not how a value is computed with.

A bool is a byte in memory. Any byte but 0 counts as true, so that memory that NumPy did not write,
such as a view of other bytes, has a defined meaning; what is stored is 0 or 1.
"""

from __future__ import annotations

from tack.ir.nodes import IRArrayLoad, IRArrayStore, IRFunction, IRNode
from tack.ir.traversal import transform_ir
from tack.model.dtypes import bool_, u8
from tack.passes.build import cast, compare, retype

__all__ = ["store_as_bytes"]


def store_as_bytes(function: IRFunction) -> IRFunction:
    """Makes the bool arrays of a decomposed function arrays of u8, in place."""
    arrays = {name for name, array in function.arrays.items() if array.dtype is bool_}

    def rewrite(node: IRNode) -> IRNode | None:
        if isinstance(node, IRArrayLoad) and node.array in arrays:
            return compare("!=", IRArrayLoad(node.array, node.indices, u8, node.flat), 0)
        if isinstance(node, IRArrayStore) and node.array in arrays:
            node.value = cast(node.value, u8)
        return None

    if arrays:
        transform_ir(function, rewrite)
        retype(function, arrays, u8)
    return function
