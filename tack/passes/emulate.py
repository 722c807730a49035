"""emulate: what a target has not, in terms of what it has.

One table says which operations can be missing and what each becomes; a renderer names those that it
has. It comes after every other decomposition, whose results hold such operations too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBinOp,
    IRCall,
    IRCast,
    IRFunction,
    IRIf,
    IRName,
    IRPrint,
    IRUnaryOp,
    IRWhile,
    Statement,
)
from tack.ir.traversal import kernel_loop
from tack.model.dtypes import DTYPES, DType, i32, u16, u32, u64, unsigned
from tack.model.errors import TargetWarning
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

__all__ = ["EMULATED", "emulate"]


def emulate(function: IRFunction, supported: frozenset[str]) -> IRFunction | None:
    """Expands the operations of `EMULATED` that are not ``supported``, in place; None for none."""
    missing = frozenset(EMULATED) - supported
    if not missing:
        return None
    loop, emulator = kernel_loop(function), _Emulator(function, missing)
    loop.body = emulator.body(loop.body)
    changed = localize(function) if emulator.changed else None
    return pair_words(function) or changed if "wide integers" in missing else changed


class _Emulator(Decomposer):
    """Rewrites one function; ``changed`` says whether there was anything to expand."""

    def __init__(self, function: IRFunction, missing: frozenset[str]) -> None:
        super().__init__(function)
        self.missing = missing
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
        if isinstance(node, IRCall) and node.function in self.missing:
            expand = _CALLS[node.function]
            self.changed = True
            return lambda out: expand(node, out)
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


def _fmod(node: IRCall, out: Block) -> Expression:
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

_CALLS: Final[dict[str, Callable[[IRCall, Block], Expression]]] = {"fmod": _fmod}
"""Builtin -> its expansion."""

EMULATED: Final = {
    "constant division": "division of integers by a constant",
    "fmod": "the exact remainder of floats, with the sign of the dividend",
    "private atomics": "atomics on arrays that belong to one iteration",
    "wide integers": "arithmetic of 64-bit integers",
    "print": "print, which is left out with a warning",
    "wrap": "sums, differences and products of signed integers that wrap",
}
"""What a target may lack, or not have exactly."""
