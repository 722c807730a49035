"""State that the lowering of one kernel shares: frames, output, fresh names, assignment flow."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRCall,
    IRConstant,
    IRFragmentStore,
    IRName,
    IRNode,
    LocalArray,
    Statement,
)
from tack.ir.operations import GROUP_REDUCTIONS
from tack.ir.positions import Positions
from tack.ir.traversal import walk_ir
from tack.lang.definition import FunctionDefinition, KernelDefinition
from tack.lang.vectors import Value, VectorMeaning, VectorValue, parts_of, words
from tack.model.dtypes import DType, i64
from tack.model.errors import CompileError
from tack.model.signature import ArraySpec
from tack.model.vectors import component_names

__all__ = [
    "ArrayParameter",
    "FragmentMeaning",
    "Frame",
    "Loop",
    "LoweringBase",
    "Meaning",
    "TemplateNode",
    "VectorAttribute",
    "again",
    "contains_load",
    "contains_store",
    "is_simple",
    "join",
]

_Node = TypeVar("_Node", bound=IRNode)

_SHORT = 6
"""Nodes of an expression that is written again rather than held."""


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """An array parameter of the kernel, however many calls it was passed through.

    Or a ``local`` array of an iteration, of which every dimension is pinned.
    """

    name: str
    spec: ArraySpec
    is_local: bool = False

    @property
    def spoken(self) -> str:
        """The name as the source has it; a local of an inlined function carries a suffix."""
        return self.name.split(".", maxsplit=1)[0] if self.is_local else self.name


@dataclass(frozen=True, slots=True, eq=False)
class TemplateNode:
    """A template parameter of the kernel, or one that it holds.

    ``label`` is how the kernel spells it, ``type`` its class. ``members`` are its attributes,
    ``methods`` the device functions of its class, each with whether it takes no self,
    ``functions`` those of the object, ``extents`` the attributes that a loop over it runs over,
    and ``others`` what it holds that no kernel can read, with what that is.
    """

    label: str
    type: str
    members: dict[str, Meaning]
    methods: dict[str, tuple[FunctionDefinition, bool]]
    functions: dict[str, FunctionDefinition]
    extents: tuple[str, ...]
    others: dict[str, str]


@dataclass(frozen=True, slots=True)
class VectorAttribute:
    """A vector that a template holds: the one element of an array without dimensions."""

    array: ArrayParameter


@dataclass(frozen=True, slots=True)
class FragmentMeaning:
    """A fragment of a product by tensor cores: its IR name, which operand it is, and its type."""

    name: str
    role: str
    dtype: DType


Meaning = (
    str
    | ArrayParameter
    | IRConstant
    | VectorMeaning
    | VectorAttribute
    | TemplateNode
    | FragmentMeaning
)
"""What a local name of a frame stands for: an IR name, an array, a literal argument, a template, or
several of those for the components of a vector."""


@dataclass(slots=True)
class Frame:
    """One function being lowered, the kernel or an inlined one, and its local names."""

    definition: KernelDefinition | FunctionDefinition
    meanings: dict[str, Meaning] = field(default_factory=dict)
    suffix: str = ""
    locals: frozenset[str] = frozenset()
    numbers: set[str] = field(default_factory=set)
    results: list[str | VectorMeaning] | None = None
    flags: list[str] = field(default_factory=list)
    loops: int = 0

    def __post_init__(self) -> None:
        self.locals = self.definition.local_names

    def refuse(self, node: ast.AST, message: str) -> CompileError:
        """The error that refuses ``node`` of this function, for the caller to raise."""
        return self.definition.source.refuse(node, message)


@dataclass(slots=True)
class Loop:
    """The assignment states with which a loop is left or goes round; ``several`` loops at once."""

    several: bool = False
    breaks: list[frozenset[str] | None] = field(default_factory=list)
    rounds: list[frozenset[str] | None] = field(default_factory=list)


class LoweringBase:
    """What every part of the lowering uses.

    ``assigned`` are the IR names that hold a value at the present point on every path, or None
    where the point cannot be reached. ``pinned`` are the extents that the signature pins, ``known``
    the integers that names set before the loop hold, ``arrays`` the local and the shared arrays,
    ``workgroup`` how many iterations are a group along each axis.
    """

    def __init__(self, kernel: KernelDefinition) -> None:
        self.frame = Frame(kernel)
        self.active: list[KernelDefinition | FunctionDefinition] = [kernel]
        self.positions = Positions()
        self.out: list[Statement] = []
        self.declared: dict[str, DType] = {}
        self.indices: set[str] = set()
        self.temporaries: set[str] = set()
        self.groups: list[tuple[str, ...]] = []
        self.assigned: frozenset[str] | None = frozenset()
        self.loops: list[Loop] = []
        self.prologue: set[str] | None = None
        self.loop_entered = False
        self.pinned: dict[tuple[str, int], int] = {}
        self.known: dict[str, int] = {}
        self.arrays: dict[str, LocalArray] = {}
        self.local_bytes = 0
        self.workgroup = kernel.options.group
        self._counter = 0

    def refuse(self, node: ast.AST, message: str) -> CompileError:
        """The error that refuses ``node``, for the caller to raise."""
        return self.frame.refuse(node, message)

    def at(self, node: ast.AST, ir: _Node) -> _Node:
        """Notes that ``ir`` comes from ``node``."""
        return self.positions.put(ir, partial(self.frame.definition.source.position, node))

    def fresh(self, what: str = "t") -> str:
        """A local that no source name can meet, for a value that is evaluated once.

        It has the type of that value: its being there changes no type.
        """
        name = f"{what}.{self.count()}"
        self.temporaries.add(name)
        return name

    def count(self) -> int:
        """A number that no earlier call gave."""
        self._counter += 1
        return self._counter

    def emit(self, node: ast.AST, statement: Statement) -> None:
        """Appends a statement that comes from ``node``."""
        self.out.append(self.at(node, statement))

    def emit_assign(self, node: ast.AST, target: str, value: Expression) -> None:
        """Appends ``target = value`` and notes that ``target`` now holds a value."""
        self.emit(node, IRAssign(target, value))
        self.mark_assigned(target)

    def mark_assigned(self, name: str) -> None:
        """Notes that ``name`` holds a value from here on."""
        if self.assigned is not None:
            self.assigned |= {name}

    @contextmanager
    def collect(self) -> Iterator[list[Statement]]:
        """Statements go to the list it yields until it ends."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    def temporary(self, node: ast.AST, value: Expression, what: str = "t") -> Expression:
        """``value`` evaluated now: itself if that is simple, else the name of a new local."""
        if is_simple(value):
            return value
        name = self.fresh(what)
        self.emit_assign(node, name, value)
        return self.at(node, IRName(name))

    def settled(self, node: ast.AST, value: Value, what: str = "t") -> Value:
        """``value`` evaluated now, into temporaries; its literals stay what they are."""
        parts = tuple(self._held(node, part, what) for part in parts_of(value))
        return VectorValue(value.shape, parts) if isinstance(value, VectorValue) else parts[0]

    def _held(self, node: ast.AST, part: Expression, what: str) -> Expression:
        if isinstance(part, IRConstant):
            return part
        name = self.fresh(what)
        self.emit_assign(node, name, part)
        return self.at(node, IRName(name))

    def reusable(self, node: ast.AST, value: Expression) -> Expression:
        """``value`` as it may be read several times: short, or in a temporary."""
        short = sum(1 for _ in walk_ir(value)) <= _SHORT and not contains_load(value)
        return value if short else self.temporary(node, value)

    def held_index(self, node: ast.AST, index: Expression) -> Expression:
        """An index evaluated now, into an i64: declared, so that what is no index is refused."""
        name = f"index.{self.count()}"
        self.declared[name] = i64
        self.indices.add(name)
        self.emit_assign(node, name, index)
        return self.at(node, IRName(name))

    def fresh_result(self, what: str, shape: tuple[int, ...]) -> str | VectorMeaning:
        """A temporary for a value of ``shape``."""
        name = self.fresh(what)
        if not shape:
            return name
        parts = component_names(name, shape)
        self.temporaries.update(parts)
        return VectorMeaning(shape, parts)

    def evaluate(self, nodes: list[ast.expr]) -> list[Expression]:
        """The numbers that ``nodes`` are, evaluated left to right."""
        values = self.evaluate_values(nodes)
        return [self.scalar(node, value) for node, value in zip(nodes, values, strict=True)]

    def evaluate_values(self, nodes: list[ast.expr]) -> list[Value]:
        """The values of ``nodes``, evaluated left to right.

        An expression that loads, followed by one whose calls store, is read before those stores.
        """
        values: list[Value] = []
        marks: list[int] = []
        for node in nodes:
            values.append(self.value(node))
            marks.append(len(self.out))
        for k in reversed(range(len(nodes))):
            values[k] = self.protect(nodes[k], values[k], marks[k])
        return values

    def protect(self, node: ast.AST, value: Value, mark: int) -> Value:
        """``value``, read at ``mark`` if it loads and a statement after the mark stores."""
        if mark == len(self.out) or not any(map(contains_load, parts_of(value))):
            return value
        if not any(map(contains_store, self.out[mark:])):
            return value
        with self.collect() as reads:
            result = self.settled(node, value)
        self.out[mark:mark] = reads
        return result

    def scalar(self, node: ast.AST, value: Value, advice: str | None = None) -> Expression:
        """``value`` where a number is needed; refuses vectors."""
        if isinstance(value, VectorValue):
            component = (
                "a component of it, as .x" if len(value.shape) == 1 else "an element, m[i, j]"
            )
            raise self.refuse(
                node, f"this is {words(value)}; {advice or f'a number is needed here: {component}'}"
            )
        return value

    def expression(self, node: ast.expr) -> Expression:
        """The number that ``node`` is; statements that it needs are emitted first."""
        return self.scalar(node, self.value(node))

    def value(self, node: ast.expr) -> Value:
        """The value of ``node``; statements that it needs are emitted first."""
        raise NotImplementedError

    def block(self, statements: list[ast.stmt]) -> None:
        """Lowers a statement list."""
        raise NotImplementedError

    def statement(self, node: ast.stmt) -> None:
        """Lowers one statement."""
        raise NotImplementedError

    def static(self, node: ast.expr) -> Any:
        """What a static name stands for, or `tack.lang.bindings.MISSING`."""
        raise NotImplementedError


def contains_store(node: IRNode) -> bool:
    """Whether anything in ``node`` stores to an array, or shows what others have stored."""
    return any(
        isinstance(inner, IRArrayStore | IRAtomic | IRBarrier | IRFragmentStore)
        or (isinstance(inner, IRCall) and inner.function in GROUP_REDUCTIONS)
        for inner in walk_ir(node)
    )


def contains_load(node: IRNode) -> bool:
    """Whether anything in ``node`` loads from an array."""
    return any(isinstance(inner, IRArrayLoad) for inner in walk_ir(node))


def is_simple(value: Expression) -> bool:
    """Whether evaluating ``value`` twice costs nothing."""
    return isinstance(value, IRName | IRConstant)


def again(value: Expression) -> Expression:
    """A fresh node for a further use of a simple value: passes settle each use by itself."""
    return copy.copy(value) if is_simple(value) else value


def join(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    """What holds a value where two paths meet."""
    if left is None or right is None:
        return right if left is None else left
    return left & right
