"""Runs IR, typed or decomposed, on NumPy arrays; a second opinion on what IR means.

Python's operators have the meaning of the language page, taken from Python integers, Python floats
and NumPy. The operators of the targets are C's: what C leaves undefined raises
`UndefinedBehaviour`, and so does an access outside an array. Nothing of `tack.passes` is used.

Every expression is turned into a closure over the environment, a dict of names, once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from oracle import counters

from tack.ir import nodes as ir
from tack.ir import operations
from tack.model.dtypes import DType, i64, numpy_name

__all__ = ["EndlessLoop", "UndefinedBehaviour", "evaluate", "run"]

Env = dict[str, Any]
Run = Callable[[Env], Any]
ROUNDS = 100_000
BREAK, CONTINUE = "break", "continue"


class UndefinedBehaviour(Exception):
    """C says nothing about what the program does."""


DRAWN: dict[str, Callable[..., Any]] = {
    "bits": counters.bits,
    "uniform": counters.uniform,
    "randint": lambda seed, counter, *bounds, generator: counters.randint(
        seed, counter, *(wrap(each, i64) for each in bounds), generator=generator
    ),
}
"""The random numbers of generated programs."""


class EndlessLoop(Exception):
    """A loop ran for longer than any test means it to."""


FLOATS = {
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


def wrap(value: int, dtype: DType) -> int:
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def rounded_or_wrapped(value: Any, dtype: DType) -> Any:
    return rounded(value, dtype) if dtype.is_float else wrap(value, dtype)


def rounded(value: Any, dtype: DType) -> Any:
    """A number as a float of ``dtype``, rounded once."""
    if dtype.is_narrow_float and np.isfinite(value) and value != 0:
        return nearest(Fraction(float(value)), FLOATS[dtype.name])
    return FLOATS[dtype.name](value)


# Integers: what the language page says, and what C says.


def power(a: int, b: int, dtype: DType) -> int:
    if b >= 0:
        return pow(a, b, 1 << dtype.bits)
    return int(Fraction(a) ** b) if a in (1, -1) else 0


def cdiv(a: int, b: int, dtype: DType) -> int:
    if b == 0 or (dtype.kind == "int" and b == -1 and a == -(1 << (dtype.bits - 1))):
        raise UndefinedBehaviour(f"{a} / {b} at {dtype}")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def shifted(a: int, b: int, dtype: DType, left: bool) -> int:
    if not 0 <= b < dtype.bits:
        raise UndefinedBehaviour(f"a shift of {dtype} by {b}")
    return a << b if left else a >> b


INTEGER: dict[str, Callable[[int, int, DType], int]] = {
    "+": lambda a, b, t: a + b,
    "-": lambda a, b, t: a - b,
    "*": lambda a, b, t: a * b,
    "&": lambda a, b, t: a & b,
    "|": lambda a, b, t: a | b,
    "^": lambda a, b, t: a ^ b,
    "//": lambda a, b, t: a // b if b else 0,
    "%": lambda a, b, t: a % b if b else 0,
    "<<": lambda a, b, t: a << (b % t.bits),
    ">>": lambda a, b, t: a >> (b % t.bits),
    "**": power,
    "cdiv": cdiv,
    "cmod": lambda a, b, t: a - b * cdiv(a, b, t),
    "shl": lambda a, b, t: shifted(a, b, t, True),
    "shr": lambda a, b, t: shifted(a, b, t, False),
}


def float_floor_divide(a: Any, b: Any) -> Any:
    """CPython's own for doubles; NumPy's port of it for f32; written out for 16 bits."""
    if b == 0:
        return a / b
    if isinstance(a, np.float64):
        return np.float64(float(a) // float(b))
    if isinstance(a, np.float32):
        return np.floor_divide(a, b)
    kind, rest = type(a), np.fmod(a, b)
    quotient = (a - rest) / b
    if rest != 0 and (b < 0) != (rest < 0):
        quotient = quotient - kind(1)
    if quotient == 0:
        return np.copysign(kind(0), a / b)
    floored = np.floor(quotient)
    return floored + kind(1) if quotient - floored > kind(0.5) else floored


def float_remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return a * np.nan
    if isinstance(a, np.float64):
        return np.float64(float(a) % float(b))
    if isinstance(a, np.float32):
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    if rest == 0:
        return np.copysign(type(a)(0), b)
    return rest + b if (b < 0) != (rest < 0) else rest


FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": float_floor_divide,
    "%": float_remainder,
    "**": lambda a, _: a * a,  # the exponent is the literal 2
}

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
}


def extreme(name: str, a: Any, b: Any) -> Any:
    """The first of equals; a number rather than NaN."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min(a, b) if name == "min" else max(a, b)


