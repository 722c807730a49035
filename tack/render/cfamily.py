"""Expressions of the C family: decomposed IR to text, parenthesized as a careful person would.

The value of the text is the value of the IR under C's rules of promotion, for a compiler that
wraps signed integers (``-fwrapv``) and neither contracts nor reassociates floats. A `Dialect` holds
the spellings; what is common to the family is here.

Types narrower than ``int`` are computed in ``int`` by C, so that each of their operations is cast
back. An expression of another type has that very type in C, unless its reader asks for the value
alone (``plain``): then a literal may be an ``int``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from tack.ir.nodes import (
    Expression,
    IRActive,
    IRArrayLoad,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRDimSize,
    IRGroupIndex,
    IRIfExp,
    IRName,
    IRStride,
    IRUnaryOp,
)
from tack.model.dtypes import DType
from tack.render.literals import decimal

__all__ = ["Dialect", "ExpressionWriter", "Lookup"]

# How tightly an operator binds; an operand that binds less is put into parentheses.
CONDITIONAL, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUALITY, RELATION, SHIFT, ADD, MULTIPLY = range(11)
UNARY, PRIMARY = 11, 12


class _Operator(NamedTuple):
    """An infix operator: its spelling, its own level and those its operands need.

    Where C's precedence surprises (shifts, bits, comparisons) operands need more than C asks for,
    which is also where compilers warn.
    """

    text: str
    level: int
    left: int
    right: int


_OPERATORS: Final[dict[str, _Operator]] = {
    "*": _Operator("*", MULTIPLY, MULTIPLY, UNARY),
    "/": _Operator("/", MULTIPLY, MULTIPLY, UNARY),
    "cdiv": _Operator("/", MULTIPLY, MULTIPLY, UNARY),
    "cmod": _Operator("%", MULTIPLY, MULTIPLY, UNARY),
    "+": _Operator("+", ADD, ADD, MULTIPLY),
    "-": _Operator("-", ADD, ADD, MULTIPLY),
    "shl": _Operator("<<", SHIFT, UNARY, UNARY),
    "shr": _Operator(">>", SHIFT, UNARY, UNARY),
    "&": _Operator("&", BIT_AND, UNARY, UNARY),
    "^": _Operator("^", BIT_XOR, UNARY, UNARY),
    "|": _Operator("|", BIT_OR, UNARY, UNARY),
    "<": _Operator("<", RELATION, ADD, ADD),
    "<=": _Operator("<=", RELATION, ADD, ADD),
    ">": _Operator(">", RELATION, ADD, ADD),
    ">=": _Operator(">=", RELATION, ADD, ADD),
    "==": _Operator("==", EQUALITY, ADD, ADD),
    "!=": _Operator("!=", EQUALITY, ADD, ADD),
    "and": _Operator("&&", AND, EQUALITY, EQUALITY),
    "or": _Operator("||", OR, EQUALITY, EQUALITY),
}

_CHAINING: Final = frozenset({"&", "|", "^", "and", "or"})
"""Operators whose left operand may be the same operator, without parentheses."""

_SHIFTS: Final = frozenset({"shl", "shr"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spellings of one language of the family.

    ``types``: dtype name -> type. ``functions``: (builtin, dtype name) -> function.
    ``bitcasts``: (dtype name of the source, of the result) -> function.
    ``conversions``: likewise, of what is converted by a function and no cast of the language.
    ``atomics``: (operation, dtype name) -> function of a pointer and one or two values.
    ``float_suffix``, ``infinity`` and ``not_a_number``: by the name of a float type.
    ``integer_literal``: (dtype name, digits) -> a literal that has exactly that type.
    ``least``: dtype name -> the least value of a signed type, which has no literal of its own.
    ``space`` stands before the type that a pointer to an array's elements points to, and
    ``shared_space`` before that of an array that a workgroup shares; ``restrict`` before a
    pointer's name, where it promises no aliases.
    ``clear``: an array's name -> the statement that makes it all zeros.
    ``unaligned``: dtype name -> the type of an element that may lie at any address.
    ``exact``: an operation of floats -> the same, kept apart from those that may be regrouped.
    ``printf`` is the function of that name; "" where prints are left out.
    ``unroll`` stands before a loop that is to be written out.
    ``int_bits``: the width below which the language computes in ``int``.
    """

    types: Mapping[str, str]
    functions: Mapping[tuple[str, str], str]
    bitcasts: Mapping[tuple[str, str], str]
    conversions: Mapping[tuple[str, str], str]
    atomics: Mapping[tuple[str, str], str]
    float_suffix: Mapping[str, str]
    infinity: Mapping[str, str]
    not_a_number: Mapping[str, str]
    integer_literal: Mapping[str, str]
    least: Mapping[str, str]
    unaligned: Mapping[str, str]
    clear: str
    reserved: Container[str]
    exact: str = "{}"
    int_bits: int = 32
    space: str = ""
    shared_space: str = ""
    restrict: str = "restrict "
    unroll: str = "#pragma unroll"
    printf: str = ""

    def type(self, dtype: DType) -> str:
        """The name of a type."""
        return self.types[dtype.name]

    def vector(self, dtype: DType, size: int) -> str:
        """The name of the struct whose member ``at`` holds what one vector access moves."""
        return f"tack_{dtype.name}x{size}"

    def is_narrow(self, dtype: DType) -> bool:
        """Whether the language computes this integer type in ``int``."""
        return dtype.is_integer and dtype.bits < self.int_bits


