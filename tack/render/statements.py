"""Statements of the C family: the body of an iteration to lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRBinOp,
    IRBreak,
    IRConstant,
    IRContinue,
    IRDimSize,
    IRFunction,
    IRIf,
    IRLocalArray,
    IRMma,
    IRName,
    IRPrint,
    IRSequentialFor,
    IRVectorLoad,
    IRVectorStore,
    IRWhile,
    LocalArray,
    Statement,
    dtype_of,
)
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DType, i64
from tack.model.launch import Launch
from tack.render.cfamily import Dialect, ExpressionWriter
from tack.render.literals import PRINTED, quoted
from tack.render.names import Names
from tack.render.scopes import Scopes, plan_scopes, sets
from tack.render.slots import SlotNames

__all__ = ["BARRIER", "INDENT", "BodyWriter", "StatementWriter", "writer_of"]

INDENT: Final = "  "
BARRIER: Final = "tack_barrier()"
"""Lets the threads of a workgroup meet; a function of the unit's file."""

_COMPOUND: Final = frozenset({"+", "-", "*", "/", "&", "|", "^"})
"""Operators with an assigning form."""


def writer_of(
    function: IRFunction, launch: Launch, dialect: Dialect
) -> tuple[Names, SlotNames, StatementWriter]:
    """The names of a packed function in a dialect, those of its slots, and its writer."""
    loop, names = kernel_loop(function), Names(dialect.reserved)
    slots = SlotNames(function, loop, launch, names)
    for name in (*loop.index_vars, *function.locals, *function.local_arrays):
        names.local(name)
    expressions = ExpressionWriter(dialect, slots, relaxed=function.relaxed)
    writer = StatementWriter(dialect, expressions, names, function.locals, function.local_arrays)
    return names, slots, writer


class BodyWriter(Protocol):
    """Writes what an iteration does."""

    def body(self, statements: Sequence[Statement], depth: int) -> list[str]:
        """The lines of an iteration, indented by ``depth`` steps."""
        ...