def nearest(value: Fraction, dtype: type) -> Any:
    """The float of a NumPy type nearest to a fraction that is not 0, ties to even."""
    info = ml_dtypes.finfo(dtype)
    exponent = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    if Fraction(2) ** exponent > abs(value):
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    steps = round(value / unit)
    if abs(steps * unit) > Fraction(float(info.max)):
        return dtype(math.inf if value > 0 else -math.inf)
    return dtype(float(steps * unit)) if steps else dtype(math.copysign(0.0, value))


def fma(a: Any, b: Any, c: Any) -> Any:
    if not all(map(np.isfinite, (a, b, c))):
        return c if np.isfinite(a) and np.isfinite(b) else a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else type(a)(0.0)
    return nearest(exact, type(a))


CALLS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sqrt": np.sqrt,
    "fma": fma,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "round": np.rint,
    "sign": lambda a: type(a)(int(a > 0) - int(a < 0)) if a == a else a,
    "step": lambda edge, x: type(x)(not x < edge),
    "mix": lambda a, b, t: a * (type(t)(1) - t) + b * t,
}

ASKED: dict[str, Callable[[Any], Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def bit_count(name: str, value: int, dtype: DType, c: bool) -> int:
    bits = value & (1 << dtype.bits) - 1
    if name == "popcount":
        return bits.bit_count()
    if c and not bits:
        raise UndefinedBehaviour(f"{name} of 0")
    found = dtype.bits - bits.bit_length() if name == "clz" else (bits & -bits).bit_length() - 1
    return found if bits else dtype.bits


def saturated(value: Any, dtype: DType) -> int:
    if np.isnan(value):
        return 0
    low, high = dtype.minimum, dtype.maximum
    if np.isinf(value):
        return high if value > 0 else low
    return min(max(whole(value), low), high)


def whole(value: Any) -> int:
    """The whole part of a float; ``int`` of a bfloat16 goes through an int64 and overflows."""
    return int(float(value))


def c_cast(value: Any, dtype: DType) -> int:
    if not np.isfinite(value) or not dtype.minimum <= whole(value) <= dtype.maximum:
        raise UndefinedBehaviour(f"a cast of {value} to {dtype}")
    return whole(value)


def float_of_integer(value: int, dtype: DType) -> Any:
    """Rounded once, to nearest, ties to even."""
    if dtype.bits == 64:
        return np.float64(value)
    if dtype.is_narrow_float:
        kind = FLOATS[dtype.name]
        return nearest(Fraction(value), kind) if value else kind(0)
    spare = max(abs(value).bit_length() - 24, 0)
    return np.float32(math.ldexp(float(round(Fraction(value, 1 << spare))), spare))


def atomically(op: str, old: Any, new: Any, expected: Any) -> Any:
    match op:
        case "add" | "sub":
            return old + new if op == "add" else old - new
        case "and" | "or" | "xor":
            return {"and": old & new, "or": old | new, "xor": old ^ new}[op]
        case "min" | "max":
            return extreme(op, old, new)
        case "cas":
            nan = old.dtype.itemsize == 2 and old != old and expected != expected
            return new if nan or old.tobytes() == expected.tobytes() else old
    return new


def typed(node: ir.Expression) -> DType:
    """The dtype that every expression has."""
    assert node.dtype is not None
    return node.dtype


class Compiler:
    """Closures for one function; ``c`` gives casts the meaning that they have in C."""

    def __init__(self, function: ir.IRFunction, c: bool) -> None:
        self.function = function
        self.c = c

    def expression(self, node: ir.Expression) -> Run:
        run: Run = getattr(self, type(node).__name__)(node)
        return run

    def IRConstant(self, node: ir.IRConstant) -> Run:
        value: Any = node.value
        if typed(node).is_float:
            value = rounded(value, typed(node))
        return lambda env: value

    def IRName(self, node: ir.IRName) -> Run:
        name = node.name
        return lambda env: env[name]

    def IRBinOp(self, node: ir.IRBinOp) -> Run:
        left, right, dtype = self.expression(node.left), self.expression(node.right), typed(node)
        if dtype.is_float:
            of_floats = FLOAT[node.op]
            return lambda env: of_floats(left(env), right(env))
        of_integers = INTEGER[node.op]
        if dtype.is_bool:
            return lambda env: bool(of_integers(left(env), right(env), dtype))
        return lambda env: wrap(of_integers(left(env), right(env), dtype), dtype)

    def IRUnaryOp(self, node: ir.IRUnaryOp) -> Run:
        operand, dtype = self.expression(node.operand), typed(node)
        if node.op == "not":
            return lambda env: not operand(env)
        if dtype.is_float:
            return lambda env: -operand(env)
        if node.op == "~":
            return lambda env: wrap(~operand(env), dtype)
        return lambda env: wrap(-operand(env), dtype)

    def IRCompare(self, node: ir.IRCompare) -> Run:
        left, right, op = self.expression(node.left), self.expression(node.right), COMPARE[node.op]
        return lambda env: op(left(env), right(env))

    def IRBoolOp(self, node: ir.IRBoolOp) -> Run:
        left, right = self.expression(node.left), self.expression(node.right)
        if node.op == "and":
            return lambda env: left(env) and right(env)
        return lambda env: left(env) or right(env)

    def IRIfExp(self, node: ir.IRIfExp) -> Run:
        condition = self.expression(node.condition)
        one, other = self.expression(node.then_value), self.expression(node.else_value)
        return lambda env: one(env) if condition(env) else other(env)

    def IRCall(self, node: ir.IRCall) -> Run:
        args, name, dtype = [self.expression(arg) for arg in node.args], node.function, typed(node)
        if name in ("min", "max"):
            a, b = args
            return lambda env: extreme(name, a(env), b(env))
        if name in operations.PREDICATES:
            return lambda env: bool(ASKED[name](args[0](env)))
        if name in operations.BIT_COUNTS:
            return lambda env: bit_count(name, int(args[0](env)), dtype, self.c)
        if name in operations.RANDOM:
            generator, number, _ = name.split(".")
            drawn = DRAWN[number]
            return lambda env: rounded_or_wrapped(
                drawn(*(int(arg(env)) for arg in args), generator=generator), dtype
            )
        function = CALLS[name]
        if dtype.is_float:
            return lambda env: rounded(function(*(arg(env) for arg in args)), dtype)
        return lambda env: wrap(function(*(arg(env) for arg in args)), dtype)

    def IRCast(self, node: ir.IRCast) -> Run:
        value, dtype, source = self.expression(node.value), typed(node), typed(node.value)
        if dtype.is_float:
            if source.is_float:
                return lambda env: rounded(value(env), dtype)
            return lambda env: float_of_integer(int(value(env)), dtype)
        if source.is_float:
            convert = c_cast if self.c else saturated
            return lambda env: convert(value(env), dtype)
        return lambda env: wrap(int(value(env)), dtype)

    def IRBitcast(self, node: ir.IRBitcast) -> Run:
        value, source, dtype = self.expression(node.value), typed(node.value), typed(node)
        kind = np.dtype(f"u{dtype.bits // 8}")
        if source.is_float:
            return lambda env: int(np.asarray(rounded(value(env), source)).view(kind))
        result = FLOATS[dtype.name]
        return lambda env: np.asarray(value(env), kind).view(result)[()]

    def IRDimSize(self, node: ir.IRDimSize) -> Run:
        name, dim = node.array, node.dim
        return lambda env: env[name].shape[dim]

    def place(self, node: ir.IRArrayLoad | ir.IRArrayStore | ir.IRAtomic) -> Run:
        indices, name = [self.expression(index) for index in node.indices], node.array

        def place(env: Env) -> tuple[int, ...]:
            at, shape = tuple(index(env) for index in indices), env[name].shape
            for index, extent in zip(at, (env[name].size,) if node.flat else shape, strict=True):
                if not 0 <= index < extent:
                    raise UndefinedBehaviour(f"{name}{list(at)} outside {shape}")
            return tuple(map(int, np.unravel_index(at[0], shape))) if node.flat else at

        return place

    def IRArrayLoad(self, node: ir.IRArrayLoad) -> Run:
        place, name = self.place(node), node.array
        if typed(node).is_float:
            return lambda env: env[name][place(env)]
        return lambda env: int(env[name][place(env)])

    def IRTripCount(self, node: ir.IRTripCount) -> Run:
        start, end, step = map(self.expression, (node.start, node.end, node.step))
        return lambda env: len(range(start(env), end(env), step(env)))

    # Statements give None, BREAK or CONTINUE.

    def body(self, statements: Sequence[ir.Statement]) -> Run:
        steps = [getattr(self, type(node).__name__)(node) for node in statements]

        def run(env: Env) -> str | None:
            for step in steps:
                left = step(env)
                if left is not None:
                    return left
            return None

        return run

    def IRAssign(self, node: ir.IRAssign) -> Run:
        target, value = node.target, self.expression(node.value)

        def run(env: Env) -> None:
            env[target] = value(env)

        return run

    def IRArrayStore(self, node: ir.IRArrayStore) -> Run:
        name, place, value = node.array, self.place(node), self.expression(node.value)

        def run(env: Env) -> None:
            new = value(env)
            env[name][place(env)] = new

        return run

    def IRAtomic(self, node: ir.IRAtomic) -> Run:
        place, value, name = self.place(node), self.expression(node.value), node.array
        compare = None if node.compare is None else self.expression(node.compare)
        op, target = node.op, node.target

        def run(env: Env) -> None:
            dtype = env[name].dtype.type
            at = place(env)
            expected = None if compare is None else np.asarray(compare(env)).astype(dtype)
            new, old = np.asarray(value(env)).astype(dtype)[()], env[name][at]
            env[name][at] = atomically(op, old, new, expected)
            env[target] = int(old) if old.dtype.kind in "biu" else old

        return run

    def IRLocalArray(self, node: ir.IRLocalArray) -> Run:
        name, array = node.array, self.function.local_arrays[node.array]

        def run(env: Env) -> None:
            env[name] = np.zeros(array.dims, numpy_name(array.dtype))

        return run

    def IRIf(self, node: ir.IRIf) -> Run:
        condition = self.expression(node.condition)
        one, other = self.body(node.then_body), self.body(node.else_body)
        return lambda env: one(env) if condition(env) else other(env)

    def IRWhile(self, node: ir.IRWhile) -> Run:
        condition, body = self.expression(node.condition), self.body(node.body)

        def run(env: Env) -> None:
            for _ in range(ROUNDS):
                if not condition(env) or body(env) == BREAK:
                    return
            raise EndlessLoop

        return run

    def IRSequentialFor(self, node: ir.IRSequentialFor) -> Run:
        start, end, step = map(self.expression, (node.start, node.end, node.step))
        var, body = node.var, self.body(node.body)

        def run(env: Env) -> None:
            first, last, by = start(env), end(env), step(env)
            for number, value in enumerate(range(first, last, by) if by else ()):
                if number > ROUNDS:
                    raise EndlessLoop
                env[var] = value
                if body(env) == BREAK:
                    return

        return run

    def IRBreak(self, node: ir.IRBreak) -> Run:
        return lambda env: BREAK

    def IRContinue(self, node: ir.IRContinue) -> Run:
        return lambda env: CONTINUE


def run(function: ir.IRFunction, arguments: Env, *, c: bool = False) -> None:
    """Runs a kernel on arrays and scalars by name, iterations in order.

    ``c``: casts of floats to integers are C's, as they are after decomposition.
    """
    (loop,) = function.body
    assert isinstance(loop, ir.IRParallelFor)
    compiler = Compiler(function, c)
    with np.errstate(all="ignore"):
        extents = [compiler.expression(extent)(dict(arguments)) for extent in loop.extents]
        body = compiler.body(loop.body)
        for indices in itertools.product(*map(range, extents)):
            body({**arguments, **dict(zip(loop.index_vars, indices, strict=True))})


def evaluate(node: ir.Expression, function: ir.IRFunction, **names: Any) -> Any:
    """The value of a typed expression."""
    with np.errstate(all="ignore"):
        return Compiler(function, False).expression(node)(names)
