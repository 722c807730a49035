"""localize: the locals of an iteration, each once, in order of appearance, read somewhere.

An assignment to a local that nothing reads is dropped: expressions are pure.
"""

from __future__ import annotations

from tack.ir.nodes import IRAssign, IRFunction, IRNode, Statement
from tack.ir.traversal import assigned_names, read_names, transform_ir

__all__ = ["localize"]


def localize(function: IRFunction) -> IRFunction:
    """Drops unread locals and orders ``function.locals``, in place."""
    while True:
        read = set(read_names(function))
        unread = set(assigned_names(function)) - read
        if not _drop(function, unread):
            break
    return _order_locals(function)


def _order_locals(function: IRFunction) -> IRFunction:
    """Makes ``function.locals`` the locals that are assigned, in order of appearance."""
    function.locals = {name: function.locals[name] for name in assigned_names(function)}
    return function


def _drop(function: IRFunction, unread: set[str]) -> bool:
    """Removes the assignments to ``unread``; whether there were any."""
    dropped = False

    def rewrite(node: IRNode) -> list[Statement] | None:
        nonlocal dropped
        if isinstance(node, IRAssign) and node.target in unread:
            dropped = True
            return []
        return None

    if unread:
        transform_ir(function, rewrite)
    return dropped
