"""narrow floats: those of 8 and 16 bits as f32 that are rounded after every operation.

From here on a value of such a type is an f32 which that type represents; array elements and
scalar parameters are its bits, as u8 or u16. Nothing is computed at a type of 8 bits: its values
are only loaded, converted and stored. Of f16 and bf16 every operation is rounded. An f32 has more
than twice the precision of either, so that rounding the f32 result of + - * / and sqrt gives what
rounding the exact one would (Figueroa, "When is double rounding innocuous?", 1995), subnormals
included. fma and casts from wider types are arranged so that they round once.

Where a target converts by an instruction that does what the integer arithmetic would, a conversion
stays a cast between f32 and the type, beside a bit cast. (The f32 of a bf16 needs none: a shift.)
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
from tack.model.dtypes import DType, bf16, f32, u16
from tack.passes import soft_floats
from tack.passes.atomic_loops import change, exchange, replace
from tack.passes.build import (
    Hold,
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
    near_float,
    near_fused,
    near_integer,
    round_to,
    to_bits,
)
from tack.passes.localize import localize

__all__ = ["CONVERSIONS", "narrow_floats"]

CONVERSIONS: Final = {
    "f16": "conversions of f32 to f16 and back",
    "bf16": "conversions of f32 to bf16",
    "f8e4m3": "conversions of f32 to f8e4m3 and back",
    "f8e5m2": "conversions of f32 to f8e5m2 and back",
}
"""What a target may have exactly; elsewhere it is integer arithmetic."""

_ROUNDED: Final = frozenset({"sqrt"})
"""Builtins whose f32 result is rounded; the others give values of the type."""


def narrow_floats(
    function: IRFunction, supported: frozenset[str] = frozenset(), *, doubles: bool = True
) -> IRFunction | None:
    """Leaves narrow floats in the types of scalar parameters only, in place.

    And in conversions of `CONVERSIONS` that are ``supported``. None where there are none.
    ``doubles``: whether there is f64 to compute in.
    """
    narrow = _narrow_types(function)
    function.facts |= narrow
    if not narrow:
        return None
    loop = copy_tree(kernel_loop(function), function.positions)  # each occurrence has its own place
    function.body = [loop]
    loop.body = _Narrower(function, supported, doubles).body(loop.body)
    for name, dtype in _narrow_arrays(function).items():
        retype(function, (name,), bits_of(dtype))
    return localize(function)


def _narrow_types(function: IRFunction) -> frozenset[str]:
    """The names of the narrow floats that expressions, parameters and arrays have."""
    dtypes = {node.dtype for node in walk_ir(function) if isinstance(node, Expression)}
    dtypes.update(param.dtype for param in function.params)
    dtypes.update(_narrow_arrays(function).values())
    return frozenset(dtype.name for dtype in dtypes if dtype is not None and _is_narrow(dtype))


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

    def __init__(self, function: IRFunction, supported: frozenset[str], doubles: bool) -> None:
        super().__init__(function)
        self.supported = supported
        self.doubles = doubles
        self.scalars = {p.name for p in function.params if not p.is_array}
        self.elements = _narrow_arrays(function)
        self.raw: dict[str, tuple[DType, Expression]] = {}
        for name, dtype in function.locals.items():
            if _is_narrow(dtype):
                function.locals[name] = f32

    def rewritten(self, node: Statement, out: Block) -> list[Statement]:
        """A statement, whose locals are f32 and whose elements are bits."""
        if isinstance(node, IRArrayStore) and self.copies(node):
            node.indices = [self.expression(index, out) for index in node.indices]
            load = node.value
            assert isinstance(load, IRArrayLoad)
            load.indices = [self.expression(index, out) for index in load.indices]
            load.dtype = bits_of(self.elements[node.array])
            return [node]
        super().statement(node, out)
        if isinstance(node, IRAssign):
            node.resolved_type = self.function.locals[node.target]
        elif isinstance(node, IRArrayStore) and node.array in self.elements:
            node.value = self.bits(self.elements[node.array], node.value, out)
        elif isinstance(node, IRAtomic) and node.array in self.elements:
            dtype = self.elements[node.array]
            old = self.from_bits(dtype, self.atomic_bits(node, dtype, out), out.hold)
            return [IRAssign(node.target, old, f32)]
        return [node]

    def copies(self, node: IRArrayStore) -> bool:
        """Whether an element is stored as it was loaded: then its bits are copied."""
        dtype = self.elements.get(node.array)
        return (
            dtype is not None and isinstance(node.value, IRArrayLoad) and node.value.dtype is dtype
        )

    def bits(self, dtype: DType, value: Expression, out: Block) -> Expression:
        """The bits of a value, an f32, as an element."""
        if isinstance(value, IRName) and self.raw.get(value.name, (None,))[0] is dtype:
            value = self.raw[value.name][1]  # the bits are rounded anyway
        return self.to_bits(dtype, value, out.hold)

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
            old = body.hold(self.from_bits(dtype, seen, body.hold))
            if node.op in ("add", "sub"):
                total = operate("+" if node.op == "add" else "-", old, value)
                return self.to_bits(dtype, total, body.hold)
            beyond = compare("<", value, old) if node.op == "min" else compare("<", old, value)
            return select(either(beyond, compare("!=", old, old)), new, seen)

        return change(out, node, u16, changed)

    def to_bits(self, dtype: DType, x: Expression, hold: Hold) -> Expression:
        """The bits of an f32 rounded to ``dtype``."""
        if dtype.name in self.supported:
            return IRBitcast(IRCast(x, dtype), bits_of(dtype))
        return to_bits(dtype, x, hold)

    def from_bits(self, dtype: DType, bits: Expression, hold: Hold) -> Expression:
        """The f32 that is equal to the ``dtype`` of these bits."""
        if dtype.name in self.supported and dtype is not bf16:
            return IRCast(IRBitcast(bits, dtype), f32)
        return from_bits(dtype, bits, hold)

    def round_to(self, dtype: DType, x: Expression, hold: Hold) -> Expression:
        """An f32 rounded to ``dtype``, as an f32."""
        if dtype.name in self.supported:
            return self.from_bits(dtype, hold(self.to_bits(dtype, x, hold)), hold)
        return round_to(dtype, x, hold)

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
                return self.from_bits(dtype, IRBitcast(node, bits_of(dtype)), out.hold)
            return IRName(node.name, f32)
        if isinstance(node, IRArrayLoad):
            element = IRArrayLoad(node.array, node.indices, bits_of(dtype), node.flat)
            return out.evaluate(self.from_bits(dtype, element, out.hold))
        if isinstance(node, IRCast):
            if dtype_of(node.value).is_float:
                near = near_float(node.value, out.hold)
            else:
                near = near_integer(dtype, node.value, out.hold)
            return self.rounded(dtype, near, out)
        if isinstance(node, IRCall) and node.function == "fma":
            a, b, c = node.args
            if dtype is bf16 and not self.doubles:
                return self.rounded(dtype, soft_floats.fused(dtype, a, b, c, out), out)
            return self.rounded(dtype, near_fused(dtype, a, b, c, out.hold), out)
        assert isinstance(node, IRBinOp | IRUnaryOp | IRCall)
        node.dtype = f32
        exact = isinstance(node, IRUnaryOp) or (
            isinstance(node, IRCall) and node.function not in _ROUNDED
        )
        return node if exact else self.rounded(dtype, node, out)

    def rounded(self, dtype: DType, value: Expression, out: Block) -> Expression:
        """``value`` rounded, in a local; a store of that rounds the raw value itself."""
        raw = out.hold(value)
        result = out.evaluate(self.round_to(dtype, raw, out.hold))
        if not isinstance(raw, IRName) or raw.name not in self.scalars:
            self.raw[result.name] = dtype, raw
        return result
