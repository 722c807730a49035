"""Scalars of the shim: a static type and an exact payload, with Python's operators on them.

The payload of an integer is a Python int, of bool a Python bool, of f32 and f64 a NumPy scalar,
of a weak number the Python int or float that was written.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from . import counters, numbers, rules
from .types import (
    BOOL,
    DTYPES,
    F64,
    I64,
    Dtype,
    OracleRefused,
    Scalar,
    Type,
    VectorType,
    WeakFloat,
    WeakInt,
    is_float,
    is_weak,
)

__all__ = ["Value", "call_builtin", "cast", "is_known", "lift", "literal", "to", "value_type"]

Payload = Any
_WEAK: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": numbers.fdiv,
    "//": numbers.float_floordiv,
    "%": numbers.float_mod,
    "**": lambda a, _: a * a,
}


class Value:
    """One scalar; immutable."""

    __slots__ = ("payload", "type")

    def __init__(self, type_: Scalar, payload: Payload) -> None:
        self.type = type_
        self.payload = payload

    def __repr__(self) -> str:
        return f"{self.type}({self.payload})"

    def __bool__(self) -> bool:
        return bool(self.payload != 0)

    __hash__ = None  # type: ignore[assignment]


def literal(number: int | float | bool) -> Value:
    """A literal as written: bool has its type, integers and floats are weak."""
    if isinstance(number, bool):
        return Value(BOOL, number)
    if isinstance(number, int):
        return Value(WeakInt(number, number, literal=True), number)
    return Value(WeakFloat(literal=True), number)


def lift(operand: Any) -> Value:
    """A value from whatever Python hands to an operator (a chained comparison gives bools)."""
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, int | float):
        return literal(operand)
    raise OracleRefused(f"{operand!r} is not a scalar")


def value_type(operand: Any) -> Type:
    """The static type of a value, an array, or a tuple of them."""
    if isinstance(operand, tuple):
        return tuple(value_type(each) for each in operand)
    declared = getattr(operand, "type", None)
    return declared if declared is not None else lift(operand).type


def _payload(value: Value, t: Scalar) -> Payload:
    if isinstance(t, Dtype):
        return value.payload if value.type == t else numbers.convert(value.payload, t)
    return float(value.payload) if isinstance(t, WeakFloat) else value.payload


def to(t: Any, operand: Any) -> Any:
    """Convert to a type that was worked out for it; tuples element by element; `None` keeps."""
    if isinstance(t, tuple):
        operand = tuple(operand) if hasattr(operand, "parts") else operand
        if not isinstance(operand, tuple) or len(operand) != len(t):
            raise OracleRefused("a tuple of another length")
        return tuple(to(each, one) for each, one in zip(t, operand, strict=True))
    if isinstance(t, VectorType):
        parts = [to(t.dtype, each) for each in operand.parts]
        return type(operand)(t.dtype, t.shape, parts)
    if t is None or not isinstance(t, Dtype | WeakInt | WeakFloat):
        return operand
    value = lift(operand)
    return Value(t, _payload(value, t))


def cast(t: Dtype, operand: Any) -> Value:
    """An explicit cast."""
    return Value(t, numbers.convert(lift(operand).payload, t))


def _binary(op: str, left: Any, right: Any) -> Value:
    a, b = lift(left), lift(right)
    if op == "**" and is_known(b.type) and b.payload < 0 and not is_float(a.type):
        raise OracleRefused("a negative literal exponent")
    result, operand = rules.binary(op, a.type, b.type)
    if isinstance(operand, WeakInt):
        return _weak_integers(op, a, b, operand)
    if isinstance(operand, WeakFloat):
        operand = F64
    if operand.kind == "float":
        with np.errstate(all="ignore"):
            exact = _FLOAT[op](_payload(a, operand), _payload(b, operand))
        return Value(result, float(exact) if isinstance(result, WeakFloat) else exact)
    if op in ("<<", ">>", "**"):  # the right operand keeps its own value
        return Value(result, numbers.int_binary(op, _payload(a, operand), int(b.payload), operand))
    integer = numbers.int_binary(op, _payload(a, operand), _payload(b, operand), operand)
    return Value(result, bool(integer) if operand == BOOL else integer)


def _weak_integers(op: str, a: Value, b: Value, t: WeakInt) -> Value:
    """Literals combine exactly; what is not known to be one value is computed in i64."""
    if not (is_known(a.type) and is_known(b.type)):
        return Value(t, numbers.int_binary(op, a.payload, b.payload, I64))
    try:
        return literal(_WEAK[op](a.payload, b.payload))
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        raise OracleRefused(f"arithmetic on literals: {error}") from None


def is_known(t: Type) -> bool:
    """Whether an integer of this type is one literal, whose value is the type's bound."""
    return isinstance(t, WeakInt) and t.literal and t.low is not None and t.low == t.high


def _compare(op: str, left: Any, right: Any) -> Value:
    a, b = lift(left), lift(right)
    t = rules.compare(a.type, b.type)
    return Value(BOOL, bool(_COMPARE[op](_payload(a, t), _payload(b, t))))


