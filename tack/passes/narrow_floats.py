"""narrow floats: those of 8 and 16 bits as f32 that are rounded after every operation.

From here on a value of such a type is an f32 which that type represents; array elements and
scalar parameters are its bits, as u8 or u16. Nothing is computed at a type of 8 bits: its values
are only loaded, converted and stored. Of f16 and bf16 every operation is rounded. An f32 has more
than twice the precision of either, so that rounding the f32 result of + - * / and sqrt gives what
rounding the exact one would (Figueroa, "When is double rounding innocuous?", 1995), subnormals
included. fma and casts from wider types are arranged so that they round once.
"""

from __future__ import annotations

from typing import Final

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
    IRArrayStore,
    IRAssign,
    IRAtomic,
    IRBinOp,
    IRBitcast,
    IRBoolOp,
    IRCall,
    IRCast,
    IRConstant,
    IRFunction,
    IRIfExp,
    IRName,
    IRUnaryOp,
    Statement,
)
from tack.ir.traversal import LIST_ROLES, child_fields, copy_tree, kernel_loop, walk_ir
from tack.model.dtypes import DType, bf16, f32, f64, u16
from tack.passes.atomic_loops import change, exchange, replace
from tack.passes.build import (
    both,
    cast,
    compare,
    constant,
    dtype_of,
    either,
    operate,
    retype,
    select,
)
from tack.passes.decompose import Block, Decomposer
from tack.passes.float_bits import (
    bits_of,
    from_bits,
    fused,
    of_float,
    of_integer,
    round_to,
    to_bits,
)
from tack.passes.localize import localize

__all__ = ["narrow_floats"]

_ROUNDED: Final = frozenset({"sqrt"})
"""Builtins whose f32 result is rounded; the others give values of the type."""


def narrow_floats(function: IRFunction) -> IRFunction | None:
    """Leaves narrow floats in the types of scalar parameters only, in place.

    None where there are none.
    """
    if not _uses_narrow(function):
        return None
    loop = copy_tree(kernel_loop(function), function.positions)  # each occurrence has its own place
    function.body = [loop]
    loop.body = _Narrower(function).body(loop.body)
    for name, dtype in _narrow_arrays(function).items():
        retype(function, (name,), bits_of(dtype))
    return localize(function)


def _uses_narrow(function: IRFunction) -> bool:
    dtypes = {node.dtype for node in walk_ir(function) if isinstance(node, Expression)}
    dtypes.update(param.dtype for param in function.params)
    return any(map(_is_narrow, dtypes)) or bool(_narrow_arrays(function))


def _narrow_arrays(function: IRFunction) -> dict[str, DType]:
    """The arrays of narrow floats, with the types of their elements."""
    arrays = function.arrays.items()
    return {name: array.dtype for name, array in arrays if array.dtype and _is_narrow(array.dtype)}


def _is_narrow(dtype: DType | None) -> bool:
    return dtype is not None and dtype.is_narrow_float


def _is_nan(dtype: DType, bits: Expression) -> Expression:
    """Whether these are the bits of a NaN."""
    infinity = constant(0x7F80 if dtype is bf16 else 0x7C00, u16)
    return compare(">", operate("&", bits, constant(0x7FFF, u16)), infinity)