class StatementWriter:
    """Writes the statements of one function.

    ``types`` are the locals' types, ``arrays`` the local arrays; ``names`` gives the names of what
    the writer itself needs.
    """

    def __init__(
        self,
        dialect: Dialect,
        expressions: ExpressionWriter,
        names: Names,
        types: Mapping[str, DType],
        arrays: Mapping[str, LocalArray],
    ) -> None:
        self._dialect = dialect
        self._expressions = expressions
        self._names = names
        self._types = types
        self._arrays = arrays
        self._scopes = Scopes()

    def body(self, statements: Sequence[Statement], depth: int) -> list[str]:
        """The lines of an iteration, declarations included, indented by ``depth`` steps."""
        self._scopes = plan_scopes(statements, list(self._types))
        lines = [f"{INDENT * depth}{self._array(name)};" for name in self._scopes.arrays_in_front]
        return [*lines, *self._block(statements, depth)]

    def _array(self, name: str) -> str:
        """The declaration of a local array."""
        array = self._arrays[name]
        if array.is_vector:
            return f"{self._vector(name)} {self._names.local(name)}"
        return f"{self._dialect.type(array.dtype)} {self._names.local(name)}[{array.size}]"

    def _vector(self, name: str) -> str:
        """The type of a vector."""
        array = self._arrays[name]
        return self._dialect.vector(array.dtype, array.size)

    def _block(self, statements: Sequence[Statement], depth: int) -> Iterator[str]:
        for statement in statements:
            for name in self._scopes.before.get(id(statement), ()):
                yield self._zeroed(name, depth)
            yield from self._WRITERS[type(statement)](self, statement, depth)

    def _zeroed(self, name: str, depth: int) -> str:
        dtype = self._types[name]
        zero = self._expressions.write(IRConstant(0.0 if dtype.is_float else 0, dtype))
        return f"{INDENT * depth}{self._dialect.type(dtype)} {self._names.local(name)} = {zero};"

    def _assign(self, node: IRAssign, depth: int) -> Iterator[str]:
        target, dtype = self._names.local(node.target), self._types[node.target]
        if id(node) in self._scopes.declaring:
            # Never const: compilers would take a constant for its value, and warn about what a
            # guard keeps away, such as a division by it.
            value = self._expressions.write(node.value)
            yield f"{INDENT * depth}{self._dialect.type(dtype)} {target} = {value};"
        else:
            yield INDENT * depth + self._update(target, node.value)

    def _store(self, node: IRArrayStore, depth: int) -> Iterator[str]:
        element = self._expressions.element(node.array, node.indices)
        yield INDENT * depth + self._update(element, node.value)

    def _atomic(self, node: IRAtomic, depth: int) -> Iterator[str]:
        dtype = self._types[node.target]
        operands = [node.value] if node.compare is None else [node.compare, node.value]
        address = self._expressions.address(node.array, node.indices)
        arguments = ", ".join([address, *map(self._expressions.write, operands)])
        call = f"{self._dialect.atomics[node.op, dtype.name]}({arguments});"
        target = f"{self._names.local(node.target)} = "
        if node.target in self._scopes.unread:
            yield INDENT * depth + call
        elif id(node) in self._scopes.declaring:
            yield f"{INDENT * depth}{self._dialect.type(dtype)} {target}{call}"
        else:
            yield f"{INDENT * depth}{target}{call}"

    def _update(self, target: str, value: Expression) -> str:
        """``target = value``, or ``target += ...`` where the value begins with the target."""
        if (
            isinstance(value, IRBinOp)
            and value.op in _COMPOUND
            and value.dtype is not None
            and not self._dialect.is_narrow(value.dtype)
            and not self._expressions.keeps_apart(value)
            and isinstance(value.left, IRName | IRArrayLoad)
            and self._expressions.write(value.left) == target
        ):
            return f"{target} {value.op}= {self._expressions.write(value.right)};"
        return f"{target} = {self._expressions.write(value)};"

    def _make(self, node: IRLocalArray, depth: int) -> Iterator[str]:
        """Declares the array, or clears it where it had to be declared in front."""
        if node.array in self._scopes.arrays_in_front:
            yield INDENT * depth + self._dialect.clear.format(self._names.local(node.array))
        else:
            yield f"{INDENT * depth}{self._array(node.array)} = {{0}};"

    def _barrier(self, node: IRBarrier, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}{BARRIER};"

    def _mma(self, node: IRMma, depth: int) -> Iterator[str]:
        fragments = ", ".join(map(self._names.local, (node.c, node.a, node.b)))
        yield f"{INDENT * depth}tack_{node.function}({fragments});"

    def _vector_load(self, node: IRVectorLoad, depth: int) -> Iterator[str]:
        place = self._vector_place("const ", node)
        yield f"{INDENT * depth}{self._array(node.local)} = {place};"

    def _vector_store(self, node: IRVectorStore, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}{self._vector_place('', node)} = {self._names.local(node.local)};"

    def _vector_place(self, const: str, node: IRVectorLoad | IRVectorStore) -> str:
        element = self._expressions.element(node.array, [node.index])
        return f"*({const}{self._dialect.space}{self._vector(node.local)} *)&{element}"

    def _print(self, node: IRPrint, depth: int) -> Iterator[str]:
        form, arguments = node.texts[0].replace("%", "%%"), []
        for value, words, text in zip(node.values, node.words, node.texts[1:], strict=True):
            if words is None:
                conversion, type_name = PRINTED[dtype_of(value).name]
                arguments.append(self._expressions.converted(value, type_name))
            else:
                conversion = "%s"
                arguments.append(self._expressions.chosen(value, *map(quoted, words)))
            form += conversion + text.replace("%", "%%")
        listed = ", ".join([quoted(form), *arguments])
        yield f"{INDENT * depth}{self._dialect.printf}({listed});"

    def _if(self, node: IRIf, depth: int) -> Iterator[str]:
        lead = INDENT * depth
        yield f"{lead}if ({self._expressions.write(node.condition)}) {{"
        yield from self._block(node.then_body, depth + 1)
        otherwise = node.else_body
        while self._is_else_if(otherwise):
            (inner,) = otherwise
            assert isinstance(inner, IRIf)
            yield f"{lead}}} else if ({self._expressions.write(inner.condition)}) {{"
            yield from self._block(inner.then_body, depth + 1)
            otherwise = inner.else_body
        if otherwise:
            yield f"{lead}}} else {{"
            yield from self._block(otherwise, depth + 1)
        yield f"{lead}}}"

    def _is_else_if(self, block: Sequence[Statement]) -> bool:
        return (
            len(block) == 1
            and isinstance(block[0], IRIf)
            and id(block[0]) not in self._scopes.before
        )

    def _while(self, node: IRWhile, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}while ({self._expressions.write(node.condition)}) {{"
        yield from self._block(node.body, depth + 1)
        yield f"{INDENT * depth}}}"

    def _for(self, node: IRSequentialFor, depth: int) -> Iterator[str]:
        """A loop over consecutive numbers; ``decompose`` leaves no other steps than 1."""
        lead = INDENT * depth
        var = self._names.local(node.var)
        own = id(node) in self._scopes.counting
        counter = var if own else self._names.fresh(node.var)
        end = self._expressions.write(node.end)
        initial = f"{counter} = {self._expressions.write(node.start)}"
        if not _holds_still(node.end, node):
            once = self._names.fresh(f"{node.var}_end")
            initial, end = f"{initial}, {once} = {end}", once
        kind = self._dialect.type(i64)
        if node.unrolled:
            yield lead + self._dialect.unroll
        yield f"{lead}for ({kind} {initial}; {counter} < {end}; ++{counter}) {{"
        if not own and node.var not in self._scopes.unread:
            yield f"{lead}{INDENT}{var} = {counter};"
        yield from self._block(node.body, depth + 1)
        yield f"{lead}}}"

    def _break(self, node: IRBreak, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}break;"

    def _continue(self, node: IRContinue, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}continue;"

    _WRITERS: ClassVar[dict[type[Statement], Callable[[Any, Any, int], Iterator[str]]]] = {
        IRAssign: _assign,
        IRArrayStore: _store,
        IRAtomic: _atomic,
        IRLocalArray: _make,
        IRBarrier: _barrier,
        IRMma: _mma,
        IRPrint: _print,
        IRVectorLoad: _vector_load,
        IRVectorStore: _vector_store,
        IRIf: _if,
        IRWhile: _while,
        IRSequentialFor: _for,
        IRBreak: _break,
        IRContinue: _continue,
    }


def _holds_still(end: Expression, loop: IRSequentialFor) -> bool:
    """Whether the end of a loop may be read in every round: it is cheap, and the loop sets it not.

    (An expression would be evaluated again, and a load may see what the loop stores.)
    """
    if isinstance(end, IRName):
        return end.name != loop.var and not sets(end.name, loop.body)
    return isinstance(end, IRConstant | IRDimSize)
