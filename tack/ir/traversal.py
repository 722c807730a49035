"""Walks and rewrites of the tree. All of them read `CHILD_FIELDS` and nothing else.

Only structural children are followed: types, names and positions never become subtrees. A node
that is shared is visited at each of its occurrences. Passes whose result depends on the order of
statements or on control flow keep walks of their own.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Final, TypeVar, cast

from tack.ir.nodes import (
    CHILD_FIELDS,
    IRAssign,
    IRAtomic,
    IRFunction,
    IRName,
    IRNode,
    IRParallelFor,
    IRSequentialFor,
    Statement,
)
from tack.ir.positions import Positions

__all__ = [
    "LIST_ROLES",
    "Matcher",
    "Rewrite",
    "assigned_names",
    "child_fields",
    "children",
    "copy_tree",
    "kernel_loop",
    "nodes_below",
    "read_names",
    "set_name",
    "statement_lists",
    "statements_of",
    "transform_body",
    "transform_ir",
    "walk_ir",
    "walk_paths",
]

LIST_ROLES: Final = frozenset({"exprs", "stmts", "params", "functions"})
"""The roles whose attribute holds a list of children."""

Rewrite = Callable[[IRNode], IRNode | Sequence[Statement] | None]
"""Node -> its replacement; None leaves it as it is, a list takes a statement's place in a body."""

Matcher = Callable[[IRNode], IRNode | None]
"""Node -> what takes its place, or None where it stays."""

_Node = TypeVar("_Node", bound=IRNode)


def child_fields(node: IRNode) -> tuple[tuple[str, str], ...]:
    """(attribute, role) of each structural child; ``TypeError`` for a kind that is not known."""
    fields = CHILD_FIELDS.get(type(node))
    if fields is None:
        raise TypeError(f"{type(node).__name__} is not a node kind of CHILD_FIELDS")
    return fields


def children(node: IRNode) -> Iterator[tuple[str, IRNode]]:
    """(path from ``node``, child) in order of evaluation, such as ``("body[2]", ...)``."""
    for name, role in child_fields(node):
        value = getattr(node, name)
        if role in LIST_ROLES:
            for index, child in enumerate(value):
                yield f"{name}[{index}]", child
        elif value is not None or role != "optional_expr":
            yield name, value


def nodes_below(node: IRNode) -> Sequence[IRNode]:
    """The structural children of ``node``, in order of evaluation; not to be changed.

    ``TypeError`` for an unknown kind.
    """
    read = _READERS.get(type(node))
    if read is None:
        read = _READERS[type(node)] = _reader(child_fields(node))
    return read(node)


def _reader(fields: Sequence[tuple[str, str]]) -> Callable[[IRNode], Sequence[IRNode]]:
    """What reads the children of a kind with these fields."""
    names = [name for name, _ in fields]
    if not fields:
        return lambda _: ()
    if all(role == "expr" for _, role in fields):
        read: Callable[[IRNode], Any] = operator.attrgetter(*names)
        return read if len(names) > 1 else lambda node: (read(node),)

    if len(fields) == 1 and fields[0][1] in LIST_ROLES:
        return operator.attrgetter(*names)

    def read_each(node: IRNode) -> list[IRNode]:
        below: list[IRNode] = []
        for name, role in fields:
            value = getattr(node, name)
            if role in LIST_ROLES:
                below.extend(value)
            elif value is not None or role != "optional_expr":
                below.append(value)
        return below

    return read_each


_LEAVES: Final = frozenset(kind for kind, fields in CHILD_FIELDS.items() if not fields)
"""The kinds that have no children."""

_READERS: Final[dict[type[IRNode], Callable[[IRNode], Sequence[IRNode]]]] = {}
"""Kind -> what reads the children of a node, made when the first node of that kind is met."""


def walk_paths(root: IRNode, path: str = "") -> Iterator[tuple[str, IRNode]]:
    """(path, node) for ``root`` and everything below it, preorder.

    ``TypeError`` for an unknown kind, ``ValueError`` for a node that contains itself.
    """
    active: set[int] = set()
    stack: list[tuple[str, IRNode, bool]] = [(path, root, False)]
    while stack:
        place, node, left = stack.pop()
        if left:
            active.discard(id(node))
            continue
        if id(node) in active:
            raise ValueError(f"cycle: {type(node).__name__} at {place} contains itself")
        below = [(f"{place}.{name}" if place else name, child) for name, child in children(node)]
        yield place, node
        if below:
            active.add(id(node))
            stack.append((place, node, True))
            stack.extend((name, child, False) for name, child in reversed(below))


def walk_ir(root: IRNode) -> Iterator[IRNode]:
    """``root`` and everything below it, preorder; a shared node once for each occurrence.

    ``TypeError`` for an unknown kind, ``ValueError`` for a node that contains itself.
    """
    stack, inner, acyclic = [root], set[int](), set[int]()
    while stack:
        node = stack.pop()
        if type(node) in _LEAVES:
            yield node
            continue
        read = _READERS.get(type(node))
        below = nodes_below(node) if read is None else read(node)
        if below:
            if id(node) in inner and id(node) not in acyclic:  # it is shared, or contains itself
                _refuse_cycle(node)
                acyclic.add(id(node))
            inner.add(id(node))
            stack += below[::-1]
        yield node


def _refuse_cycle(root: IRNode) -> None:
    """``ValueError`` for a node that contains itself, or something that does."""
    for _ in walk_paths(root):
        pass


