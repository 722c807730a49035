"""emulate: what a target has not, in terms of what it has.

One table says which operations can be missing and what each becomes; a renderer names those that it
has. It comes after every other decomposition, whose results hold such operations too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBinOp,
    IRCall,
    IRCast,
    IRCompare,
    IRFunction,
    IRIf,
    IRName,
    IRPrint,
    IRUnaryOp,
    IRWhile,
    Statement,
)
from tack.ir.operations import EMULATED
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DTYPES, DType, f32, i32, u16, u32, u64, unsigned
from tack.model.errors import TargetWarning
from tack.passes import comparisons, float_bits, shifts, soft_floats
from tack.passes.build import (
    bitcast,
    both,
    call,
    cast,
    compare,
    constant,
    dtype_of,
    literal,
    operate,
    select,
)
from tack.passes.constant_division import divide_by_constant
from tack.passes.decompose import Block, Decomposer
from tack.passes.float_hazards import pick
from tack.passes.localize import localize
from tack.passes.wide_integers import pair_words

__all__ = ["emulate"]


def emulate(
    function: IRFunction, supported: frozenset[str], *, exact: bool = True, doubles: bool = True
) -> IRFunction | None:
    """Expands the operations of `EMULATED` that are not ``supported``, in place; None for none.

    ``exact``: with the very results that the target's own operations round to. ``doubles``: whether
    there is f64 to compute in.
    """
    missing = frozenset(EMULATED) - supported
    if not missing:
        return None
    loop, any_changed, rounds = kernel_loop(function), False, _ROUNDS
    while rounds:
        emulator = _Emulator(function, missing, exact=exact, doubles=doubles)
        loop.body = emulator.body(loop.body)
        any_changed |= emulator.changed
        # What an operation becomes may hold others that are missing; seldom, so look only then.
        rounds = rounds - 1 if emulator.changed and missing & _IN_EXPANSIONS else 0
    changed = localize(function) if any_changed else None
    return pair_words(function) or changed if "wide integers" in missing else changed


class _Emulator(Decomposer):
    """Rewrites one function; ``changed`` says whether there was anything to expand."""

    def __init__(
        self, function: IRFunction, missing: frozenset[str], *, exact: bool, doubles: bool
    ) -> None:
        super().__init__(function)
        self.missing = missing
        self.exact = exact
        self.doubles = doubles
        self.changed = self.printless = False

    def rewritten(self, node: Statement, out: Block) -> list[Statement]:
        """A print is left out; an atomic on a private array becomes a load and a store."""
        if isinstance(node, IRPrint) and "print" in self.missing:
            self.leave_out(node)
            return []
        self.statement(node, out)
        if not isinstance(node, IRAtomic) or "private atomics" not in self.missing:
            return [node]
        array = self.function.local_arrays.get(node.array)
        if array is None or array.shared:
            return [node]
        self.changed = True
        return list(_private_atomic(node, array.dtype, out))

    def leave_out(self, node: IRPrint) -> None:
        """Says once that a kernel prints nothing on this target."""
        if not self.printless:
            where = self.function.positions.get(node) or self.function.name
            message = f"{where}: the target has no print, so that this kernel prints nothing there"
            warnings.warn(message, TargetWarning, stacklevel=2)
        self.changed = self.printless = True

    def expansion(self, node: Expression) -> Callable[[Block], Expression] | None:
        """How a missing operation is expanded, or None."""
        name = _name_of(node)
        if name in self.missing:
            self.changed = True
            expand = _EXPANSIONS[name]
            return lambda out: expand(node, out, self)
        if "constant division" in self.missing and isinstance(node, IRBinOp):
            divided = self._division(node)
            if divided is not None:
                self.changed = True
                return divided
        if "wrap" in self.missing and isinstance(node, IRBinOp | IRUnaryOp):
            dtype = dtype_of(node)
            if _may_overflow(node, dtype) and self.intervals.of(node) == _whole(dtype):
                self.changed = True
                return lambda _: _wrapped(node, dtype)
        return None

    def _division(self, node: IRBinOp) -> Callable[[Block], Expression] | None:
        """How a division by a literal is expanded."""
        divisor = literal(node.right)
        if node.op not in ("cdiv", "cmod") or divisor is None:
            return None
        spread = self.intervals.of(node.left)
        return lambda out: divide_by_constant(
            node.op, out.hold(node.left), divisor, spread, out.hold
        )


def _whole(dtype: DType) -> tuple[int, int]:
    return dtype.minimum, dtype.maximum


def _may_overflow(node: IRBinOp | IRUnaryOp, dtype: DType) -> bool:
    """Whether C leaves the operation undefined beyond the range of its type.

    Types narrower than ``int`` are computed in that; of their products only those of u16 reach
    beyond it.
    """
    if isinstance(node, IRUnaryOp):
        return node.op == "-" and dtype.is_signed and dtype.bits >= _INT_BITS
    if node.op not in ("+", "-", "*"):
        return False
    return (dtype.is_signed and dtype.bits >= _INT_BITS) or (dtype is u16 and node.op == "*")


def _wrapped(node: IRBinOp | IRUnaryOp, dtype: DType) -> Expression:
    """The operation on unsigned integers of the same bits, or wide ones, which wrap."""
    wide = u32 if dtype.bits < _INT_BITS else unsigned(dtype)
    if isinstance(node, IRUnaryOp):
        return cast(operate("-", constant(0, wide), _as(node.operand, wide)), dtype)
    return cast(operate(node.op, _as(node.left, wide), _as(node.right, wide)), dtype)


def _as(node: Expression, dtype: DType) -> Expression:
    """``node`` in another integer type, without going through a narrower one and back."""
    if isinstance(node, IRCast) and node.value.dtype is dtype:
        return node.value
    return cast(node, dtype)


def _private_atomic(node: IRAtomic, dtype: DType, out: Block) -> Iterator[Statement]:
    indices = [out.hold(index) for index in node.indices]
    old, value = IRName(node.target, dtype), out.hold(node.value)
    compare_with = None if node.compare is None else out.hold(node.compare)
    yield IRAssign(node.target, IRArrayLoad(node.array, indices, dtype, node.flat), dtype)
    if compare_with is not None:
        changed: Expression = select(_same_bits(old, compare_with), value, old)
    elif node.op in ("min", "max"):
        changed = pick(node.op, old, value, out.hold)
    elif node.op == "exchange":
        changed = value
    else:
        wide = dtype if dtype.is_float else unsigned(dtype)
        symbol = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[node.op]
        changed = cast(operate(symbol, cast(old, wide), cast(value, wide)), dtype)
    yield IRArrayStore(node.array, list(indices), changed, node.flat)


def _same_bits(a: Expression, b: Expression) -> Expression:
    dtype = dtype_of(a)
    if not dtype.is_float:
        return compare("==", a, b)
    bits = DTYPES[f"u{dtype.bits}"]
    return compare("==", bitcast(a, bits), bitcast(b, bits))


def _fmod(node: IRCall, out: Block, _: _Emulator) -> Expression:
    """C's fmod, exactly: long division of the mantissas, as many bits at a time as fit.

    With ``x = m 2^e`` and ``y = n 2^f``, where ``e >= f``, it is ``(m 2^(e-f) mod n) 2^f``.
    """
    x, y = (out.hold(arg) for arg in node.args)
    dtype = dtype_of(node)
    mantissa_bits = 23 if dtype.bits == 32 else 52
    bits = DTYPES[f"u{dtype.bits}"]
    magnitude = constant((1 << (dtype.bits - 1)) - 1, bits)
    size, unit = (out.hold(operate("&", bitcast(each, bits), magnitude)) for each in (x, y))
    infinite = constant(((1 << (dtype.bits - 1 - mantissa_bits)) - 1) << mantissa_bits, bits)
    result = out.local(dtype)
    # The rest is NaN: x infinite, y zero, or one of them NaN.
    ordinary = both(compare("<", size, infinite), compare("<=", unit, infinite))
    ordinary = both(ordinary, compare("!=", unit, 0))
    nan = operate("/", operate("*", x, y), operate("*", x, y))
    out.assign(result, select(ordinary, x, nan))
    inner = out.inner()
    (m, e), (n, f) = (_parts(each, mantissa_bits, inner) for each in (size, unit))
    rest, left = inner.local(u64), inner.local(i32)
    inner.assign(rest, operate("cmod", m, n))
    inner.assign(left, operate("-", e, f))
    chunk = constant(64 - (mantissa_bits + 1), i32)
    loop = inner.inner()
    count = loop.hold(select(compare("<", left, chunk), left, chunk))
    loop.assign(rest, operate("cmod", operate("shl", rest, cast(count, u64)), n))
    loop.assign(left, operate("-", left, count))
    inner.statements.append(IRWhile(compare(">", left, 0), loop.statements))
    bias = (1 << (dtype.bits - 2 - mantissa_bits)) - 1
    # In two steps: 2^f alone may be no float. The first gives at least the least normal number.
    scale = inner.hold(operate("-", f, constant(bias + mantissa_bits, i32)))
    least = constant(1 - bias, i32)
    first = inner.hold(select(compare("<", scale, least), least, scale))
    value = cast(rest, dtype)
    for power in (first, operate("-", scale, first)):
        exponent = cast(operate("+", power, constant(bias, i32)), bits)
        value = operate("*", value, bitcast(_shifted(exponent, mantissa_bits), dtype))
    inner.assign(result, call("copysign", value, x))
    divides = both(both(ordinary, compare("<", unit, infinite)), compare(">=", size, unit))
    out.statements.append(IRIf(divides, inner.statements))
    return result


def _parts(magnitude: Expression, mantissa_bits: int, out: Block) -> tuple[Expression, Expression]:
    """The mantissa, as u64, and the exponent, as i32, of a float without its sign."""
    bits = dtype_of(magnitude)
    field = out.hold(operate("shr", magnitude, constant(mantissa_bits, bits)))
    fraction = operate("&", magnitude, constant((1 << mantissa_bits) - 1, bits))
    implicit = constant(1 << mantissa_bits, bits)
    is_normal = compare("!=", field, 0)
    mantissa = operate("|", fraction, select(is_normal, implicit, constant(0, bits)))
    exponent = select(is_normal, cast(field, i32), constant(1, i32))
    return out.hold(cast(mantissa, u64)), out.hold(exponent)


def _shifted(exponent: Expression, mantissa_bits: int) -> Expression:
    return operate("shl", exponent, constant(mantissa_bits, dtype_of(exponent)))


_INT_BITS: Final = 32


def _twice(node: IRCall, _: Block, __: _Emulator) -> Expression:
    """A product and a sum, each rounded."""
    a, b, c = node.args
    return operate("+", operate("*", a, b), c)


def _fma(node: IRCall, out: Block, emulator: _Emulator) -> Expression:
    """In doubles, which hold a product of f32, where there are any; else in integers."""
    dtype = dtype_of(node)
    a, b, c = node.args
    if dtype is f32 and emulator.doubles:
        return float_bits.near_fused(dtype, out.hold(a), out.hold(b), out.hold(c), out.hold)
    return soft_floats.fused(dtype, a, b, c, out)


def _divide(node: IRBinOp, out: Block, emulator: _Emulator) -> Expression:
    """By long division; where the target is not exact either, with a reciprocal."""
    if not emulator.exact and "recip" not in emulator.missing:
        return operate("*", node.left, call("recip", node.right))
    return soft_floats.divide(node.left, node.right, out)


_EXPANSIONS: Final[dict[str, Callable[[Any, Block, _Emulator], Expression]]] = {
    "cmpeq": lambda node, out, _: comparisons.not_different(node, out.hold),
    "cmple": lambda node, out, _: comparisons.by_less(node, out.hold),
    "fdiv": _divide,
    "fma": _fma,
    "fmod": _fmod,
    "mulacc": _twice,
    "neg": lambda node, out, _: comparisons.negated(node, out.hold),
    "recip": lambda node, *_: operate("/", constant(1.0, node), node.args[0]),
    "shl": lambda node, out, _: shifts.by_power_of_two(node, out.hold),
    "shr": lambda node, out, _: shifts.by_power_of_two(node, out.hold),
    "sqrt": lambda node, out, _: soft_floats.square_root(node.args[0], out),
}
"""Operation -> its expansion."""

_OPERATORS: Final = {"/": "fdiv", "shl": "shl", "shr": "shr"}
_COMPARISONS: Final = {"==": "cmpeq", **dict.fromkeys(("<=", ">", ">="), "cmple")}

_IN_EXPANSIONS: Final = frozenset({*_OPERATORS.values(), *_COMPARISONS.values(), "neg", "fma"})
"""What expansions may hold."""

_ROUNDS: Final = 6


def _name_of(node: Expression) -> str | None:
    """The name in `EMULATED` of what a node does."""
    if isinstance(node, IRCall):
        return node.function
    if isinstance(node, IRBinOp):
        return _OPERATORS.get(node.op)
    if isinstance(node, IRCompare):
        return _COMPARISONS.get(node.op)
    return "neg" if isinstance(node, IRUnaryOp) and node.op == "-" else None
