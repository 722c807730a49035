"""wide_integers: 64-bit integers as pairs of 32-bit words, for a target that does not compute them.

A local of 64 bits becomes two of 32, and so does every value on the way. What has 64 bits still
only moves: elements, parameters, indices and what loops count are taken apart by a cast and a
shift, and put together by a shift and an ``or`` (`taken_apart`, `put_together`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tack.ir.nodes import (
    Expression,
    IRAssign,
    IRBinOp,
    IRCall,
    IRCast,
    IRCompare,
    IRConstant,
    IRFunction,
    IRIf,
    IRIfExp,
    IRName,
    IRUnaryOp,
    Statement,
)
from tack.ir.traversal import kernel_loop, set_name, statements_of
from tack.model.dtypes import DType, i64, u32, u64
from tack.passes.build import cast, constant, dtype_of, operate
from tack.passes.decompose import Block, Decomposer
from tack.passes.localize import localize
from tack.passes.word_pairs import (
    BINARY,
    COUNTS,
    ZERO,
    Pair,
    chosen,
    compared,
    from_float,
    negated,
    sign_word,
    to_float,
)

__all__ = ["pair_words", "put_together", "taken_apart"]


def pair_words(function: IRFunction) -> IRFunction | None:
    """Computes 64-bit integers of a decomposed function in words, in place; None without any."""
    loop, words = kernel_loop(function), _Words(function)
    loop.body = words.body(loop.body)
    return localize(function) if words.changed else None


def _is_wide(node: Expression) -> bool:
    return node.dtype is i64 or node.dtype is u64


def taken_apart(value: Expression) -> Pair:
    """The words of something of 64 bits that is read again at no cost."""
    bits = cast(value, u64)
    return Pair(cast(bits, u32), cast(operate("shr", bits, constant(32, u64)), u32))


def put_together(words: Pair, dtype: DType) -> Expression:
    """What has these words."""
    upper = operate("shl", cast(words.high, u64), constant(32, u64))
    return cast(operate("|", upper, cast(words.low, u64)), dtype)


class _Words(Decomposer):
    """Rewrites one function."""

    def __init__(self, function: IRFunction) -> None:
        super().__init__(function)
        kept = {
            set_name(node) for node in statements_of(function) if not isinstance(node, IRAssign)
        }
        self.changed, out = False, self.block()
        self.words = {
            name: (out.local(u32, f"{name}.low"), out.local(u32, f"{name}.high"))
            for name, dtype in list(function.locals.items())
            if dtype in (i64, u64) and name not in kept
        }

    def rewritten(self, node: Statement, out: Block) -> list[Statement]:
        """An assignment to a local of 64 bits becomes two."""
        if not isinstance(node, IRAssign) or node.target not in self.words:
            return super().rewritten(node, out)
        low, high = self.words[node.target]
        value = self.pair(node.value, out)
        upper = out.freeze(value.high, {low.name})
        out.assign(low, value.low)
        out.assign(high, upper)
        return []

    def expression(self, node: Expression, out: Block) -> Expression:
        """Of 64 bits what was computed in words, put together; else as it was."""
        if isinstance(node, IRCompare) and _is_wide(node.left):
            pairs = self.pair(node.left, out), self.pair(node.right, out)
            return compared(node.op, *pairs, dtype_of(node.left))
        if isinstance(node, IRCast) and _is_wide(node.value) and not _is_wide(node):
            return self.narrowed(node, out)
        computed = type(node) in _COMPUTED or (isinstance(node, IRName) and node.name in self.words)
        if not (computed and _is_wide(node)):
            return super().expression(node, out)
        return put_together(self.pair(node, out), dtype_of(node))

    def expansion(self, node: Expression) -> None:
        """Nothing that only moves is expanded."""

    def narrowed(self, node: IRCast, out: Block) -> Expression:
        """A number of 64 bits as a narrower one or a float."""
        dtype, source = dtype_of(node), dtype_of(node.value)
        words = self.pair(node.value, out)
        if dtype.is_float:
            return to_float(words, dtype, source, out.hold)
        return cast(words.low, dtype)

    def pair(self, node: Expression, out: Block) -> Pair:
        """The words of an expression of 64 bits, each read again at no cost."""
        self.changed = True
        low, high = _PAIRS.get(type(node), _Words.moved)(self, node, out)
        return Pair(out.hold(low), out.hold(high))

    def of_constant(self, node: IRConstant, out: Block) -> Pair:
        value = int(node.value)
        return Pair(constant(value & 0xFFFFFFFF, u32), constant((value >> 32) & 0xFFFFFFFF, u32))

    def of_name(self, node: IRName, out: Block) -> Pair:
        words = self.words.get(node.name)
        return self.moved(node, out) if words is None else Pair(*words)

    def moved(self, node: Expression, out: Block) -> Pair:
        """Of what only moves: an element, a parameter, an extent, what a loop counts."""
        return taken_apart(out.hold(super().expression(node, out)))

    def of_binary(self, node: IRBinOp, out: Block) -> Pair:
        pairs = self.pair(node.left, out), self.pair(node.right, out)
        return BINARY[node.op](*pairs, dtype_of(node), out)

    def of_unary(self, node: IRUnaryOp, out: Block) -> Pair:
        a = self.pair(node.operand, out)
        if node.op == "-":
            return negated(a, out.hold)
        return Pair(IRUnaryOp("~", a.low, u32), IRUnaryOp("~", a.high, u32))

    def of_count(self, node: IRCall, out: Block) -> Pair:
        return Pair(COUNTS[node.function](self.pair(node.args[0], out)), ZERO)

    def of_cast(self, node: IRCast, out: Block) -> Pair:
        source = dtype_of(node.value)
        if _is_wide(node.value):
            return self.pair(node.value, out)
        value = self.expression(node.value, out)
        if source.is_float:
            return from_float(out.hold(value), dtype_of(node), out.hold)
        low = out.hold(cast(value, u32))
        return Pair(low, sign_word(low, source))

    def choice_of(self, node: IRIfExp, out: Block) -> Pair:
        """A choice: what a side needs stands in its branch."""
        condition = out.hold(self.expression(node.condition, out))
        one, other = self.block(), self.block()
        pairs = self.pair(node.then_value, one), self.pair(node.else_value, other)
        if not one.statements and not other.statements:
            return chosen(condition, *pairs)
        result = out.local(u32), out.local(u32)
        for block, pair in zip((one, other), pairs, strict=True):
            for target, word in zip(result, pair, strict=True):
                block.assign(target, word)
        out.statements.append(IRIf(condition, one.statements, other.statements))
        return Pair(*result)


_COMPUTED: Final = frozenset({IRBinOp, IRCall, IRCast, IRIfExp, IRUnaryOp})
"""The kinds that compute; others of 64 bits move."""

_PAIRS: Final[dict[type[Expression], Callable[[Any, Any, Block], Pair]]] = {
    IRConstant: _Words.of_constant,
    IRName: _Words.of_name,
    IRBinOp: _Words.of_binary,
    IRUnaryOp: _Words.of_unary,
    IRCall: _Words.of_count,
    IRCast: _Words.of_cast,
    IRIfExp: _Words.choice_of,
}
"""Kind -> its words; of the others, which only move, `_Words.moved`."""