def transform_ir(
    root: IRNode,
    rewrite: Rewrite,
    *,
    copy_nodes: bool = False,
    positions: Positions | None = None,
) -> IRNode:
    """Applies ``rewrite`` to every node, children first, in place, and gives the new root.

    A replacement's children are not visited. A shared node is rewritten at each occurrence, so
    that a rewrite which changes nodes in place wants ``copy_nodes=True``: every occurrence is
    copied before it is rewritten, and ``root`` stays as it was. Replacements and copies get the
    position of what they stand for, from ``positions`` or those of the function that is walked.

    ``TypeError`` for an unknown kind, ``ValueError`` for a node that contains itself.
    """
    result = _Transformer(rewrite, copy_nodes, positions).visit(root)
    if not isinstance(result, IRNode):
        raise TypeError("a list of statements cannot take the place of the root")
    return result


def transform_body(function: IRFunction, rewrite: Rewrite) -> None:
    """As `transform_ir`, of every statement of the parallel loop's body, in place.

    The loop itself and its extents, which the host computes, stay as they are.
    """
    loop = kernel_loop(function)
    body = _Transformer(rewrite, False, function.positions).visit_list(loop.body)
    loop.body = cast("list[Statement]", body)  # what else a rewrite gives, the verifier refuses


class _Transformer:
    def __init__(self, rewrite: Rewrite, copy_nodes: bool, positions: Positions | None) -> None:
        self.rewrite = rewrite
        self.copy_nodes = copy_nodes
        self.positions = positions
        self.active: set[int] = set()

    def visit(self, node: IRNode) -> IRNode | Sequence[Statement]:
        fields = child_fields(node)
        if not fields:
            return self.rewritten(self.carry(node, _copy(node)) if self.copy_nodes else node)
        if id(node) in self.active:
            raise ValueError(f"cycle: {type(node).__name__} contains itself")
        if isinstance(node, IRFunction) and self.positions is None:
            self.positions = node.positions
        self.active.add(id(node))
        subject = self.carry(node, _copy(node)) if self.copy_nodes else node
        for name, role in fields:
            value = getattr(node, name)
            if role in LIST_ROLES:
                setattr(subject, name, self.visit_list(value))
            elif value is not None or role != "optional_expr":
                setattr(subject, name, self.visit(value))
        self.active.discard(id(node))
        return self.rewritten(subject)

    def rewritten(self, subject: IRNode) -> IRNode | Sequence[Statement]:
        """What stands for a node whose children are done."""
        result = self.rewrite(subject)
        if result is None:
            return subject
        for new in [result] if isinstance(result, IRNode) else result:
            self.carry(subject, new)
        return result

    def visit_list(self, nodes: Sequence[IRNode]) -> list[IRNode]:
        visited: list[IRNode] = []
        for node in nodes:
            result = self.visit(node)
            visited.extend([result] if isinstance(result, IRNode) else result)
        return visited

    def carry(self, old: IRNode, new: _Node) -> _Node:
        if self.positions is not None and new is not old:
            self.positions.carry(old, new)
        return new


def _copy(node: _Node) -> _Node:
    new: _Node = dataclasses.replace(node)  # type: ignore[type-var]
    if isinstance(new, IRFunction):
        for table in ("declared", "locals", "weak", "temporaries", "groups", "local_arrays"):
            setattr(new, table, copy(getattr(new, table)))
    return new


def kernel_loop(function: IRFunction) -> IRParallelFor:
    """The one parallel loop of a kernel."""
    (loop,) = (node for node in function.body if isinstance(node, IRParallelFor))
    return loop


def copy_tree(root: _Node, positions: Positions | None = None) -> _Node:
    """A copy of ``root`` and everything below it, in which nothing is shared."""
    copied = transform_ir(root, lambda node: None, copy_nodes=True, positions=positions)
    assert isinstance(copied, type(root))
    return copied


def statement_lists(statement: IRNode) -> list[list[Statement]]:
    """The statement lists that ``statement`` (or a function) holds directly."""
    names = _BODIES.get(type(statement))
    if names is None:
        names = _bodies(child_fields(statement))
    return [getattr(statement, name) for name in names]


def _bodies(fields: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, role in fields if role == "stmts")


_BODIES: Final = {kind: _bodies(fields) for kind, fields in CHILD_FIELDS.items()}
"""Kind -> the fields that are statement lists."""


def statements_of(root: IRNode | Sequence[Statement]) -> Iterator[Statement]:
    """Every statement in ``root``, a node or a statement list, preorder."""
    for body in statement_lists(root) if isinstance(root, IRNode) else [root]:
        for statement in body:
            yield statement
            yield from statements_of(statement)


def assigned_names(root: IRNode | Sequence[Statement]) -> Iterator[str]:
    """The local that each assignment, atomic and sequential loop in ``root`` sets, in order.

    A statement that is ``root`` itself counts too.
    """
    own = [root] if isinstance(root, Statement) else []
    for statement in [*own, *statements_of(root)]:
        name = set_name(statement)
        if name is not None:
            yield name


def set_name(node: IRNode) -> str | None:
    """The local that a node itself sets, or None."""
    if isinstance(node, IRAssign | IRAtomic):
        return node.target
    return node.var if isinstance(node, IRSequentialFor) else None


def read_names(root: IRNode) -> Iterator[str]:
    """The names that ``root`` reads, one for each occurrence."""
    return (node.name for node in walk_ir(root) if isinstance(node, IRName))
