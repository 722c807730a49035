"""Where a writer declares the locals of an iteration: as far inside as is sound.

A local that a block sets before anything else in it looks at it is declared by that assignment,
or in front of the ``if`` whose branches all set it. Another one is declared in front of the first
statement that mentions it, but outside of all sequential loops, for it may carry a value from one
round to the next. What is not declared by an assignment starts as zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tack.ir.nodes import (
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBreak,
    IRContinue,
    IRIf,
    IRLocalArray,
    IRMma,
    IRNode,
    IRSequentialFor,
    IRWhile,
    Statement,
)
from tack.ir.traversal import (
    assigned_names,
    nodes_below,
    read_names,
    set_name,
    statement_lists,
    statements_of,
    walk_ir,
)

__all__ = ["Scopes", "plan_scopes", "reads", "sets"]


@dataclass(slots=True)
class Scopes:
    """The declarations of one body; statements are known by identity.

    ``declaring``: the assignments that declare their target. ``before``: the locals to declare in
    front of a statement. ``counting``: the loops whose variable lives in their own head.
    ``unread``: the locals that nothing reads, which only loops set; they are not declared.
    ``arrays_in_front``: the local arrays that are used outside of the block that makes them.
    """

    declaring: set[int] = field(default_factory=set)
    before: dict[int, list[str]] = field(default_factory=dict)
    counting: set[int] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    arrays_in_front: list[str] = field(default_factory=list)


def plan_scopes(body: Sequence[Statement], names: Sequence[str]) -> Scopes:
    """Decides for each local of ``names`` where ``body`` declares it."""
    planner = _Planner(body)
    for name in names:
        planner.place(name)
    planner.scopes.arrays_in_front = list(_arrays_in_front(body))
    return planner.scopes


def _arrays_in_front(body: Sequence[Statement]) -> Iterator[str]:
    everywhere: Counter[str] | None = None
    blocks = [body, *(block for inner in statements_of(body) for block in statement_lists(inner))]
    for block in blocks:
        made = [statement.array for statement in block if isinstance(statement, IRLocalArray)]
        if not made:
            continue
        everywhere = everywhere or _array_mentions(body)
        here = _array_mentions(block)
        yield from (name for name in made if here[name] != everywhere[name])


def _array_mentions(block: Sequence[Statement]) -> Counter[str]:
    """How often a block mentions each array."""
    kinds = (IRArrayLoad, IRArrayStore, IRLocalArray)
    nodes = [node for statement in block for node in walk_ir(statement)]
    counts = Counter(node.array for node in nodes if isinstance(node, kinds))
    for node in nodes:
        if isinstance(node, IRMma):
            counts.update((node.c, node.a, node.b))
    return counts


class _Planner:
    """What is known about a body: of each statement list, the statements that mention a local.

    Lists and statements are known by identity.
    """

    def __init__(self, body: Sequence[Statement]) -> None:
        self.scopes = Scopes()
        self._body = body
        self._mentions: dict[int, dict[str, list[Statement]]] = {}
        self._heads: dict[int, set[str]] = {}
        self._set_counts: Counter[str] = Counter()
        self._reads: Counter[str] = Counter()
        self._loops: dict[str, list[IRSequentialFor]] = {}
        self._collect(body)

    def _collect(self, block: Sequence[Statement]) -> dict[str, list[Statement]]:
        """Notes what the statements of a list read and set; gives those that mention a local."""
        mentions: dict[str, list[Statement]] = {}
        for statement in block:
            read = list(_head_names(statement))
            self._reads.update(read)
            self._heads[id(statement)] = mentioned = set(read)
            target = set_name(statement)
            if target is not None:
                mentioned = mentioned | {target}
                self._set_counts[target] += 1
            if isinstance(statement, IRSequentialFor):
                self._loops.setdefault(statement.var, []).append(statement)
            for inner in statement_lists(statement):
                mentioned = mentioned | self._collect(inner).keys()
            for name in mentioned:
                mentions.setdefault(name, []).append(statement)
        self._mentions[id(block)] = mentions
        return mentions

    def place(self, name: str) -> None:
        if name not in self._mentions[id(self._body)]:
            return
        loops = self._loops.get(name, [])
        if loops and self._only_counts(name, loops):
            self.scopes.counting.update(map(id, loops))
        elif not self._reads[name]:
            self.scopes.unread.add(name)
        else:
            self._declare(name, self._body, in_loop=False)

    def _only_counts(self, name: str, loops: list[IRSequentialFor]) -> bool:
        """Whether ``name`` is set by the heads of ``loops`` and read in their bodies alone."""
        if self._set_counts[name] != len(loops):
            return False
        if not self._reads[name]:
            return True  # loops over one name may stand in each other
        if any(sets(name, loop.body) for loop in loops):
            return False
        return sum(reads(name, loop.body) for loop in loops) == self._reads[name]

    def _declare(self, name: str, block: Sequence[Statement], in_loop: bool) -> bool:
        """Declares ``name`` in ``block`` or further inside; False where that is unsound."""
        mentions = self._mentions[id(block)][name]
        first = mentions[0]
        if len(mentions) == 1 and self._declare_inside(name, first, in_loop):
            return True
        if (
            isinstance(first, IRAssign | IRAtomic)
            and first.target == name
            and name not in self._heads[id(first)]
        ):
            self.scopes.declaring.add(id(first))
            return True
        if in_loop and not _settles(name, [first]):
            return False
        self.scopes.before.setdefault(id(first), []).append(name)
        return True

    def _declare_inside(self, name: str, statement: Statement, in_loop: bool) -> bool:
        """Declares ``name`` in the one block of ``statement`` that mentions it, if there is one."""
        if set_name(statement) == name or name in self._heads[id(statement)]:
            return False
        blocks = [b for b in statement_lists(statement) if name in self._mentions[id(b)]]
        is_loop = isinstance(statement, IRWhile | IRSequentialFor)
        return len(blocks) == 1 and self._declare(name, blocks[0], in_loop or is_loop)


def _settles(name: str, block: Sequence[Statement]) -> bool:
    """Whether a block sets ``name`` on each of its paths, or leaves the round, before a read."""
    for statement in block:
        if isinstance(statement, IRBreak | IRContinue):
            return True
        if isinstance(statement, IRAssign | IRAtomic) and statement.target == name:
            return not reads(name, _heads(statement))
        if isinstance(statement, IRIf) and not reads(name, [statement.condition]):
            branches = (statement.then_body, statement.else_body)
            if all(_settles(name, branch) for branch in branches):
                return True
        if reads(name, [statement]):
            return False
    return False


def _heads(statement: Statement) -> list[IRNode]:
    """The expressions of a statement."""
    return [child for child in nodes_below(statement) if not isinstance(child, Statement)]


def _head_names(statement: Statement) -> Iterator[str]:
    """The locals that the expressions of a statement read, one for each occurrence."""
    return (name for head in _heads(statement) for name in read_names(head))


def reads(name: str, nodes: Iterable[IRNode]) -> int:
    """How often trees read the local ``name``."""
    return sum(read == name for node in nodes for read in read_names(node))


def sets(name: str, body: Sequence[Statement]) -> bool:
    """Whether a body sets the local ``name``."""
    return name in assigned_names(body)
