"""fragments: what a lane does of a product by tensor cores, of those that a target has.

A fragment becomes an array of the elements that a lane holds, and loading or storing one becomes
loads or stores of these, by the layouts of a `TensorCore`. The product itself stays an `IRMma`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRCast,
    IRConstant,
    IRFragmentLoad,
    IRFragmentStore,
    IRFunction,
    IRGroupIndex,
    IRLocalArray,
    IRMma,
    IRName,
    IRNode,
    IRWarpSize,
    Statement,
)
from tack.ir.traversal import (
    kernel_loop,
    read_names,
    set_name,
    statements_of,
    transform_ir,
    walk_ir,
)
from tack.model.dtypes import i64
from tack.model.errors import UnsupportedError
from tack.model.tensor_cores import Layout, TensorCore, Term
from tack.passes.build import constant, operate
from tack.passes.type import fresh_name
from tack.passes.uniformity import Uniformity, heads

__all__ = ["NO_WARPS", "Fragments", "Warps", "uses_warps"]


@dataclass(frozen=True, slots=True)
class Warps:
    """The tensor cores of a target, which is named in errors."""

    target: str
    cores: tuple[TensorCore, ...]


NO_WARPS: Final = Warps("this target", ())

_STATEMENTS: Final = (IRFragmentLoad, IRFragmentStore, IRMma)


def uses_warps(function: IRFunction) -> bool:
    """Whether a function says anything of warps."""
    return any(
        isinstance(node, (*_STATEMENTS, IRWarpSize))
        or (isinstance(node, IRGroupIndex) and node.kind == "warp")
        for node in walk_ir(function)
    )


class Fragments:
    """The fragments of one function on one target.

    ``lanes`` is the size of a warp. `UnsupportedError` if the target has not what the function
    needs, `CompileError` for a row or a column that differs between the lanes of a warp.
    """

    def __init__(self, function: IRFunction, warps: Warps) -> None:
        self._function = function
        self._warps = warps
        self._body = kernel_loop(function).body
        if not warps.cores:
            raise UnsupportedError(
                f"{warps.target} has no tensor cores, which {function.name} asks for by "
                "tack.mma or a number of warps; leave out this target"
            )
        self.lanes = warps.cores[0].lanes
        if function.workgroup[0] % self.lanes:
            raise UnsupportedError(
                f"{function.name}: group={function.workgroup[0]} is no multiple of the "
                f"{self.lanes} iterations that a warp of {warps.target} has"
            )
        self._cores = {
            name: self._core(node)
            for node in statements_of(self._body)
            if isinstance(node, IRMma)
            for name in (node.c, node.a, node.b)
        }
        self._uniformity = Uniformity(function, within="warp")
        self._needed = self._places()

    def _core(self, node: IRMma) -> TensorCore:
        arrays = self._function.local_arrays
        wanted = arrays[node.a].dtype.name, arrays[node.c].dtype.name
        for core in self._warps.cores:
            if (core.operand, core.result) == wanted:
                return core
        known = ", ".join(f"{core.operand} into {core.result}" for core in self._warps.cores)
        raise UnsupportedError(
            f"{self._warps.target} has no tensor cores for {' into '.join(wanted)}, which "
            f"{self._function.name} asks for; it has {known}",
            self._function.positions.get(node),
        )

    def _places(self) -> set[str]:
        """The locals by which rows and columns are worked out; refuses what varies in a warp."""
        refuse = self._function.positions.refuse
        needed: set[str] = set()
        for node in statements_of(self._body):
            if isinstance(node, IRFragmentLoad | IRFragmentStore):
                for head in heads(node):
                    why = self._uniformity.reasons(head)
                    if why:
                        raise refuse(
                            node,
                            "every iteration of a warp gives a fragment the same row and column, "
                            f"and this depends on {why}; work it out from tack.warp_id(), "
                            "tack.group_id(), scalars and extents",
                        )
                    needed.update(read_names(head))
        known = -1
        while known != (known := len(needed)):
            for node in statements_of(self._body):
                if set_name(node) in needed:
                    needed.update(name for head in heads(node) for name in read_names(head))
        return needed & self._function.locals.keys()

    def check_apart(self, node: Statement) -> None:
        """Refuses a branch or loop, not the same for a whole group, that sets rows or columns."""
        for inner in statements_of([node]):
            if self.concerns(inner):
                raise self._function.positions.refuse(
                    inner,
                    "the row and the column of a fragment are worked out where all iterations of "
                    "a group come, and some do not come here; write a conditional expression",
                )

    def concerns(self, node: Statement) -> bool:
        """Whether every lane of a warp runs a statement, since it is about fragments."""
        if isinstance(node, IRLocalArray):
            return bool(self._function.local_arrays[node.array].fragment)
        return isinstance(node, _STATEMENTS) or (
            isinstance(node, IRAssign) and node.target in self._needed
        )

    def expanded(self, node: Statement) -> Iterator[Statement]:
        """What a lane does of a statement."""
        if isinstance(node, IRFragmentLoad):
            yield from self._load(node)
        elif isinstance(node, IRFragmentStore):
            yield from self._store(node)
        else:
            if isinstance(node, IRMma):
                node.function = self._cores[node.c].name
            yield node

    def settle(self) -> None:
        """Gives fragments the size of a lane's part, and warps the numbers of the target."""
        for name, array in list(self._function.local_arrays.items()):
            if array.fragment:
                layout = self._layout(name)
                self._function.local_arrays[name] = replace(array, dims=(layout.elements,))

        def settled(node: IRNode) -> Expression | None:
            if isinstance(node, IRWarpSize):
                return IRConstant(self.lanes, i64)
            if isinstance(node, IRGroupIndex) and node.kind == "warp":
                return operate("//", IRGroupIndex("thread", 0, i64), constant(self.lanes, i64))
            return None

        transform_ir(self._function, settled)

    def _layout(self, name: str) -> Layout:
        """Where the elements of a fragment are; of one that no product uses, as in any."""
        core = self._cores.get(name, self._warps.cores[0])
        role = self._function.local_arrays[name].fragment
        return {"a": core.a, "b": core.b, "c": core.c}[role]

    def _load(self, node: IRFragmentLoad) -> Iterator[Statement]:
        dtype = self._function.arrays[node.array].dtype
        starts, places = self._elements(node)
        yield from starts
        yield IRLocalArray(node.fragment)
        for element, place in enumerate(places):
            value = IRArrayLoad(node.array, place, dtype)
            yield IRArrayStore(node.fragment, [constant(element, i64)], value)

    def _store(self, node: IRFragmentStore) -> Iterator[Statement]:
        dtype = self._function.arrays[node.array].dtype
        own = self._function.local_arrays[node.fragment].dtype
        starts, places = self._elements(node)
        yield from starts
        for element, place in enumerate(places):
            value: Expression = IRArrayLoad(node.fragment, [constant(element, i64)], own)
            if dtype is not own:
                value = IRCast(value, dtype)
            yield IRArrayStore(node.array, place, value)

    def _elements(
        self, node: IRFragmentLoad | IRFragmentStore
    ) -> tuple[list[IRAssign], list[list[Expression]]]:
        """The indices of each element that a lane holds, after what sets their locals."""
        layout = self._layout(node.fragment)
        starts = [
            IRAssign(self._local(stem), self._start(index, terms), i64)
            for stem, index, terms in zip(
                ("row", "column"), node.indices, (layout.row, layout.column), strict=True
            )
        ]
        places: list[list[Expression]] = [
            [
                operate("+", IRName(start.target, i64), constant(offset, i64))
                for start, offset in zip(starts, layout.place(0, element), strict=True)
            ]
            for element in range(layout.elements)
        ]
        return starts, places

    def _local(self, stem: str) -> str:
        name = fresh_name(self._function, stem)
        self._function.locals[name] = i64
        return name

    def _start(self, index: Expression, terms: tuple[Term, ...]) -> Expression:
        """Where the first of a lane's elements is, along one axis."""
        place = index
        for term in terms:
            if term.number == "lane":
                number: Expression = IRGroupIndex("thread", 0, i64)
                if term.divisor > 1:
                    number = operate("//", number, constant(term.divisor, i64))
                number = operate("%", number, constant(term.modulus, i64))
                if term.factor > 1:
                    number = operate("*", number, constant(term.factor, i64))
                place = operate("+", place, number)
        return place
