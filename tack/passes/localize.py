"""localize: the locals of an iteration, each once, in order of appearance, read somewhere.

An assignment to a local that nothing reads is dropped, and a local array that nothing loads from,
with the stores to it: expressions are pure.
"""

from __future__ import annotations

from tack.ir.nodes import (
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRFunction,
    IRLocalArray,
    IRNode,
    Statement,
)
from tack.ir.traversal import assigned_names, read_names, transform_ir, walk_ir

__all__ = ["localize"]


def localize(function: IRFunction) -> IRFunction:
    """Drops unread locals and orders ``function.locals``, in place."""
    while True:
        read = set(read_names(function))
        unread = set(assigned_names(function)) - read
        loaded = {n.array for n in walk_ir(function) if isinstance(n, IRArrayLoad | IRAtomic)}
        if not _drop(function, unread, set(function.local_arrays) - loaded):
            break
    return _order_locals(function)


def _order_locals(function: IRFunction) -> IRFunction:
    """Makes ``function.locals`` the locals that are assigned, in order of appearance."""
    function.locals = {name: function.locals[name] for name in assigned_names(function)}
    return function


def _drop(function: IRFunction, unread: set[str], unloaded: set[str]) -> bool:
    """Removes what sets ``unread`` and the arrays ``unloaded``; whether there was anything."""
    dropped = False

    def rewrite(node: IRNode) -> list[Statement] | None:
        nonlocal dropped
        if (isinstance(node, IRAssign) and node.target in unread) or (
            isinstance(node, IRLocalArray | IRArrayStore) and node.array in unloaded
        ):
            dropped = True
            return []
        return None

    if unread or unloaded:
        transform_ir(function, rewrite)
    for name in unloaded:
        del function.local_arrays[name]
    return dropped