class _Narrower(Decomposer):
    """Rewrites one function. ``raw`` has the f32 that a local was rounded from."""

    def __init__(self, function: IRFunction) -> None:
        super().__init__(function)
        self.scalars = {p.name for p in function.params if not p.is_array}
        self.elements = _narrow_arrays(function)
        self.raw: dict[str, tuple[DType, Expression]] = {}
        for name, dtype in function.locals.items():
            if _is_narrow(dtype):
                function.locals[name] = f32

    def rewritten(self, node: Statement, out: Block) -> list[Statement]:
        """A statement, whose locals are f32 and whose elements are bits."""
        super().statement(node, out)
        if isinstance(node, IRAssign):
            node.resolved_type = self.function.locals[node.target]
        elif isinstance(node, IRArrayStore) and node.array in self.elements:
            node.value = self.bits(self.elements[node.array], node.value, out)
        elif isinstance(node, IRAtomic) and node.array in self.elements:
            dtype = self.elements[node.array]
            old = from_bits(dtype, self.atomic_bits(node, dtype, out), out.hold)
            return [IRAssign(node.target, old, f32)]
        return [node]

    def bits(self, dtype: DType, value: Expression, out: Block) -> Expression:
        """The bits of a value, an f32, as an element."""
        if isinstance(value, IRName) and self.raw.get(value.name, (None,))[0] is dtype:
            value = self.raw[value.name][1]  # the bits are rounded anyway
        return to_bits(dtype, value, out.hold)

    def atomic_bits(self, node: IRAtomic, dtype: DType, out: Block) -> IRName:
        """Does what an atomic does to the bits of an element; the old ones."""
        value = out.hold(node.value)
        new = out.hold(self.bits(dtype, value, out))
        if node.op == "exchange":
            return exchange(out, node, new)
        if node.compare is not None:
            wanted = out.hold(self.bits(dtype, node.compare, out))
            missing = out.hold(_is_nan(dtype, wanted))
            return replace(out, node, wanted, new, lambda now: both(missing, _is_nan(dtype, now)))

        def changed(seen: Expression, body: Block) -> Expression:
            old = body.hold(from_bits(dtype, seen, body.hold))
            if node.op in ("add", "sub"):
                total = operate("+" if node.op == "add" else "-", old, value)
                return to_bits(dtype, total, body.hold)
            beyond = compare("<", value, old) if node.op == "min" else compare("<", old, value)
            return select(either(beyond, compare("!=", old, old)), new, seen)

        return change(out, node, u16, changed)

    def expression(self, node: Expression, out: Block) -> Expression:
        """``node`` without narrow floats."""
        dtype = dtype_of(node)
        if isinstance(node, IRBoolOp):
            return self.logic(node, out)
        if isinstance(node, IRIfExp):
            node.dtype = f32 if _is_narrow(dtype) else dtype
            return self.choice(node, out)
        if isinstance(node, IRCast) and _is_narrow(dtype_of(node.value)):
            return self.from_narrow(node, out)
        for name, role in child_fields(node):
            value = getattr(node, name)
            if role in LIST_ROLES:
                setattr(node, name, [self.expression(child, out) for child in value])
            else:
                setattr(node, name, self.expression(value, out))
        return self.narrowed(node, dtype, out) if _is_narrow(dtype) else node

    def from_narrow(self, node: IRCast, out: Block) -> Expression:
        """A cast from such a type: of the f32 that holds it."""
        value, dtype = self.expression(node.value, out), dtype_of(node)
        if _is_narrow(dtype):
            return self.rounded(dtype, value, out)
        return cast(value, dtype)

    def narrowed(self, node: Expression, dtype: DType, out: Block) -> Expression:
        """An expression of such a type whose operands are f32 (or what it is cast from)."""
        if isinstance(node, IRConstant):
            return IRConstant(node.value, f32)
        if isinstance(node, IRName):
            if node.name in self.scalars:
                return from_bits(dtype, IRBitcast(node, bits_of(dtype)), out.hold)
            return IRName(node.name, f32)
        if isinstance(node, IRArrayLoad):
            element = IRArrayLoad(node.array, node.indices, bits_of(dtype), node.flat)
            return out.evaluate(from_bits(dtype, element, out.hold))
        if isinstance(node, IRCast):
            convert = of_float if dtype_of(node.value) in (f32, f64) else of_integer
            return out.hold(convert(dtype, node.value, out.hold))
        if isinstance(node, IRCall) and node.function == "fma":
            a, b, c = node.args
            return out.hold(fused(dtype, a, b, c, out.hold))
        assert isinstance(node, IRBinOp | IRUnaryOp | IRCall)
        node.dtype = f32
        exact = isinstance(node, IRUnaryOp) or (
            isinstance(node, IRCall) and node.function not in _ROUNDED
        )
        return node if exact else self.rounded(dtype, node, out)

    def rounded(self, dtype: DType, value: Expression, out: Block) -> Expression:
        """``value`` rounded, in a local; a store of that rounds the raw value itself."""
        raw = out.hold(value)
        result = out.evaluate(round_to(dtype, raw, out.hold))
        if not isinstance(raw, IRName) or raw.name not in self.scalars:
            self.raw[result.name] = dtype, raw
        return result
