"""Source positions, kept beside the IR so that they are in no key and no comparison."""

from __future__ import annotations

from typing import TypeVar

from tack.ir.nodes import IRNode
from tack.model.errors import CompileError, Position

__all__ = ["Positions"]

_Node = TypeVar("_Node", bound=IRNode)


class Positions:
    """Node -> place in the source. Holds the nodes, so that an identity is never reused."""

    def __init__(self) -> None:
        self._table: dict[int, tuple[IRNode, Position]] = {}

    def put(self, node: _Node, position: Position | None) -> _Node:
        """Notes where ``node`` comes from, and gives it back."""
        if position is not None:
            self._table[id(node)] = (node, position)
        return node

    def get(self, node: IRNode) -> Position | None:
        """Where ``node`` comes from, or None."""
        entry = self._table.get(id(node))
        return None if entry is None else entry[1]

    def carry(self, old: IRNode, new: _Node) -> _Node:
        """Gives ``new`` the position of ``old`` unless it has one, and gives ``new`` back."""
        if self.get(new) is None:
            self.put(new, self.get(old))
        return new

    def refuse(self, node: IRNode, message: str) -> CompileError:
        """The error that refuses ``node``, for the caller to raise."""
        return CompileError(message, self.get(node))
