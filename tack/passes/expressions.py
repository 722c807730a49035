"""Typing of expressions, shared by ``infer`` (which wants the types) and ``type`` (the nodes).

Expressions are built anew and never changed in place, because an expression may be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRBinOp,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRDimSize,
    IRFunction,
    IRGroupIndex,
    IRIfExp,
    IRName,
    IRNode,
    IRTripCount,
    IRUnaryOp,
    IRWarpSize,
)
from tack.model.dtypes import DType, as_operand, bool_, f64, i64
from tack.model.errors import CompileError
from tack.passes import arithmetic
from tack.passes.lattice import (
    NEGATIVE_EXPONENT,
    Refusal,
    Rules,
    Type,
    Weak,
    is_float,
    is_integer,
    is_square,
)

__all__ = ["Typed", "Typer", "UntypedNameError", "truth"]


_WHOLE: Final = frozenset({"floor", "ceil", "trunc", "round"})
"""Builtins that give a whole number, which an integer is already."""


class UntypedNameError(CompileError):
    """A local whose type is not known yet; met by ``infer`` only."""


class Typed(NamedTuple):
    """A typed expression, which has the natural dtype of its type, and its type."""

    node: Expression
    type: Type


class Typer:
    """Types expressions of ``function``; ``names`` has the type of each name, or None."""

    def __init__(self, function: IRFunction, names: Mapping[str, Type | None]) -> None:
        self.rules = Rules(function.default_float)
        self._positions = function.positions
        self._names = names
        self._transparent = function.temporaries
        self._arrays = {name: array.dtype for name, array in function.arrays.items()}
        self._local = function.local_arrays.keys()
        self._place: IRNode = function

    def at(self, node: IRNode) -> None:
        """Says which statement is typed now, for messages about what has no position."""
        self._place = node

    def refuse(self, node: IRNode, message: str) -> CompileError:
        """The error that refuses ``node``, for the caller to raise."""
        located = node if self._positions.has(node) else self._place
        return self._positions.refuse(located, message)

    def element(self, array: str) -> DType:
        """The type of an array's elements."""
        dtype = self._arrays[array]
        assert dtype is not None
        return dtype

    def spoken(self, array: str) -> str:
        """An array's name as the source has it; a local of an inlined function carries a suffix."""
        return array.split(".", maxsplit=1)[0] if array in self._local else array

    def visit(self, node: Expression) -> Typed:
        """``node`` typed; `CompileError` for what the language refuses."""
        try:
            typed = self._VISITORS[type(node)](self, node)
        except Refusal as refusal:
            raise self.refuse(node, str(refusal)) from None
        self._positions.carry(node, typed.node)
        return typed

    def convert(self, typed: Typed, dtype: DType) -> Expression:
        """The expression converted to ``dtype``; a literal simply gets that type."""
        node, type_ = typed
        if isinstance(type_, Weak) and type_.value is not None:
            return self._carry(node, IRConstant(arithmetic.convert(type_.value, dtype), dtype))
        if node.dtype is dtype:
            return node
        if isinstance(node, IRConstant) and not dtype.is_bool:
            return self._carry(node, IRConstant(arithmetic.convert(node.value, dtype), dtype))
        assert node.dtype is not None
        operand = as_operand(node.dtype)  # what is only stored is widened before anything else
        if operand is not node.dtype:
            node = self._carry(node, IRCast(node, operand))
        if dtype.is_bool:
            return self._carry(node, truth(node))
        return node if operand is dtype else self._carry(node, IRCast(node, dtype))

    def settle(self, typed: Typed) -> Expression:
        """The expression at the type that it has where it meets no other."""
        return self._at(typed, typed.type)

    def condition(self, node: Expression) -> Expression:
        """The truth of ``node``."""
        return self.convert(self.visit(node), bool_)

    def index(self, node: Expression, what: str) -> Expression:
        """``node`` as an i64 index."""
        return self._integer(node, what, self.rules.index)

    def bound(self, node: Expression, what: str) -> Expression:
        """``node`` as an i64 bound of a loop."""
        return self._integer(node, what, self.rules.bound)

    def store(self, node: Expression, dtype: DType, what: str) -> Expression:
        """``node`` converted as a store to ``what`` converts."""
        typed = self.visit(node)
        try:
            self.rules.store(typed.type, dtype, what)
        except Refusal as refusal:
            raise self.refuse(node, str(refusal)) from None
        return self.convert(typed, dtype)

    def _integer(
        self, node: Expression, what: str, check: Callable[[Type, str], None]
    ) -> Expression:
        typed = self.visit(node)
        try:
            check(typed.type, what)
        except Refusal as refusal:
            raise self.refuse(node, str(refusal)) from None
        return self.convert(typed, i64)

    def _carry(self, old: Expression, new: Expression) -> Expression:
        return self._positions.carry(old, new)

    def _at(self, typed: Typed, type_: Type) -> Expression:
        """An operand that is taken at ``type_``."""
        return self.convert(typed, self.rules.natural(type_))

    # Kinds, one method each.

    def _constant(self, node: IRConstant) -> Typed:
        value = node.value
        if not node.weak:
            assert node.dtype is not None
            return Typed(IRConstant(value, node.dtype), node.dtype)
        if isinstance(value, float):
            return Typed(IRConstant(value, f64), Weak(True, literal=True))
        return self._literal(int(value))

    def _literal(self, value: int) -> Typed:
        """An integer literal. Only its type counts: `convert` makes its constant."""
        held = i64.wrap(value)
        return Typed(IRConstant(held, i64), Weak(False, value, value, literal=True))

    def _name(self, node: IRName) -> Typed:
        type_ = self._names.get(node.name)
        if type_ is None:
            raise UntypedNameError(f"the type of {node.name!r} is not known")
        read = type_
        if isinstance(type_, Weak) and node.name not in self._transparent:
            read = type_.loaded()
        return Typed(IRName(node.name, self.rules.natural(read)), read)

    def _binary(self, node: IRBinOp) -> Typed:
        left, right = self.visit(node.left), self.visit(node.right)
        if (
            node.op == "**"
            and is_integer(left.type)
            and isinstance(right.type, Weak)
            and right.type.value is not None
            and right.type.value < 0
        ):
            raise self.refuse(node.right, NEGATIVE_EXPONENT)
        left_at, right_at, result = self.rules.binary(node.op, left.type, right.type)
        if isinstance(result, Weak) and result.value is not None:
            return self._literal(result.value)
        operands = self._at(left, left_at), self._at(right, right_at)
        dtype = self.rules.natural(result)
        if node.op == "**" and is_float(result) and not is_square(right.type):
            return Typed(IRCall("pow", list(operands), dtype), result)
        return Typed(IRBinOp(node.op, *operands, dtype), result)

    def _unary(self, node: IRUnaryOp) -> Typed:
        if node.op == "not":
            return Typed(IRUnaryOp("not", self.condition(node.operand), bool_), bool_)
        operand = self.visit(node.operand)
        result = self.rules.unary(node.op, operand.type)
        if isinstance(result, Weak) and result.value is not None:
            return self._literal(result.value)
        dtype = self.rules.natural(result)
        return Typed(IRUnaryOp(node.op, self.convert(operand, dtype), dtype), result)

    def _compare(self, node: IRCompare) -> Typed:
        left, right = self.visit(node.left), self.visit(node.right)
        dtype = self.rules.compared(left.type, right.type)
        operands = self.convert(left, dtype), self.convert(right, dtype)
        return Typed(IRCompare(node.op, *operands, bool_), bool_)

    def _bool(self, node: IRBoolOp) -> Typed:
        operands = self.condition(node.left), self.condition(node.right)
        return Typed(IRBoolOp(node.op, *operands, bool_), bool_)

    def _choice(self, node: IRIfExp) -> Typed:
        condition = self.condition(node.condition)
        one, other = self.visit(node.then_value), self.visit(node.else_value)
        type_ = self.rules.meet(one.type, other.type)
        dtype = self.rules.natural(type_)
        values = self.convert(one, dtype), self.convert(other, dtype)
        return Typed(IRIfExp(condition, *values, dtype), type_)

    def _call(self, node: IRCall) -> Typed:
        args = [self.visit(arg) for arg in node.args]
        operands, result = self.rules.call(node.function, [arg.type for arg in args])
        converted = [self._at(arg, operands) for arg in args]
        if node.function in _WHOLE and is_integer(operands):
            return Typed(converted[0], result)
        return Typed(IRCall(node.function, converted, self.rules.natural(result)), result)

    def _cast(self, node: IRCast) -> Typed:
        dtype = self.rules.default_float if node.dtype is None else node.dtype
        return Typed(self.convert(self.visit(node.value), dtype), dtype)

    def _dim_size(self, node: IRDimSize) -> Typed:
        return Typed(IRDimSize(node.array, node.dim, i64), i64)

    def _load(self, node: IRArrayLoad) -> Typed:
        dtype = self.element(node.array)
        what = f"an index of {self.spoken(node.array)}"
        indices = [self.index(index, what) for index in node.indices]
        return Typed(IRArrayLoad(node.array, indices, dtype, node.flat), dtype)

    def _group_index(self, node: IRGroupIndex) -> Typed:
        return Typed(IRGroupIndex(node.kind, node.axis, i64), i64)

    def _warp_size(self, _: IRWarpSize) -> Typed:
        return Typed(IRWarpSize(i64), i64)

    def _trip_count(self, node: IRTripCount) -> Typed:
        start, end, step = (
            self.bound(argument, "an argument of range")
            for argument in (node.start, node.end, node.step)
        )
        return Typed(IRTripCount(start, end, step, i64), i64)

    _VISITORS: ClassVar[dict[type[IRNode], Callable[..., Typed]]] = {
        IRConstant: _constant,
        IRName: _name,
        IRBinOp: _binary,
        IRUnaryOp: _unary,
        IRCompare: _compare,
        IRBoolOp: _bool,
        IRIfExp: _choice,
        IRCall: _call,
        IRCast: _cast,
        IRDimSize: _dim_size,
        IRArrayLoad: _load,
        IRGroupIndex: _group_index,
        IRWarpSize: _warp_size,
        IRTripCount: _trip_count,
    }


def truth(node: Expression) -> Expression:
    """``node`` as a bool: whether it is not zero (NaN is not)."""
    dtype = node.dtype
    assert dtype is not None
    if dtype.is_bool:
        return node
    if isinstance(node, IRConstant):
        return IRConstant(node.value != 0, bool_)
    return IRCompare("!=", node, IRConstant(0.0 if is_float(dtype) else 0, dtype), bool_)
