"""host: the extents of the parallel loop as a host program.

The program is a postfix list over a stack of 64-bit integers (`tack.model.launch.HOST_OPS`). Its
operations have the semantics of the kernel language, hazards included, so that typed IR is
translated node by node and nothing is guarded here. Its expressions have no effects and always
end, so that ``and``, ``or`` and the conditional expression may evaluate all their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tack.ir.nodes import (
    Expression,
    IRBinOp,
    IRBoolOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRDimSize,
    IRFunction,
    IRIfExp,
    IRName,
    IRNode,
    IRTripCount,
    IRUnaryOp,
    dtype_of,
)
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import i64
from tack.model.errors import CompileError
from tack.model.launch import HostOp
from tack.passes.pack import Layout

__all__ = ["host_program"]

_BINARY: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "//": "floordiv",
    "%": "mod",
    "<<": "shl",
    ">>": "shr",
    "&": "and",
    "|": "or",
    "^": "xor",
    "and": "and",
    "or": "or",
}

_COMPARE: Final = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
_MIRRORED: Final = {">": "<", ">=": "<="}

_GREATEST_POWER: Final = 64
"""Beyond this exponent a power is refused: the program multiplies it out."""


def host_program(
    function: IRFunction, extents: Sequence[Expression], layout: Layout
) -> tuple[HostOp, ...]:
    """The program that computes ``extents``, which are typed and not decomposed.

    `CompileError` points at what the host cannot compute.
    """
    return tuple(_Host(function, layout).program(extents))


class _Host:
    def __init__(self, function: IRFunction, layout: Layout) -> None:
        self.positions = function.positions
        self.place: IRNode = kernel_loop(function)
        self.layout = layout
        self.numbers = {param.name: k for k, param in enumerate(function.params)}

    def program(self, extents: Sequence[Expression]) -> Iterator[HostOp]:
        for number, extent in enumerate(extents):
            if self.positions.has(extent):
                self.place = extent
            yield from self.push(extent)
            yield ("loop", number)

    def push(self, node: Expression) -> Iterator[HostOp]:
        """The operations that leave the value of ``node`` on the stack."""
        if node.dtype is not None and node.dtype.is_float:
            raise self.refuse(node, "it is a float; bounds are integers, and // stays among them")
        yield from _TRANSLATORS[type(node)](self, node)

    def refuse(self, node: Expression, reason: str) -> CompileError:
        place = node if self.positions.has(node) else self.place
        return self.positions.refuse(place, f"the host cannot compute this bound: {reason}")

    def constant(self, node: IRConstant) -> Iterator[HostOp]:
        yield ("const", i64.wrap(int(node.value)))

    def name(self, node: IRName) -> Iterator[HostOp]:
        dtype = dtype_of(node)
        slot = self.layout.position("scalar", self.numbers[node.name], dtype.name)
        yield ("slot", slot, dtype.name)

    def dim_size(self, node: IRDimSize) -> Iterator[HostOp]:
        slot = self.layout.position("extent", self.numbers[node.array], node.dim)
        yield ("slot", slot, i64.name)

    def binary(self, node: IRBinOp | IRBoolOp) -> Iterator[HostOp]:
        if node.op == "**":
            yield from self.power(node)
            return
        yield from self.push(node.left)
        yield from self.push(node.right)
        yield (_BINARY[node.op], dtype_of(node).name)

    def power(self, node: IRBinOp | IRBoolOp) -> Iterator[HostOp]:
        """A literal power, multiplied out."""
        exponent = node.right.value if isinstance(node.right, IRConstant) else -1
        if not 0 <= exponent <= _GREATEST_POWER:
            raise self.refuse(
                node,
                f"an exponent is a literal from 0 to {_GREATEST_POWER}; write 1 << n for 2 ** n",
            )
        yield ("const", 1)
        for _ in range(int(exponent)):
            yield from self.push(node.left)
            yield ("mul", dtype_of(node).name)

    def compare(self, node: IRCompare) -> Iterator[HostOp]:
        mirrored = node.op in _MIRRORED
        first, second = (node.right, node.left) if mirrored else (node.left, node.right)
        yield from self.push(first)
        yield from self.push(second)
        yield (_COMPARE[_MIRRORED.get(node.op, node.op)], dtype_of(node.left).name)

    def unary(self, node: IRUnaryOp) -> Iterator[HostOp]:
        yield from self.push(node.operand)
        dtype = dtype_of(node).name
        yield ("not",) if node.op == "not" else ({"-": "neg", "~": "invert"}[node.op], dtype)

    def conditional(self, node: IRIfExp) -> Iterator[HostOp]:
        yield from self.push(node.condition)
        yield from self.push(node.then_value)
        yield from self.push(node.else_value)
        yield ("select",)

    def call(self, node: IRCall) -> Iterator[HostOp]:
        if node.function not in ("abs", "min", "max"):
            raise self.refuse(
                node, f"it calls {node.function}; of builtins it has abs, min and max"
            )
        for argument in node.args:
            yield from self.push(argument)
        yield (node.function, dtype_of(node).name)

    def cast(self, node: IRCast) -> Iterator[HostOp]:
        yield from self.push(node.value)
        yield ("cast", dtype_of(node).name)

    def trip_count(self, node: IRTripCount) -> Iterator[HostOp]:
        for part in (node.start, node.end, node.step):
            yield from self.push(part)
        yield ("range",)


_TRANSLATORS: Final[dict[type[Expression], Callable[[_Host, Any], Iterator[HostOp]]]] = {
    IRConstant: _Host.constant,
    IRName: _Host.name,
    IRDimSize: _Host.dim_size,
    IRBinOp: _Host.binary,
    IRBoolOp: _Host.binary,
    IRCompare: _Host.compare,
    IRUnaryOp: _Host.unary,
    IRIfExp: _Host.conditional,
    IRCall: _Host.call,
    IRCast: _Host.cast,
    IRTripCount: _Host.trip_count,
}
