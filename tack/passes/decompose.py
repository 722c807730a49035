"""decompose: operations that C leaves undefined, or has not, become guarded IR.

Operands that are read more than once are evaluated into temporaries, in statements before the one
that needs them and inside the guard of what they belong to: ``and``, ``or`` and the conditional
expression become an ``if`` where what they guard needs statements, and a ``while`` whose condition
does becomes ``while True`` with a ``break``. Expressions are pure and no store stands between, so
that what is read earlier within one statement reads the same.

The extents of the parallel loop stay as they are: the host has all of these operations.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBarrier,
    IRBinOp,
    IRBoolOp,
    IRBreak,
    IRCall,
    IRCast,
    IRConstant,
    IRContinue,
    IRDimSize,
    IRFunction,
    IRIf,
    IRIfExp,
    IRLocalArray,
    IRMma,
    IRName,
    IRNode,
    IRPrint,
    IRSequentialFor,
    IRWhile,
    Statement,
)
from tack.ir.operations import ELEMENTARY, RANDOM
from tack.ir.traversal import LIST_ROLES, assigned_names, child_fields, kernel_loop, walk_ir
from tack.model.dtypes import DType, bool_
from tack.passes import float_hazards, integer_hazards
from tack.passes.build import constant, dtype_of, negate
from tack.passes.composed import COMPOSED
from tack.passes.float_hazards import pick
from tack.passes.intervals import Intervals
from tack.passes.localize import localize
from tack.passes.loops import counted_loop
from tack.passes.powers import power
from tack.passes.transcendental import elementary, random_number

__all__ = ["Block", "Decomposer", "decompose"]

_CHEAP: Final = (IRName, IRConstant, IRDimSize)
"""What may be read again instead of being held."""


def decompose(
    function: IRFunction, *, native: Container[tuple[str, str]] = (), finite: bool = False
) -> IRFunction:
    """Expands every hazard of ``function``, in place.

    Elementary functions that are ``native``, (function, name of a type), stay. ``finite`` says that
    no operand of ``min`` or ``max`` need be taken for a NaN.
    """
    loop = kernel_loop(function)
    loop.body = Decomposer(function, native=native, finite=finite).body(loop.body)
    return localize(function)


class Block:
    """A statement list being written, and the temporaries it needs."""

    def __init__(self, function: IRFunction, names: set[str]) -> None:
        self._function = function
        self._names = names
        self.statements: list[Statement] = []

    def inner(self) -> Block:
        """A block inside this one."""
        return Block(self._function, self._names)

    def local(self, dtype: DType, stem: str = "t") -> IRName:
        """A new local."""
        number = len(self._names) + 1
        while f"{stem}.{number}" in self._names:
            number += 1
        name = f"{stem}.{number}"
        self._names.add(name)
        self._function.locals[name] = dtype
        return IRName(name, dtype)

    def assign(self, target: IRName, value: Expression) -> None:
        """Appends ``target = value``."""
        self.statements.append(IRAssign(target.name, value, target.dtype))

    def hold(self, value: Expression) -> Expression:
        """What reads ``value``, which is evaluated once, here."""
        return value if isinstance(value, _CHEAP) else self.evaluate(value)

    def evaluate(self, value: Expression) -> IRName:
        """A new local that is ``value``."""
        name = self.local(dtype_of(value))
        self.assign(name, value)
        return name

    def freeze(self, value: Expression, changed: set[str]) -> Expression:
        """What reads the value that ``value`` has here while the names in ``changed`` change."""
        if isinstance(value, IRName) and value.name in changed:
            return self.evaluate(value)
        return self.hold(value)


class Decomposer:
    """Rewrites the statements of one function; a subclass has other expressions to expand."""

    def __init__(
        self,
        function: IRFunction,
        *,
        native: Container[tuple[str, str]] = (),
        finite: bool = False,
    ) -> None:
        self.function = function
        self.native = native
        self.finite = finite
        self.names = {param.name for param in function.params} | set(function.locals)
        self.intervals = Intervals(function)

    def block(self) -> Block:
        """A new block."""
        return Block(self.function, self.names)

    def body(self, statements: list[Statement]) -> list[Statement]:
        """A statement list with what each statement needs in front of it."""
        out = self.block()
        for statement in statements:
            following = self.rewritten(statement, out)
            out.statements.extend(following)
        return out.statements

    def rewritten(self, node: Statement, out: Block) -> list[Statement]:
        """What stands for a statement, after what is written to ``out``."""
        self.statement(node, out)
        return [node]

    def statement(self, node: Statement, out: Block) -> None:
        """Rewrites a statement in place; what must come first is written to ``out``."""
        _STATEMENTS[type(node)](self, node, out)

    # Statements. Each writes what must come first to `out`; the statement itself follows.

    def assign(self, node: IRAssign, out: Block) -> None:
        """An assignment."""
        node.value = self.expression(node.value, out)

    def store(self, node: IRArrayStore, out: Block) -> None:
        """A store."""
        node.value = self.expression(node.value, out)
        node.indices = [self.expression(index, out) for index in node.indices]

    def atomic(self, node: IRAtomic, out: Block) -> None:
        """An atomic."""
        node.indices = [self.expression(index, out) for index in node.indices]
        if node.compare is not None:
            node.compare = self.expression(node.compare, out)
        node.value = self.expression(node.value, out)

    def print_(self, node: IRPrint, out: Block) -> None:
        """A print."""
        node.values = [self.expression(value, out) for value in node.values]

    def branch(self, node: IRIf, out: Block) -> None:
        """A branch."""
        node.condition = self.expression(node.condition, out)
        node.then_body = self.body(node.then_body)
        node.else_body = self.body(node.else_body)

    def while_loop(self, node: IRWhile, out: Block) -> None:
        """A loop with a condition."""
        first = self.block()
        condition = self.expression(node.condition, first)
        body = self.body(node.body)
        if first.statements:
            leave = IRIf(negate(condition), [IRBreak()])
            node.condition = constant(1, bool_)
            node.body = [*first.statements, leave, *body]
        else:
            node.condition, node.body = condition, body

    def for_loop(self, node: IRSequentialFor, out: Block) -> None:
        """A loop over numbers, of which only steps of 1 remain."""
        node.start = self.expression(node.start, out)
        node.end = self.expression(node.end, out)
        node.step = self.expression(node.step, out)
        node.body = self.body(node.body)
        if not (isinstance(node.step, IRConstant) and node.step.value == 1):
            changed = {node.var, *assigned_names(node.body)}
            node.start = out.freeze(node.start, changed)
            node.end = out.hold(node.end)
            node.step = out.freeze(node.step, changed)
            counted_loop(node, out, self.intervals)

    def nothing(self, node: Statement, out: Block) -> None:
        """A statement without expressions."""

    # Expressions. Children first; what a guard guards is written to a block of its own.

    def expression(self, node: Expression, out: Block) -> Expression:
        """``node`` expanded; what must come first is written to ``out``."""
        if isinstance(node, _CHEAP):
            return node
        if isinstance(node, IRBoolOp):
            return self.logic(node, out)
        if isinstance(node, IRIfExp):
            return self.choice(node, out)
        expand = self.expansion(node)
        for name, role in child_fields(node):
            value = getattr(node, name)
            if role in LIST_ROLES:
                setattr(node, name, [self.expression(child, out) for child in value])
            else:
                setattr(node, name, self.expression(value, out))
        return node if expand is None else expand(out)

    def logic(self, node: IRBoolOp, out: Block) -> Expression:
        """``and`` or ``or``: what the right operand needs stands behind the left one."""
        node.left = self.expression(node.left, out)
        inner = self.block()
        right = self.expression(node.right, inner)
        if not inner.statements:
            node.right = right
            return node
        result = out.local(bool_)
        out.assign(result, node.left)
        inner.assign(result, right)
        condition = result if node.op == "and" else negate(result)
        out.statements.append(IRIf(condition, inner.statements))
        return result

    def choice(self, node: IRIfExp, out: Block) -> Expression:
        """A conditional expression: what a branch needs stands in that branch."""
        node.condition = self.expression(node.condition, out)
        one, other = self.block(), self.block()
        node.then_value = self.expression(node.then_value, one)
        node.else_value = self.expression(node.else_value, other)
        if not one.statements and not other.statements:
            return node
        result = out.local(dtype_of(node))
        one.assign(result, node.then_value)
        other.assign(result, node.else_value)
        out.statements.append(IRIf(node.condition, one.statements, other.statements))
        return result

    def expansion(self, node: Expression) -> Callable[[Block], Expression] | None:
        """How ``node`` is expanded once its children are, or None.

        Ranges are read off the children as they are now, before they are expanded themselves.
        """
        if isinstance(node, IRBinOp):
            return self.binary(node)
        if isinstance(node, IRCall):
            return self.call(node)
        if isinstance(node, IRCast) and dtype_of(node.value).is_float:
            dtype = dtype_of(node)
            if dtype.is_integer:
                return lambda out: float_hazards.to_integer(node.value, dtype, out.hold)
        return None

    def binary(self, node: IRBinOp) -> Callable[[Block], Expression] | None:
        """The expansion of a binary operation."""
        if dtype_of(node).is_float:
            of_floats = None if node.relaxed else _FLOAT.get(node.op)
            if of_floats is None:
                return None
            return lambda out: of_floats(node.left, node.right, out.hold)
        if node.op in ("<<", ">>"):
            return lambda out: integer_hazards.shift(node.op, node.left, node.right)
        if node.op == "**":
            natural = self.intervals.is_natural(node.right)
            return lambda out: power(node, out, natural)
        of_integers = _INTEGER.get(node.op)
        if of_integers is None:
            return None
        ranges = self.intervals.of(node.left), self.intervals.of(node.right)

        def expand(out: Block) -> Expression:
            # gcc divides both branches of a choice, and warns that a constant overflows.
            dividend = out.hold(node.left) if _chooses(node.left) else node.left
            return of_integers(dividend, node.right, *ranges, out.hold)

        return expand

    def call(self, node: IRCall) -> Callable[[Block], Expression] | None:
        """The expansion of a builtin."""
        if node.function in ("min", "max"):
            return lambda out: self.picked(node, out)
        if node.function == "abs" and not dtype_of(node).is_float:
            return lambda out: integer_hazards.absolute(node.args[0], out.hold)
        if node.function in ELEMENTARY:
            return lambda out: elementary(node, out, self.native)
        if node.function in RANDOM:
            return lambda out: random_number(node, out)
        composed = COMPOSED.get(node.function)
        return None if composed is None else lambda out: composed(*node.args, out.hold)

    def picked(self, node: IRCall, out: Block) -> Expression:
        """``min`` or ``max``."""
        one, other = node.args
        return pick(node.function, one, other, out.hold, finite=self.finite)


def _chooses(node: Expression) -> bool:
    return any(isinstance(inner, IRIfExp) for inner in walk_ir(node))


_INTEGER: Final = {"//": integer_hazards.floor_divide, "%": integer_hazards.remainder}
_FLOAT: Final = {
    "+": float_hazards.add,
    "-": float_hazards.subtract,
    "//": float_hazards.float_floor_divide,
    "**": float_hazards.square,
    "%": float_hazards.float_remainder,
}

_STATEMENTS: Final[dict[type[IRNode], Callable[..., None]]] = {
    IRAssign: Decomposer.assign,
    IRArrayStore: Decomposer.store,
    IRAtomic: Decomposer.atomic,
    IRLocalArray: Decomposer.nothing,
    IRBarrier: Decomposer.nothing,
    IRMma: Decomposer.nothing,
    IRPrint: Decomposer.print_,
    IRIf: Decomposer.branch,
    IRWhile: Decomposer.while_loop,
    IRSequentialFor: Decomposer.for_loop,
    IRBreak: Decomposer.nothing,
    IRContinue: Decomposer.nothing,
}
