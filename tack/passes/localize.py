"""localize: the locals of an iteration, each once, in order of appearance, read somewhere.

An assignment to a local that nothing reads is dropped, and a local array that nothing loads from,
with the stores to it: expressions are pure. Reductions over a group stay, for they wait.
"""

from __future__ import annotations

from tack.ir.nodes import (
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRFragmentLoad,
    IRFragmentStore,
    IRFunction,
    IRLocalArray,
    IRMma,
    IRName,
    IRNode,
    Statement,
)
from tack.ir.traversal import set_name, statement_lists, walk_ir
from tack.passes.uniformity import reduction

__all__ = ["localize"]


def localize(function: IRFunction) -> IRFunction:
    """Drops unread locals and orders ``function.locals``, in place."""
    while True:
        read: set[str] = set()
        loaded: set[str] = set()
        assigned: dict[str, None] = {}
        for node in walk_ir(function):
            if isinstance(node, IRName):
                read.add(node.name)
            elif isinstance(node, IRArrayLoad):
                loaded.add(node.array)
            elif isinstance(node, Statement):
                name = set_name(node)
                if name is not None:
                    assigned[name] = None
                if isinstance(node, IRAtomic):
                    loaded.add(node.array)
                elif isinstance(node, IRMma):
                    loaded.update((node.c, node.a, node.b))
                elif isinstance(node, IRFragmentLoad | IRFragmentStore):
                    loaded.update((node.array, node.fragment))
        unread, unloaded = assigned.keys() - read, function.local_arrays.keys() - loaded
        for name in unloaded:
            del function.local_arrays[name]
        if not (unread or unloaded) or not _drop(function, unread, unloaded):
            break
    function.locals = {name: function.locals[name] for name in assigned}
    return function


def _drop(node: IRNode, unread: set[str], unloaded: set[str]) -> bool:
    """Removes what sets ``unread`` and uses ``unloaded`` below a node; whether there was any."""
    dropped = False
    for body in statement_lists(node):
        kept = [statement for statement in body if not _is_void(statement, unread, unloaded)]
        dropped |= len(kept) < len(body)
        body[:] = kept
        for statement in body:
            dropped |= _drop(statement, unread, unloaded)
    return dropped


def _is_void(node: Statement, unread: set[str], unloaded: set[str]) -> bool:
    if isinstance(node, IRAssign):
        return node.target in unread and not reduction(node)
    return isinstance(node, IRLocalArray | IRArrayStore) and node.array in unloaded
