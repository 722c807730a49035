"""groups: the body of a kernel with workgroups, made for every lane of a group.

The last group of each axis has lanes beyond the end of the parallel loop. They come to every
barrier and do nothing else: what stands between barriers is put under `IRActive`. Statements that
lead to a barrier, uniform all of them, stay outside of it, and so do the locals by which they
decide: a lane beyond the end has the same values of these as the others.

Reductions over a group become a tree in a shared array, and loads and stores of fragments those of
the elements that a lane holds (``fragments``). What concerns fragments is run by every lane of a
warp in which one is an iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRActive,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRBarrier,
    IRBreak,
    IRCall,
    IRConstant,
    IRContinue,
    IRFunction,
    IRGroupIndex,
    IRIf,
    IRName,
    IRSequentialFor,
    IRWhile,
    LocalArray,
    Statement,
    dtype_of,
)
from tack.ir.operations import GROUP_REDUCTIONS
from tack.ir.traversal import kernel_loop, read_names, set_name, statement_lists, statements_of
from tack.model.dtypes import DType, bool_, i64
from tack.passes.build import call, compare, constant, operate
from tack.passes.fragments import NO_WARPS, Fragments, Warps, uses_warps
from tack.passes.localize import localize
from tack.passes.type import fresh_name
from tack.passes.uniformity import Uniformity, heads, reduction

__all__ = ["split_groups"]

_COMPOUND: Final = (IRIf, IRWhile, IRSequentialFor)


def split_groups(function: IRFunction, warps: Warps = NO_WARPS) -> IRFunction | None:
    """Makes the body of a localized kernel one for every lane, in place; None without groups.

    `CompileError` for a barrier that only some iterations of a group come to, `UnsupportedError`
    for fragments that a target has not.
    """
    if not function.workgroup:
        return None
    loop, fragments = kernel_loop(function), None
    if uses_warps(function):
        fragments = Fragments(function, warps)
        function.facts |= {"warps"}
    loop.body = _Splitter(function, fragments).lanes(loop.body)
    if fragments is not None:
        fragments.settle()
    return localize(function)


class _Splitter:
    """Splits one function. ``needed`` are the locals by which lanes find their way to barriers."""

    def __init__(self, function: IRFunction, fragments: Fragments | None) -> None:
        self.function = function
        self.fragments = fragments
        self.uniformity = Uniformity(function)
        self.needed: set[str] = set()
        body = kernel_loop(function).body
        known = -1
        while known != (known := len(self.needed)):
            self._need(body)

    def _need(self, body: Sequence[Statement]) -> None:
        """Adds the locals that statements for every lane read."""
        for statement in body:
            if self._is_for_all(statement):
                for head in () if reduction(statement) else heads(statement):
                    self.needed.update(read_names(head))
                for block in statement_lists(statement):
                    self._need(block)

    def _is_for_all(self, node: Statement) -> bool:
        """Whether every lane runs a statement, in uniform control flow."""
        if not self.uniformity.is_common(node):
            return False
        if isinstance(node, _COMPOUND):
            if any(map(self.uniformity.varies, heads(node))):
                return False
            inside = [node, *statements_of(node)]
            return _leaves(node) or any(
                isinstance(each, IRBarrier)
                or reduction(each)
                or set_name(each) in self.needed
                or self._is_for_warps(each)
                for each in inside
            )
        if isinstance(node, IRBarrier | IRBreak | IRContinue):
            return True
        return reduction(node) is not None or set_name(node) in self.needed

    def _is_for_warps(self, node: Statement) -> bool:
        """Whether every lane of a warp runs a statement: it is about fragments."""
        return self.fragments is not None and self.fragments.concerns(node)

    def lanes(self, body: Sequence[Statement]) -> list[Statement]:
        """Statements in uniform control flow, for every lane."""
        result: list[Statement] = []
        runs: list[tuple[int, list[Statement]]] = []

        def add(whole_warp: int, statements: Iterable[Statement]) -> None:
            if not runs or runs[-1][0] != whole_warp:
                runs.append((whole_warp, []))
            runs[-1][1].extend(statements)

        def flush() -> None:
            result.extend(IRIf(IRActive(bool_, warp), run) for warp, run in runs)
            runs.clear()

        for statement in body:
            if self._is_for_all(statement):
                flush()
                result.extend(self._for_all(statement))
            elif self.fragments is not None and self.fragments.concerns(statement):
                add(self.fragments.lanes, self.fragments.expanded(statement))
            else:
                if self.fragments is not None:
                    self.fragments.check_apart(statement)
                add(0, [statement])
        flush()
        return result

    def _for_all(self, node: Statement) -> Iterable[Statement]:
        """A statement that every lane runs."""
        if reduction(node):
            assert isinstance(node, IRAssign)
            return self._reduced(node)
        for block in statement_lists(node):
            block[:] = self.lanes(block)
        return [node]

    def _local(self, stem: str, dtype: DType) -> IRName:
        name = fresh_name(self.function, stem)
        self.function.locals[name] = dtype
        return IRName(name, dtype)

    def _reduced(self, node: IRAssign) -> Iterator[Statement]:
        """Combines the values of a group's lanes, each with that of the lane half of them ahead."""
        assert isinstance(node.value, IRCall)
        (value,) = node.value.args
        dtype, function = dtype_of(value), node.value.function
        size = math.prod(self.function.workgroup)
        array = f"{function}.{dtype}"
        self.function.local_arrays[array] = LocalArray(dtype, (size,), shared=True)
        lane, own = self._local("lane", i64), self._local(function, dtype)
        yield IRAssign(lane.name, self._lane(), i64)
        yield IRIf(
            IRActive(bool_),
            [IRAssign(own.name, value, dtype)],
            [IRAssign(own.name, _neutral(function, dtype), dtype)],
        )
        yield IRArrayStore(array, [lane], own)
        yield IRBarrier()
        step = (1 << (size - 1).bit_length()) >> 1
        while step:
            ahead = IRArrayLoad(array, [operate("+", lane, constant(step, i64))], dtype)
            both = _combined(function, IRArrayLoad(array, [lane], dtype), ahead)
            least = min(step, size - step)
            yield IRIf(compare("<", lane, least), [IRArrayStore(array, [lane], both)])
            yield IRBarrier()
            step >>= 1
        yield IRAssign(node.target, IRArrayLoad(array, [constant(0, i64)], dtype), dtype)
        yield IRBarrier()

    def _lane(self) -> Expression:
        """The number of a lane in its group, the last axis fastest."""
        number: Expression = IRGroupIndex("thread", 0, i64)
        for axis, size in enumerate(self.function.workgroup[1:], start=1):
            scaled = operate("*", number, constant(size, i64))
            number = operate("+", scaled, IRGroupIndex("thread", axis, i64))
        return number


def _leaves(node: Statement) -> bool:
    """Whether a branch holds a ``break`` or ``continue`` of what is around it."""
    return isinstance(node, IRIf) and any(
        isinstance(inner, IRBreak | IRContinue) or _leaves(inner)
        for block in statement_lists(node)
        for inner in block
    )


def _combined(function: str, one: Expression, other: Expression) -> Expression:
    how = GROUP_REDUCTIONS[function]
    return operate("+", one, other) if how == "+" else call(how, one, other)


def _neutral(function: str, dtype: DType) -> IRConstant:
    """What a value is combined with without becoming another one."""
    if function == "block_sum":
        return IRConstant(-0.0 if dtype.is_float else 0, dtype)
    if dtype.is_float:
        return IRConstant(math.nan, dtype)  # min and max prefer the number
    return IRConstant(dtype.maximum if function == "block_min" else dtype.minimum, dtype)
