"""What type each operation takes its operands at, and what type it gives.

One table of operators and one of builtins; the static analysis and the values both read them, so
that what runs has the type that was worked out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .types import (
    BOOL,
    DTYPES,
    F32,
    I64,
    U64,
    ArrayType,
    Dtype,
    OracleRefused,
    Scalar,
    TemplateType,
    Type,
    WeakFloat,
    WeakInt,
    computed,
    default_float,
    is_float,
    is_integer,
    is_weak,
    loaded,
    promote,
    promote_all,
)

__all__ = [
    "ATOMICS",
    "BINARY",
    "BUILTINS",
    "COMPARE",
    "COMPONENTWISE",
    "UNARY",
    "binary",
    "builtin",
    "compare",
    "held",
    "store",
    "truth",
    "unary",
]

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}

Typed = tuple[Scalar, Scalar]
"""The type of the result, and the type that the operands are converted to first."""


def _same(t: Scalar) -> Typed:
    return t, t


def _number(t: Type) -> Scalar:
    """`t` as an operand of arithmetic; a lone bool is i64."""
    if isinstance(t, ArrayType | TemplateType | tuple):
        raise OracleRefused(f"{t} is not a scalar")
    if t == BOOL:
        return I64
    return computed(t) if isinstance(t, Dtype) else t


def _arithmetic(a: Type, b: Type) -> Typed:
    return _same(_number(promote(a, b)))


def _divide(a: Type, b: Type) -> Typed:
    if is_weak(a) and is_weak(b):
        return _same(_weak_result(a, b, floating=True))
    if is_integer(a) and is_integer(b):
        return _same(F32)
    return _same(_number(promote(a, b)))


def _bitwise(a: Type, b: Type) -> Typed:
    if not (is_integer(a) and is_integer(b)):
        raise OracleRefused("bits of a float")
    return _same(promote(a, b))


def is_square(op: str, a: Type, b: Type) -> bool:
    """Whether it is a float to the power of the literal 2, which is a product.

    Other powers of floats have no exact value; what they give is tested elsewhere.
    """
    return op == "**" and is_float(a) and isinstance(b, WeakInt) and b == WeakInt(2, 2, True)


def _keep_left(a: Type, b: Type) -> Typed:
    """Shifts and powers: the left type, whatever the right one is."""
    if not (is_integer(a) and is_integer(b)):
        raise OracleRefused("a shift or an integer power of floats")
    return _same(I64 if a == BOOL or is_weak(a) else _number(a))


_RULES: dict[str, Callable[[Type, Type], Typed]] = {
    **dict.fromkeys(("+", "-", "*", "//", "%"), _arithmetic),
    "/": _divide,
    **dict.fromkeys(("&", "|", "^"), _bitwise),
    **dict.fromkeys(("<<", ">>", "**"), _keep_left),
}


def _weak_result(a: Type, b: Type, *, floating: bool) -> Scalar:
    literal = getattr(a, "literal", False) and getattr(b, "literal", False)
    return WeakFloat(literal) if floating else WeakInt(None, None, literal)


def binary(op: str, a: Type, b: Type) -> Typed:
    """Result and operand type of `a op b`.

    Two weak integers give one whose range is not known here: whoever has the two literals
    narrows it.
    """
    if is_square(op, a, b):
        return _same(_number(a))
    if is_weak(a) and is_weak(b):
        floating = op == "/" or is_float(a) or is_float(b)
        if floating and op not in ("+", "-", "*", "/", "//", "%"):
            raise OracleRefused(f"{op} on floats")
        return _same(_weak_result(a, b, floating=floating))
    return _RULES[op](a, b)


def unary(op: str, a: Type) -> Scalar:
    """The type of `op a`."""
    if op == "~" and (is_float(a) or a == BOOL):
        raise OracleRefused(f"~ of {a}")
    if isinstance(a, WeakInt):
        return WeakInt(None, None, a.literal)
    return _number(a)


def held(t: Type) -> None:
    """Refuse literals that have to be a value of some type, and that no integer type holds."""
    if not isinstance(t, WeakInt) or t.low is None or t.high is None:
        return
    if not any(each.holds(t.low, t.high) for each in (I64, U64)):
        raise OracleRefused(f"{t.low} to {t.high}: no integer type holds these")


def compare(a: Type, b: Type) -> Scalar:
    """The type that two operands are compared at; the result is bool."""
    t = promote(a, b)
    held(t)
    return computed(t) if isinstance(t, Dtype) else t


def truth(a: Type) -> None:
    """Refuse what has no truth value."""
    promote(a, a)


def store(value: Type, dtype: Dtype) -> None:
    """Refuse a store that does not convert: floats into integers, and numbers into bool."""
    if (is_float(value) and dtype.kind != "float") or (dtype == BOOL and value != BOOL):
        raise OracleRefused(f"a {value} stored into {dtype}: cast it")
    held(promote(value, value))


def _cast(target: Callable[[], Dtype]) -> Callable[[Sequence[Type]], Typed]:
    def rule(types: Sequence[Type]) -> Typed:
        (value,) = types
        return target(), promote(value, value)

    return rule


def _keeps(types: Sequence[Type]) -> Typed:
    (value,) = types
    held(value)
    return _same(loaded(_number(value)))


def _promotes(types: Sequence[Type]) -> Typed:
    """Of several values two at a time, from left to right."""
    if len(types) < 2:
        raise OracleRefused("min and max take two values or more")
    first, *rest = types
    for each in rest:
        first = promote(first, each)
        held(first)
        first = loaded(_number(first))
    return _same(first)


def _root(types: Sequence[Type]) -> Typed:
    (value,) = types
    if is_integer(value):
        return _same(F32)
    return _same(_typed_float(promote(value, value)))


def _fused(types: Sequence[Type]) -> Typed:
    a, b, c = types
    t = promote_all((a, b, c))
    if not is_float(t):
        raise OracleRefused("the language page does not say what fma of integers is: cast one")
    return _same(_typed_float(t))


def _typed_float(t: Scalar) -> Scalar:
    return computed(t) if isinstance(t, Dtype) else default_float()


def _absolute(types: Sequence[Type]) -> Typed:
    (value,) = types
    return _same(WeakInt(None, None) if isinstance(value, WeakInt) else _number(value))


def _signed_floats(types: Sequence[Type]) -> Typed:
    """copysign: floats, which promote."""
    a, b = types
    return _fused((a, b, b))


def _asks(types: Sequence[Type]) -> Typed:
    (value,) = types
    if not is_float(value):
        raise OracleRefused("every integer is a finite number: asking is of floats")
    return BOOL, _typed_float(promote(value, value))


def _limited(types: Sequence[Type]) -> Typed:
    if len(types) != 3:
        raise OracleRefused("clamp takes three values")
    return _promotes(types)


def _two(types: Sequence[Type]) -> Typed:
    a, b = types
    return _promotes((a, b))


def _bits(types: Sequence[Type]) -> Typed:
    (value,) = types
    if is_float(value):
        raise OracleRefused("bits of a float")
    held(value)
    if isinstance(value, WeakInt):
        large = value.high is not None and value.high > I64.high
        return _same(U64 if large else I64)
    return _same(_number(value))


def _drawn(result: Dtype, count: int) -> Callable[[Sequence[Type]], Typed]:
    """A random number of a seed and a counter of u64, and perhaps two bounds of i64."""

    def rule(types: Sequence[Type]) -> Typed:
        if len(types) != count or any(is_float(each) for each in types):
            raise OracleRefused("a random number takes integers: a seed, a counter, bounds")
        for each in types:
            held(each)
        for bound in types[2:]:
            large = isinstance(bound, WeakInt) and not I64.holds(bound.low or 0, bound.high or 0)
            if bound in (U64, BOOL) or large:
                raise OracleRefused(f"a bound of {bound}: cast it")
        return result, U64

    return rule


ATOMICS = ("add", "sub", "min", "max", "and", "or", "xor", "exchange", "cas")


def _atomic(op: str) -> Callable[[Sequence[Type]], Typed]:
    """The old element; the values are stored, so that they convert as stores do."""

    def rule(types: Sequence[Type]) -> Typed:
        array, index, *values = types
        if not isinstance(array, ArrayType) or len(values) != 1 + (op == "cas"):
            raise OracleRefused("an atomic takes an array, an index and values")
        if computed(array.dtype) != array.dtype:
            raise OracleRefused(f"atomic_{op} of {array.dtype}")
        if op in ("and", "or", "xor") and array.dtype.kind == "float":
            raise OracleRefused(f"atomic_{op} of {array.dtype}")
        if op in ("add", "sub", "min", "max") and array.dtype == BOOL:
            raise OracleRefused(f"atomic_{op} of {array.dtype}")
        indices = index if isinstance(index, tuple) else (index,)
        rank = array.rank + len(array.element)
        if len(indices) != rank or not all(is_integer(each) and each != BOOL for each in indices):
            raise OracleRefused("an index that does not fit the array")
        for value in values:
            store(value, array.dtype)
        return _same(array.dtype)

    return rule


BUILTINS: dict[str, Callable[[Sequence[Type]], Typed]] = {
    "int": _cast(lambda: I64),
    "float": _cast(default_float),
    **{name: _cast(lambda t=t: t) for name, t in DTYPES.items()},  # type: ignore[misc]
    "abs": _absolute,
    **dict.fromkeys(("min", "max"), _promotes),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), _keeps),
    "sqrt": _root,
    "fma": _fused,
    "mix": _fused,
    "copysign": _signed_floats,
    **dict.fromkeys(("isnan", "isinf", "isfinite"), _asks),
    "sign": _absolute,
    "step": _two,
    "clamp": _limited,
    **dict.fromkeys(("popcount", "clz", "ctz"), _bits),
    "bits": _drawn(U64, 2),
    "uniform": _drawn(F32, 2),
    "randint": _drawn(I64, 4),
    **{f"atomic_{op}": _atomic(op) for op in ATOMICS},
}
_NUMBERS_ONLY = {*DTYPES, "int", "float", *(f"atomic_{op}" for op in ATOMICS)}
COMPONENTWISE = BUILTINS.keys() - _NUMBERS_ONLY
"""The builtins that take vectors as well."""


def builtin(name: str, types: Sequence[Type]) -> Typed:
    """Result and operand type of a call of a builtin or a cast."""
    try:
        return BUILTINS[name](types)
    except ValueError:
        raise OracleRefused(f"{name}: wrong number of arguments") from None
