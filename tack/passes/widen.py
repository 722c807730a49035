"""widen: a further form of a kernel, whose threads load and store several elements at once.

Threads of a GPU read memory best 16 bytes at a time. The wide form of a kernel does as many
iterations that follow each other along the fastest axis as that makes elements: it loads what they
read of each array in one access, runs the body once for each, and stores what they wrote in one.

It has the meaning of the plain form wherever the launcher chooses it, for these reasons. An array
is accessed in this way if everything that the body does to it is at the index of the iteration, so
that no other iteration touches these elements; and if each iteration does access it, so that they
exist. No array that is written overlaps another one: the launcher sees to that. Iterations are in
no order, so that some may be run by one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRContinue,
    IRDimSize,
    IRFunction,
    IRIf,
    IRIfExp,
    IRLocalArray,
    IRName,
    IRNode,
    IRParallelFor,
    IRSequentialFor,
    IRUnaryOp,
    IRVectorLoad,
    IRVectorStore,
    LocalArray,
    Statement,
)
from tack.ir.traversal import (
    assigned_names,
    copy_tree,
    kernel_loop,
    nodes_below,
    read_names,
    transform_ir,
    walk_ir,
)
from tack.model.dtypes import DType, i64
from tack.passes.pack import Layout

__all__ = ["Wide", "widen"]

_VECTOR_BYTES: Final = 16
_MOST_LANES: Final = 8

_MOST_NODES: Final = 256
"""A larger body computes for longer than it waits for memory, and is long when written out."""

_KNOWN: Final = frozenset(
    {
        *(IRAssign, IRArrayStore, IRIf, IRContinue, IRLocalArray),
        *(IRConstant, IRName, IRDimSize, IRArrayLoad, IRBinOp, IRUnaryOp, IRCompare, IRBoolOp),
        *(IRIfExp, IRCall, IRCast, IRBitcast),
    }
)
"""What a body may consist of. Loops take longer than their memory; atomics, barriers and whatever
asks for its thread are not to be done by another one."""


@dataclass(frozen=True, slots=True)
class Wide:
    """The wide form of a kernel: a packed function that does ``lanes`` iterations at a time.

    It may run where the value of each slot of ``multiples`` is a multiple of the number beside it,
    and where no array that is written overlaps another one.
    """

    function: IRFunction
    lanes: int
    multiples: tuple[tuple[int, int], ...]


def widen(function: IRFunction, layout: Layout) -> Wide | None:
    """The wide form of a packed function; None where there is nothing to gain."""
    if function.workgroup:
        return None  # iterations of a group know each other
    loop = kernel_loop(function)
    nodes = [node for statement in loop.body for node in walk_ir(statement)]
    if len(nodes) > _MOST_NODES or not all(type(node) in _KNOWN for node in nodes):
        return None
    found = dict(_vectors(function, loop, nodes))
    if not found:
        return None
    widest = max(vector.dtype.itemsize for vector in found.values())
    lanes = min(_VECTOR_BYTES // widest, _MOST_LANES)
    found = {name: vector for name, vector in found.items() if vector.fits(lanes)}
    if lanes == 1 or not found:
        return None
    numbers = {param.name: number for number, param in enumerate(function.params)}
    multiples = {
        layout.position("pointer", numbers[name]): lanes * vector.dtype.itemsize
        for name, vector in found.items()
    } | {
        layout.position("extent", numbers[row.array], row.dim): lanes
        for row in (vector.row for vector in found.values())
        if isinstance(row, IRDimSize)
    }
    return Wide(_wide(function, loop, found, lanes), lanes, tuple(sorted(multiples.items())))


@dataclass(frozen=True, slots=True)
class _Vector:
    """What lanes access of an array: from ``index`` on, in rows of ``row`` elements if any."""

    dtype: DType
    index: Expression
    row: IRDimSize | IRConstant | None
    is_read: bool
    is_written: bool

    def fits(self, lanes: int) -> bool:
        """Whether each row may begin at a multiple of ``lanes``."""
        return not isinstance(self.row, IRConstant) or self.row.value % lanes == 0


def _vectors(
    function: IRFunction, loop: IRParallelFor, nodes: Sequence[IRNode]
) -> Iterator[tuple[str, _Vector]]:
    """The arrays whose accesses are all at the index of the iteration, one of them in each."""
    always = set(_always(loop.body))
    for param in function.params:
        own = [
            node
            for node in nodes
            if isinstance(node, IRArrayLoad | IRArrayStore) and node.array == param.name
        ]
        if not own or param.is_strided or always.isdisjoint(map(id, own)):
            continue
        (index,) = own[0].indices
        if any(str(node.indices[0]) != str(index) for node in own):
            continue
        row, follows = _row(index, loop)
        if follows:
            assert param.dtype is not None
            is_read = any(isinstance(node, IRArrayLoad) for node in own)
            is_written = any(isinstance(node, IRArrayStore) for node in own)
            # A store that some iterations leave out keeps what was there.
            is_read |= not any(isinstance(n, IRArrayStore) and id(n) in always for n in own)
            yield param.name, _Vector(param.dtype, index, row, is_read, is_written)


def _row(index: Expression, loop: IRParallelFor) -> tuple[IRDimSize | IRConstant | None, bool]:
    """The length of the rows, if there are any, and whether an index follows the fastest axis.

    It does as the number of the iteration itself, or as ``row * length + number``.
    """
    last = loop.index_vars[-1]
    if isinstance(index, IRName):
        return None, index.name == last
    if not (isinstance(index, IRBinOp) and index.op == "+" and _is_name(index.right, last)):
        return None, False
    start = index.left
    if not (isinstance(start, IRBinOp) and start.op == "*"):
        return None, False
    fixed = set(loop.index_vars[:-1])
    is_row = all(
        isinstance(node, IRConstant | IRDimSize)
        or (isinstance(node, IRName) and node.name in fixed)
        or (isinstance(node, IRBinOp) and node.op in "+-*")
        for node in walk_ir(start.left)
    )
    if is_row and isinstance(start.right, IRDimSize | IRConstant):
        return start.right, True
    return None, False


def _is_name(node: Expression, name: str) -> bool:
    return isinstance(node, IRName) and node.name == name


def _always(body: Sequence[Statement]) -> Iterator[int]:
    """What every iteration evaluates, by identity: up to where the first may end."""
    for statement in body:
        heads = [statement.condition] if isinstance(statement, IRIf) else [statement]
        for head in heads:
            yield from _evaluated(head)
        if any(isinstance(node, IRContinue) for node in walk_ir(statement)):
            return


def _evaluated(node: IRNode) -> Iterator[int]:
    """``node``, and what is evaluated with it whatever the values are."""
    yield id(node)
    below = nodes_below(node)
    for child in below[:1] if isinstance(node, IRIfExp | IRBoolOp) else below:
        yield from _evaluated(child)


def _wide(
    function: IRFunction, loop: IRParallelFor, found: dict[str, _Vector], lanes: int
) -> IRFunction:
    """The function whose body does so many iterations, with ``found`` in vectors."""
    taken = {p.name for p in function.params} | set(function.locals) | set(function.local_arrays)
    taken.update(loop.index_vars)
    last = loop.index_vars[-1]
    lane, own = _fresh("lane", taken), _fresh(f"{last}.lane", taken)
    vectors = {array: _fresh(f"{array}.lanes", taken) for array in found}

    def in_lane(node: IRNode) -> IRNode | None:
        if isinstance(node, IRArrayLoad) and node.array in vectors:
            return IRArrayLoad(vectors[node.array], [IRName(lane, i64)], node.dtype)
        if isinstance(node, IRArrayStore) and node.array in vectors:
            return IRArrayStore(vectors[node.array], [IRName(lane, i64)], node.value)
        return IRName(own, i64) if isinstance(node, IRName) and node.name == last else None

    def copied(statement: Statement) -> Statement:
        changed = transform_ir(statement, in_lane, copy_nodes=True, positions=function.positions)
        assert isinstance(changed, Statement)
        return changed

    inner = [copied(statement) for statement in loop.body]
    if own in {name for statement in inner for name in read_names(statement)}:
        number = IRBinOp("+", IRName(last, i64), IRName(lane, i64), i64)
        inner.insert(0, IRAssign(own, number, i64))
    span = (IRConstant(0, i64), IRConstant(lanes, i64), IRConstant(1, i64))
    body = [
        *(_opened(array, vector, vectors[array]) for array, vector in found.items()),
        IRSequentialFor(lane, *span, inner, unrolled=True),
        *(
            IRVectorStore(array, copy_tree(vector.index), vectors[array])
            for array, vector in found.items()
            if vector.is_written
        ),
    ]
    types = {**function.locals, lane: i64, own: i64}
    return IRFunction(
        function.name,
        function.params,
        [IRParallelFor(loop.index_vars, loop.extents, body, lanes)],
        function.default_float,
        function.positions,
        locals={name: types[name] for name in dict.fromkeys(assigned_names(body))},
        local_arrays=function.local_arrays
        | {
            vectors[array]: LocalArray(vector.dtype, (lanes,), is_vector=True)
            for array, vector in found.items()
        },
    )


def _opened(array: str, vector: _Vector, local: str) -> Statement:
    """The statement that makes a vector: loaded if it has to be."""
    if vector.is_read:
        return IRVectorLoad(local, array, copy_tree(vector.index))
    return IRLocalArray(local)


def _fresh(wish: str, taken: set[str]) -> str:
    """A name that a kernel does not have, added to ``taken``."""
    names = itertools.chain([wish], (f"{wish}.{number}" for number in itertools.count(1)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name