class Lookup(Protocol):
    """The names that a function gives to locals, scalars and arrays, to extents and strides."""

    def name(self, python_name: str) -> str:
        """The name of a local, a scalar or an array."""
        ...

    def extent(self, array: str, dim: int) -> str:
        """The name of an array's extent."""
        ...

    def stride(self, array: str, dim: int) -> str:
        """The name of a stride, in bytes."""
        ...

    def strided(self, array: str) -> DType | None:
        """The dtype of the elements of a strided array; None for another array."""
        ...

    def place(self, kind: str, axis: int) -> str:
        """The name of the number of a thread in its group, or of a group, along an axis."""
        ...

    def active(self, whole_warp: int) -> str:
        """The name of what tells iterations, or warps of so many with one, from lanes beyond."""
        ...


class _Text(NamedTuple):
    text: str
    level: int


class ExpressionWriter:
    """Writes expressions with the spellings of ``dialect`` and the names of ``lookup``.

    ``relaxed``: in a function where floats are regrouped that are not kept apart.
    """

    def __init__(self, dialect: Dialect, lookup: Lookup, *, relaxed: bool = False) -> None:
        self._dialect = dialect
        self._lookup = lookup
        self._relaxed = relaxed

    def keeps_apart(self, node: IRBinOp) -> bool:
        """Whether ``node`` must be kept from being regrouped with what is ``relaxed`` around it."""
        return self._relaxed and _typed(node).is_float and not node.relaxed

    def write(self, expression: Expression) -> str:
        """``expression`` as it stands on the right of an assignment or in a condition."""
        return self._text(expression, plain=True).text

    def converted(self, expression: Expression, type_name: str) -> str:
        """``expression`` cast to a type of the language."""
        return f"({type_name}){self._at(expression, UNARY, plain=True)}"

    def chosen(self, condition: Expression, one: str, other: str) -> str:
        """One of two texts of the language."""
        return f"{self._at(condition, OR)} ? {one} : {other}"

    def _text(self, node: Expression, plain: bool = False) -> _Text:
        return self._WRITERS[type(node)](self, node, plain)

    def _at(
        self, node: Expression, level: int, plain: bool = False, after_operator: bool = False
    ) -> str:
        """``node`` where an operand of at least ``level`` is needed."""
        text, own = self._text(node, plain)
        signed = after_operator and text.startswith(("-", "+"))
        return f"({text})" if own < level or signed else text

    # One method a kind; each gives the text and how tightly it binds.

    def _constant(self, node: IRConstant, plain: bool) -> _Text:
        dtype = _typed(node)
        if dtype.is_bool:
            return _Text("true" if node.value else "false", PRIMARY)
        if dtype.is_float:
            return self._float(float(node.value), dtype)
        value = int(node.value)
        if value == dtype.minimum and dtype.name in self._dialect.least:
            return _Text(self._dialect.least[dtype.name], PRIMARY)
        sign, level = ("-", UNARY) if value < 0 else ("", PRIMARY)
        digits = str(abs(value))
        if plain and dtype.kind == "uint" and value >= 1 << (self._dialect.int_bits - 1):
            return _Text(f"{digits}u", PRIMARY)
        form = "{}" if plain else self._dialect.integer_literal[dtype.name]
        return _Text(sign + form.format(digits), level)

    def _float(self, value: float, dtype: DType) -> _Text:
        if math.isnan(value):
            return _Text(self._dialect.not_a_number[dtype.name], PRIMARY)
        if math.isinf(value):
            text = self._dialect.infinity[dtype.name]
        else:
            text = decimal(abs(value), dtype) + self._dialect.float_suffix[dtype.name]
        negative = math.copysign(1.0, value) < 0
        return _Text(f"-{text}", UNARY) if negative else _Text(text, PRIMARY)

    def _name(self, node: IRName, plain: bool) -> _Text:
        return _Text(self._lookup.name(node.name), PRIMARY)

    def _group_index(self, node: IRGroupIndex, plain: bool) -> _Text:
        return _Text(self._lookup.place(node.kind, node.axis), PRIMARY)

    def _active(self, node: IRActive, plain: bool) -> _Text:
        return _Text(self._lookup.active(node.whole_warp), PRIMARY)

    def _dim_size(self, node: IRDimSize, plain: bool) -> _Text:
        return _Text(self._lookup.extent(node.array, node.dim), PRIMARY)

    def _stride(self, node: IRStride, plain: bool) -> _Text:
        return _Text(self._lookup.stride(node.array, node.dim), PRIMARY)

    def _load(self, node: IRArrayLoad, plain: bool) -> _Text:
        level = PRIMARY if self._lookup.strided(node.array) is None else UNARY
        return _Text(self.element(node.array, node.indices), level)

    def element(self, array: str, indices: list[Expression]) -> str:
        """The element of an array at its packed index, in elements or, if strided, in bytes."""
        dtype = self._lookup.strided(array)
        if dtype is None:
            return f"{self._lookup.name(array)}[{self.write(indices[0])}]"
        element = self._dialect.space + self._dialect.unaligned[dtype.name]
        return f"*({element} *){self._bytes(array, indices)}"

    def address(self, array: str, indices: list[Expression]) -> str:
        """The address of such an element, which is aligned."""
        dtype = self._lookup.strided(array)
        if dtype is None:
            return "&" + self.element(array, indices)
        element = self._dialect.space + self._dialect.type(dtype)
        return f"({element} *){self._bytes(array, indices)}"

    def _bytes(self, array: str, indices: list[Expression]) -> str:
        """The address of an element of a strided array, in bytes."""
        (index,) = indices
        name = self._lookup.name(array)
        if isinstance(index, IRConstant) and index.value == 0:
            return name
        return f"({name} + {self._at(index, ADD, after_operator=True)})"

    def _binary(self, node: IRBinOp, plain: bool) -> _Text:
        dtype = _typed(node)
        if node.op == "shl" and isinstance(node.left, IRConstant) and node.left.value < 0:
            return self._shift_of_negative(node, dtype)
        row = _OPERATORS[node.op]
        text = self._infix(row, node.op, node.left, node.right)
        if self.keeps_apart(node):
            return _Text(self._dialect.exact.format(text), PRIMARY)
        if self._dialect.is_narrow(dtype):
            return self._cast_text(f"({text})", dtype)
        return _Text(text, row.level)

    def _shift_of_negative(self, node: IRBinOp, dtype: DType) -> _Text:
        """``-1 << n`` goes through the unsigned type: compilers warn about the plain form."""
        unsigned = self._dialect.types[f"u{dtype.bits}"]
        left = self._at(node.left, UNARY, plain=True)
        count = self._at(node.right, UNARY, plain=True)
        return self._cast_text(f"(({unsigned}){left} << {count})", dtype)

    def _infix(self, row: _Operator, op: str, left: Expression, right: Expression) -> str:
        chained = op in _CHAINING and getattr(left, "op", None) == op
        left_level = (
            row.level if chained and not self._dialect.is_narrow(_typed(left)) else row.left
        )
        left_text = self._at(left, left_level, plain=op not in _SHIFTS and not _is_literal(right))
        right_text = self._at(
            right,
            ADD if _adds_up(op, left, right) else row.right,
            plain=op in _SHIFTS or not _is_literal(left),
            after_operator=row.level >= ADD,
        )
        if left_text.startswith("!") and BIT_OR <= row.level <= RELATION:  # else compilers warn
            left_text = f"({left_text})"
        return f"{left_text} {row.text} {right_text}"

    def _compare(self, node: IRCompare, plain: bool) -> _Text:
        row = _OPERATORS[node.op]
        return _Text(self._infix(row, node.op, node.left, node.right), row.level)

    def _logic(self, node: IRBoolOp, plain: bool) -> _Text:
        row = _OPERATORS[node.op]
        return _Text(self._infix(row, node.op, node.left, node.right), row.level)

    def _unary(self, node: IRUnaryOp, plain: bool) -> _Text:
        dtype = _typed(node)
        sign = "!" if node.op == "not" else node.op
        text = sign + self._at(node.operand, UNARY, after_operator=sign == "-")
        if self._dialect.is_narrow(dtype):
            return self._cast_text(text, dtype)
        return _Text(text, UNARY)

    def _conditional(self, node: IRIfExp, plain: bool) -> _Text:
        condition = self._text(node.condition)
        if condition.level in (CONDITIONAL, BIT_OR, BIT_XOR, BIT_AND):
            condition = _Text(f"({condition.text})", PRIMARY)
        then_plain = plain or not _is_literal(node.else_value)
        else_plain = plain or not _is_literal(node.then_value)
        then_text = self._at(node.then_value, OR, then_plain)
        else_text = self._at(node.else_value, CONDITIONAL, else_plain)
        return _Text(f"{condition.text} ? {then_text} : {else_text}", CONDITIONAL)

    def _call(self, node: IRCall, plain: bool) -> _Text:
        dtype = _typed(node)
        function = self._dialect.functions[node.function, dtype.name]
        arguments = ", ".join(self.write(argument) for argument in node.args)
        text = f"{function}({arguments})"
        # Functions of integers count bits, and give an int.
        return self._cast_text(text, dtype) if dtype.is_integer else _Text(text, PRIMARY)

    def _cast(self, node: IRCast, plain: bool) -> _Text:
        dtype, source = _typed(node), _typed(node.value)
        if dtype is source:
            return self._text(node.value, plain)
        function = self._dialect.conversions.get((source.name, dtype.name))
        if function is not None:
            return _Text(f"{function}({self.write(node.value)})", PRIMARY)
        return self._cast_text(self._at(node.value, UNARY, plain=True), dtype)

    def _bitcast(self, node: IRBitcast, plain: bool) -> _Text:
        dtype, source = _typed(node), _typed(node.value)
        if self._dialect.type(dtype) == self._dialect.type(source):
            return self._text(node.value, plain)
        function = self._dialect.bitcasts[source.name, dtype.name]
        return _Text(f"{function}({self.write(node.value)})", PRIMARY)

    def _cast_text(self, operand: str, dtype: DType) -> _Text:
        return _Text(f"({self._dialect.type(dtype)}){operand}", UNARY)

    _WRITERS: ClassVar[dict[type[Expression], Callable[[Any, Any, bool], _Text]]] = {
        IRConstant: _constant,
        IRName: _name,
        IRDimSize: _dim_size,
        IRGroupIndex: _group_index,
        IRActive: _active,
        IRStride: _stride,
        IRArrayLoad: _load,
        IRBinOp: _binary,
        IRCompare: _compare,
        IRBoolOp: _logic,
        IRUnaryOp: _unary,
        IRIfExp: _conditional,
        IRCall: _call,
        IRCast: _cast,
        IRBitcast: _bitcast,
    }


def _adds_up(op: str, left: Expression, right: Expression) -> bool:
    """Whether ``a + (b - c)`` is ``a + b - c``: of integers, which wrap, but not of floats.

    (Nor of two literals at the left, whose sum would be an ``int``.)
    """
    return (
        op == "+"
        and _typed(right).is_integer
        and isinstance(right, IRBinOp)
        and right.op in ("+", "-")
        and not _is_literal(left)
    )


def _typed(node: Expression) -> DType:
    """The dtype that every expression has from the typed stage on."""
    if node.dtype is None:
        raise TypeError(f"{type(node).__name__} has no dtype")
    return node.dtype


def _is_literal(node: Expression) -> bool:
    """Whether the plain text of ``node`` is made of literals, so that it may be an ``int``."""
    if isinstance(node, IRCast) and node.dtype is node.value.dtype:
        return _is_literal(node.value)
    if isinstance(node, IRIfExp):
        return _is_literal(node.then_value) and _is_literal(node.else_value)
    return isinstance(node, IRConstant)
