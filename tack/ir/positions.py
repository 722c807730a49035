"""Source positions, kept beside the IR so that they are in no key and no comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tack.ir.nodes import IRNode
from tack.model.errors import CompileError, Position

__all__ = ["Positions"]

_Node = TypeVar("_Node", bound=IRNode)


class Positions:
    """Node -> place in the source. Holds the nodes, so that an identity is never reused."""

    def __init__(self) -> None:
        self._table: dict[int, tuple[IRNode, Position | Callable[[], Position]]] = {}

    def put(self, node: _Node, position: Position | Callable[[], Position] | None) -> _Node:
        """Notes where ``node`` comes from, or what tells it, and gives the node back."""
        if position is not None:
            self._table[id(node)] = (node, position)
        return node

    def get(self, node: IRNode) -> Position | None:
        """Where ``node`` comes from, or None."""
        entry = self._table.get(id(node))
        if entry is None:
            return None
        return entry[1] if isinstance(entry[1], Position) else entry[1]()

    def has(self, node: IRNode) -> bool:
        """Whether it is known where ``node`` comes from."""
        return id(node) in self._table

    def carry(self, old: IRNode, new: _Node) -> _Node:
        """Gives ``new`` the position of ``old`` unless it has one, and gives ``new`` back."""
        known = self._table.get(id(old))
        if known is not None and id(new) not in self._table:
            self._table[id(new)] = (new, known[1])
        return new

    def refuse(self, node: IRNode, message: str) -> CompileError:
        """The error that refuses ``node``, for the caller to raise."""
        return CompileError(message, self.get(node))
