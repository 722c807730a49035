"""Expressions of decomposed IR as LLVM values.

Every value has the type of its dtype (`tack.render.llvm_code.value_type`); nothing is promoted, so
that each instruction rounds and wraps at the very type that the IR says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from llvmlite import ir

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRDimSize,
    IRIfExp,
    IRName,
    IRStride,
    IRUnaryOp,
)
from tack.ir.traversal import children
from tack.model.dtypes import DType
from tack.render.llvm_code import BOOL, Code, value_type
from tack.render.llvm_dialect import BINARY, FLAGGED, FUNCTIONS, RELAXED, conversion

__all__ = ["Bindings", "ExpressionWriter", "typed"]


@dataclass(slots=True)
class Bindings:
    """What the names of a kernel stand for.

    ``values``: scalars, arrays, loop indices, and locals that are set once. ``places``: the memory
    of locals that change. ``extents`` and ``strides``: by array and dimension. ``strided``: the
    arrays that have any strides and alignment.
    """

    values: dict[str, ir.Value] = field(default_factory=dict)
    places: dict[str, ir.Value] = field(default_factory=dict)
    extents: dict[tuple[str, int], ir.Value] = field(default_factory=dict)
    strides: dict[tuple[str, int], ir.Value] = field(default_factory=dict)
    strided: frozenset[str] = frozenset()

    def alignment(self, array: str) -> int | None:
        """To how many bytes an array's elements are aligned, None for their size."""
        return 1 if array in self.strided else None