def _unary(op: str, value: Value) -> Value:
    t = rules.unary(op, value.type)
    payload = _payload(value, t)
    exact = -payload if op == "-" else ~payload if op == "~" else payload
    if is_known(value.type):
        return literal(int(exact))
    if is_weak(t):
        return Value(t, exact if is_float(t) else numbers.wrap(int(exact), I64))
    assert isinstance(t, Dtype)
    return Value(t, exact if t.kind == "float" else numbers.wrap(exact, t))


def _with(function: Callable[..., Value], op: str, a: Value, b: Any) -> Any:
    """``a op b``, left to a vector where ``b`` is one."""
    return NotImplemented if hasattr(b, "parts") else function(op, a, b)


def _operators() -> None:
    names = {
        "+": "add",
        "-": "sub",
        "*": "mul",
        "/": "truediv",
        "//": "floordiv",
        "%": "mod",
        "**": "pow",
        "<<": "lshift",
        ">>": "rshift",
        "&": "and",
        "|": "or",
        "^": "xor",
    }
    for op, name in names.items():
        setattr(Value, f"__{name}__", lambda a, b, op=op: _with(_binary, op, a, b))
        setattr(Value, f"__r{name}__", lambda a, b, op=op: _binary(op, b, a))
    for op, name in zip(_COMPARE, ("lt", "le", "gt", "ge", "eq", "ne"), strict=True):
        setattr(Value, f"__{name}__", lambda a, b, op=op: _with(_compare, op, a, b))
    for op, name in {"-": "neg", "+": "pos", "~": "invert"}.items():
        setattr(Value, f"__{name}__", lambda a, op=op: _unary(op, a))


_operators()


def _absolute(t: Dtype | WeakInt | WeakFloat, payload: Payload) -> Payload:
    if isinstance(t, WeakInt):
        return numbers.wrap(abs(payload), I64)
    if isinstance(t, WeakFloat) or t.kind == "float":
        return abs(payload)
    return numbers.wrap(abs(payload), t)


_ROUND: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "floor": (numbers.floor, math.floor),
    "ceil": (numbers.ceil, math.ceil),
    "trunc": (numbers.trunc, math.trunc),
    "round": (numbers.nearest, round),
}


def call_builtin(name: str, *arguments: Any) -> Value:
    """A builtin or a cast applied to shim values."""
    values = [lift(each) for each in arguments]
    if name in ("min", "max") and len(values) > 2:
        return call_builtin(name, call_builtin(name, *values[:-1]), values[-1])
    result, operand = rules.builtin(name, [each.type for each in values])
    payloads = [_payload(each, operand) for each in values]
    if name in DTYPES or name in ("int", "float"):
        assert isinstance(result, Dtype)
        return Value(result, numbers.convert(payloads[0], result))
    if name == "abs":
        exact = _absolute(result, payloads[0])
    elif name in ("min", "max"):
        exact = payloads[0]
        for each in payloads[1:]:
            exact = numbers.pick(name, exact, each)
    elif name == "clamp":
        value, low, high = payloads
        exact = numbers.pick("min", numbers.pick("max", value, low), high)
    elif name in _ROUND:
        exact = _round(name, result, payloads[0])
    elif name == "sign":
        exact = numbers.sign(payloads[0])
    elif name == "step":
        edge, value = payloads
        exact = type(value)(0 if value < edge else 1)
    elif name in ("popcount", "clz", "ctz"):
        assert isinstance(result, Dtype)
        exact = numbers.count_bits(name, payloads[0], result)
    elif name in _DRAWN:
        assert isinstance(result, Dtype)
        seed, counter, *bounds = (int(each) for each in payloads)
        exact = _DRAWN[name](seed, counter, *(numbers.wrap(each, I64) for each in bounds))
        if result.kind == "float":
            exact = numbers.convert(exact, result)
    elif name in _ASKED:
        assert isinstance(operand, Dtype)
        exact = _ASKED[name](float(numbers.convert(payloads[0], operand)))
    else:
        assert isinstance(result, Dtype)
        floats: list[Any] = [numbers.convert(each, result) for each in payloads]
        if name == "sqrt":
            exact = numbers.sqrt(floats[0])
        elif name == "copysign":
            exact = np.copysign(floats[0], floats[1])
        elif name == "mix":
            exact = _mix(*floats)
        else:
            exact = numbers.fma(floats[0], floats[1], floats[2], result)
    return Value(result, float(exact) if isinstance(result, WeakFloat) else exact)


_DRAWN: dict[str, Callable[..., Any]] = {
    "bits": counters.bits,
    "uniform": counters.uniform,
    "randint": counters.randint,
}

_ASKED: dict[str, Callable[[float], bool]] = {
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
}


def _mix(a: Any, b: Any, t: Any) -> Any:
    """Each operation rounds."""
    with np.errstate(all="ignore"):
        return a * (type(t)(1) - t) + b * t


def _round(name: str, t: Scalar, payload: Payload) -> Payload:
    of_float, _ = _ROUND[name]
    if isinstance(t, WeakInt) or (isinstance(t, Dtype) and t.kind != "float"):
        return payload
    if isinstance(t, WeakFloat):
        return float(of_float(np.float64(payload)))
    return of_float(payload)
