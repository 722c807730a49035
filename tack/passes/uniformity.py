"""uniformity: which values, and which control flow, all iterations of a workgroup have in common.

A value varies if it is made from the numbers of an iteration or a thread (along an axis of which a
group has more than one), from an array of the iteration's own, or from one that the kernel stores
to (which another iteration may be changing just now), or if it is assigned where only some
iterations of a group come. What follows a ``break`` or ``continue`` that only some take is such a
place too, to the end of what it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRActive,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRBreak,
    IRCall,
    IRContinue,
    IRFragmentLoad,
    IRFragmentStore,
    IRFunction,
    IRGroupIndex,
    IRIf,
    IRMma,
    IRName,
    IRNode,
    IRSequentialFor,
    IRWhile,
    Statement,
)
from tack.ir.operations import GROUP_REDUCTIONS
from tack.ir.traversal import kernel_loop, nodes_below, set_name, statements_of, walk_ir
from tack.model.errors import CompileError

__all__ = ["Uniformity", "heads", "reduction"]

_WORDS: Final[dict[type[IRNode], str]] = {IRIf: "if", IRWhile: "while", IRSequentialFor: "for"}

_VARYING: Final = {"group": ("thread", "warp"), "warp": ("thread",)}
"""What varies within a group, or a warp: the kinds of `IRGroupIndex`."""

_MEETINGS: Final[dict[type[IRNode], str]] = {
    IRBarrier: "barrier",
    IRFragmentStore: "store_fragment",
    IRMma: "mma",
}
"""Statements that all iterations of a group come to -> how they are written."""

_STORES: Final = (IRArrayStore, IRAtomic, IRFragmentStore)

Cause = IRIf | IRWhile | IRSequentialFor
"""The branch or loop by which the iterations of a group go separate ways."""


class Uniformity:
    """What varies ``within`` a ``"group"`` of a function with workgroups, or within a ``"warp"``.

    `CompileError` for a barrier, a reduction or a statement about fragments that some iterations of
    a group come to and others do not; it names the branch.
    """

    def __init__(self, function: IRFunction, within: str = "group") -> None:
        self._function = function
        self._within = within
        stores = (node for node in walk_ir(function) if isinstance(node, _STORES))
        self._changing = {node.array for node in stores} | set(function.local_arrays)
        loop = kernel_loop(function)
        sizes = function.workgroup
        self._varying = {v for v, size in zip(loop.index_vars, sizes, strict=True) if size > 1}
        self._common: set[int] = set()
        self._broken: dict[int, Cause] = {}
        self._final = False
        known = -1
        while known != (known := len(self._varying) + len(self._broken)):
            self._block(loop.body, None, None)
        self._final = True
        self._block(loop.body, None, None)

    def varies(self, node: IRNode) -> bool:
        """Whether the iterations of a group may have different values of an expression."""
        return next(self._reasons(node), None) is not None

    def is_common(self, node: Statement) -> bool:
        """Whether all iterations of a group come to a statement, or none."""
        return id(node) in self._common

    def _reasons(self, node: IRNode) -> Iterator[str]:
        """What makes an expression vary: names of locals, and words for what has no name."""
        if isinstance(node, IRCall) and node.function in GROUP_REDUCTIONS:
            return
        if isinstance(node, IRName) and node.name in self._varying:
            yield node.name
        elif isinstance(node, IRGroupIndex) and node.kind in _VARYING[self._within]:
            if self._function.workgroup[node.axis] > 1:
                yield f"tack.{node.kind}_id()"
        elif isinstance(node, IRArrayLoad) and node.array in self._changing:
            yield f"an element of {_spoken(node.array)}"
        elif isinstance(node, IRActive):
            yield "the end of the loop"
        for below in nodes_below(node):
            yield from self._reasons(below)

    def _block(
        self, body: Sequence[Statement], cause: Cause | None, loop: Cause | None
    ) -> Cause | None:
        """Walks statements; gives the cause by which some iterations may have left them early."""
        left: Cause | None = None
        for statement in body:
            left = self._statement(statement, cause or left, loop) or left
        return left

    def _statement(self, node: Statement, cause: Cause | None, loop: Cause | None) -> Cause | None:
        if self._final and cause is None:
            self._common.add(id(node))
        if isinstance(node, IRBreak | IRContinue):
            if cause is not None and loop is not None and isinstance(node, IRBreak):
                self._broken.setdefault(id(loop), cause)
            return cause
        if isinstance(node, IRIf):
            inner = cause or (node if self.varies(node.condition) else None)
            one = self._block(node.then_body, inner, loop)
            return self._block(node.else_body, inner, loop) or one
        if isinstance(node, IRWhile | IRSequentialFor):
            differs = any(self.varies(head) for head in heads(node))
            inner = cause or (node if differs else self._broken.get(id(node)))
            if isinstance(node, IRSequentialFor) and inner is not None:
                self._varying.add(node.var)
            self._block(node.body, inner, node)
            return None
        if cause is not None and self._final and self._within == "group":
            self._check(node, cause)
        name = set_name(node)
        if name is not None and (
            cause is not None or isinstance(node, IRAtomic) or any(map(self.varies, heads(node)))
        ):
            self._varying.add(name)
        return None

    def _check(self, node: Statement, cause: Cause) -> None:
        """Refuses a statement that all iterations come to, where some of them do not."""
        name = _MEETINGS.get(type(node)) or reduction(node)
        if isinstance(node, IRFragmentLoad):
            name = f"fragment_{self._function.local_arrays[node.fragment].fragment}"
        if name is not None:
            raise self._refusal(node, f"tack.{name}()", cause)

    def reasons(self, *nodes: Expression) -> str:
        """What makes expressions vary, in words."""
        return " and ".join(dict.fromkeys(self._told(nodes, set())))

    def _told(self, nodes: Sequence[Expression], told: set[str]) -> Iterator[str]:
        """What makes expressions vary, as the source has it.

        A local that the source does not name is told by what it is made from.
        """
        for why in (why for node in nodes for why in self._reasons(node)):
            if why not in self._function.temporaries:
                yield _spoken(why) if why in self._varying else why
            elif why not in told:
                told.add(why)
                for statement in statements_of(kernel_loop(self._function)):
                    if set_name(statement) == why:
                        yield from self._told(heads(statement), told)

    def _refusal(self, node: Statement, what: str, cause: Cause) -> CompileError:
        positions = self._function.positions
        place, word = positions.get(cause), _WORDS[type(cause)]
        where = f"the {word!r}" + (f" in line {place.line}" if place is not None else "")
        reasons = self.reasons(*heads(cause))
        why = f", which depends on {reasons}" if reasons else ""
        return positions.refuse(
            node,
            f"every iteration of a group comes to {what}, and {where}{why}, is not the same for "
            "all of them; move it out, or decide by what they have in common (scalars, shapes, "
            "group_id, tack.block_max)",
        )


def _spoken(name: str) -> str:
    """A name as the source has it; those of inlined functions carry a suffix."""
    return name.split(".", maxsplit=1)[0]


def heads(node: Statement) -> list[Expression]:
    """The expressions of a statement."""
    return [child for child in nodes_below(node) if isinstance(child, Expression)]


def reduction(node: Statement) -> str | None:
    """The builtin by which an assignment combines a value of all iterations of a group, or None."""
    if not isinstance(node, IRAssign) or not isinstance(node.value, IRCall):
        return None
    return node.value.function if node.value.function in GROUP_REDUCTIONS else None