class ExpressionWriter:
    """Appends the instructions of expressions to ``code``."""

    def __init__(self, code: Code, bindings: Bindings) -> None:
        self._code = code
        self._builder = code.builder
        self._bindings = bindings

    def value(self, node: Expression) -> ir.Value:
        """The value of ``node``, computed here."""
        return self._WRITERS[type(node)](self, node)

    def address(self, array: str, indices: list[Expression], dtype: DType) -> ir.Value:
        """The address of the element of an array at its packed index."""
        (index,) = indices
        if array in self._bindings.strided:
            return self._code.byte(self._bindings.values[array], self.value(index))
        return self._code.element(self._bindings.values[array], self.value(index), dtype)

    # One method a kind.

    def _constant(self, node: IRConstant) -> ir.Value:
        dtype = typed(node)
        value = float(node.value) if dtype.is_float else int(node.value)
        return ir.Constant(value_type(dtype), value)

    def _name(self, node: IRName) -> ir.Value:
        known = self._bindings.values.get(node.name)
        if known is not None:
            return known
        return self._builder.load(self._bindings.places[node.name], typ=value_type(typed(node)))

    def _dim_size(self, node: IRDimSize) -> ir.Value:
        return self._bindings.extents[node.array, node.dim]

    def _stride(self, node: IRStride) -> ir.Value:
        return self._bindings.strides[node.array, node.dim]

    def _load(self, node: IRArrayLoad) -> ir.Value:
        dtype = typed(node)
        address = self.address(node.array, node.indices, dtype)
        return self._code.load(address, dtype, self._bindings.alignment(node.array))

    def _binary(self, node: IRBinOp) -> ir.Value:
        instruction = getattr(self._builder, BINARY[typed(node).kind][node.op])
        flags = RELAXED if node.relaxed else ()
        return instruction(self.value(node.left), self.value(node.right), flags=flags)

    def _unary(self, node: IRUnaryOp) -> ir.Value:
        operand = self.value(node.operand)
        if node.op == "-":
            negate = self._builder.fneg if typed(node).is_float else self._builder.neg
            return negate(operand)
        return self._builder.not_(operand)

    def _compare(self, node: IRCompare) -> ir.Value:
        """NaN compares false, but for ``!=``."""
        dtype = typed(node.left)
        if dtype.is_float:
            ordered = node.op != "!="
            compare = self._builder.fcmp_ordered if ordered else self._builder.fcmp_unordered
        else:
            compare = self._builder.icmp_signed if dtype.is_signed else self._builder.icmp_unsigned
        return compare(node.op, self.value(node.left), self.value(node.right))

    def _call(self, node: IRCall) -> ir.Value:
        arguments = [self.value(argument) for argument in node.args]
        if node.function == "fmod":
            return self._builder.frem(*arguments)
        dtype = typed(node)
        name, kind = FUNCTIONS[node.function, dtype.name], value_type(dtype)
        module = self._builder.module
        function = module.globals.get(name)
        if node.function in FLAGGED:
            arguments.append(ir.Constant(BOOL, 0))
        if function is None:
            types = [argument.type for argument in arguments]
            function = ir.Function(module, ir.FunctionType(kind, types), name)
        return self._builder.call(function, arguments)

    def _cast(self, node: IRCast) -> ir.Value:
        value, dtype = self.value(node.value), typed(node)
        instruction = conversion(typed(node.value), dtype)
        if instruction is None:
            return value
        convert = getattr(self._builder, instruction)
        return convert(value, value_type(dtype))

    def _bitcast(self, node: IRBitcast) -> ir.Value:
        value, kind = self.value(node.value), value_type(typed(node))
        return value if value.type == kind else self._builder.bitcast(value, kind)

    # What evaluates only a part of its operands.

    def _logic(self, node: IRBoolOp) -> ir.Value:
        left = self.value(node.left)
        settled = ir.Constant(BOOL, int(node.op == "or"))
        if _may_come_early(node.right):
            right = self.value(node.right)
            if node.op == "or":
                return self._builder.select(left, settled, right)
            return self._builder.select(left, right, settled)
        more, done = self._code.block(node.op), self._code.block(f"{node.op}_done")
        settling = self._builder.block
        branches = (done, more) if node.op == "or" else (more, done)
        self._builder.cbranch(left, *branches)
        self._code.enter(more)
        right = self.value(node.right)
        return self._join(done, [(settled, settling)], right)

    def _choice(self, node: IRIfExp) -> ir.Value:
        condition = self.value(node.condition)
        if _may_come_early(node.then_value) and _may_come_early(node.else_value):
            one, other = self.value(node.then_value), self.value(node.else_value)
            return self._builder.select(condition, one, other)
        then, otherwise, done = (self._code.block(part) for part in ("one", "other", "chosen"))
        self._builder.cbranch(condition, then, otherwise)
        self._code.enter(then)
        one = self.value(node.then_value)
        incoming = [(one, self._builder.block)]
        self._builder.branch(done)
        self._code.enter(otherwise)
        return self._join(done, incoming, self.value(node.else_value))

    def _join(
        self, done: ir.Block, incoming: list[tuple[ir.Value, ir.Block]], last: ir.Value
    ) -> ir.Value:
        """Goes on in ``done``, whose value is ``last`` or that of the block it is entered from."""
        incoming = [*incoming, (last, self._builder.block)]
        self._builder.branch(done)
        self._code.enter(done)
        joined = self._builder.phi(last.type)
        for value, block in incoming:
            joined.add_incoming(value, block)
        return joined

    _WRITERS: ClassVar[dict[type[Expression], Callable[[Any, Any], ir.Value]]] = {
        IRConstant: _constant,
        IRName: _name,
        IRDimSize: _dim_size,
        IRStride: _stride,
        IRArrayLoad: _load,
        IRBinOp: _binary,
        IRCompare: _compare,
        IRBoolOp: _logic,
        IRUnaryOp: _unary,
        IRIfExp: _choice,
        IRCall: _call,
        IRCast: _cast,
        IRBitcast: _bitcast,
    }


def typed(node: Expression) -> DType:
    """The dtype that every expression has from the typed stage on."""
    if node.dtype is None:
        raise TypeError(f"{type(node).__name__} has no dtype")
    return node.dtype


_FEW: Final = 8
"""Up to how many nodes are evaluated for nothing rather than branched around."""


def _may_come_early(node: Expression) -> bool:
    """Whether evaluating ``node`` where it is not asked for does no harm, and costs little.

    An undefined cast or shift does no harm: its value is not chosen.
    """
    seen: list[Any] = [node]
    for each in seen:
        if len(seen) > _FEW or _must_wait(each):
            return False
        seen.extend(child for _, child in children(each))
    return True


def _must_wait(node: Expression) -> bool:
    """Whether a node itself may fault, or costs much."""
    if isinstance(node, IRBinOp) and node.op in ("cdiv", "cmod"):
        return not isinstance(node.right, IRConstant)
    return isinstance(node, IRArrayLoad) or (isinstance(node, IRCall) and node.function == "fmod")
