"""The host program of a kernel computes the bounds of its parallel loop as the language says."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import ir_interpreter
import numpy as np
import pytest

from tack import _core
from tack.compile import generate
from tack.errors import CompileError
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
    IRParallelFor,
    IRParam,
    IRTripCount,
    IRUnaryOp,
)
from tack.ir.positions import Positions
from tack.model.dtypes import DTYPES, DType, bool_, f32, i64
from tack.model.launch import HOST_OPS, HostOp
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.passes.host import host_program
from tack.passes.pack import Layout, pack
from tack.render.renderer import renderer_for

INTEGERS = [dtype for dtype in DTYPES.values() if not dtype.is_float]


# A second evaluator, in Python integers


def _quotient(a: int, b: int) -> int:
    return a // b if b else 0


OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b, t: a + b,
    "sub": lambda a, b, t: a - b,
    "mul": lambda a, b, t: a * b,
    "floordiv": lambda a, b, t: _quotient(a, b),
    "mod": lambda a, b, t: a - b * _quotient(a, b) if b else 0,
    "min": lambda a, b, t: min(a, b),
    "max": lambda a, b, t: max(a, b),
    "and": lambda a, b, t: a & b,
    "or": lambda a, b, t: a | b,
    "xor": lambda a, b, t: a ^ b,
    "shl": lambda a, b, t: a << (b % max(t.bits, 1)),
    "shr": lambda a, b, t: a >> (b % max(t.bits, 1)),
    "lt": lambda a, b, t: a < b,
    "le": lambda a, b, t: a <= b,
    "eq": lambda a, b, t: a == b,
    "ne": lambda a, b, t: a != b,
}
UNARY: dict[str, Callable[[int], int]] = {
    "neg": lambda a: -a,
    "abs": abs,
    "invert": lambda a: ~a,
    "cast": lambda a: a,
}


def evaluate_host(host: Sequence[HostOp], slots: Sequence[int], loops: int) -> list[int]:
    """What the operations of `HOST_OPS` do, on integers of any size that wrap at their type."""
    stack: list[int] = []
    extents = [0] * loops
    for name, *operands in host:
        dtype = DTYPES[operands[-1]] if operands and isinstance(operands[-1], str) else i64
        if name == "const":
            stack.append(operands[0])
        elif name == "slot":
            stack.append(dtype.wrap(slots[operands[0]]))
        elif name == "loop":
            extents[operands[0]] = max(i64.wrap(stack.pop()), 0)
        elif name == "not":
            stack.append(int(stack.pop() == 0))
        elif name == "select":
            other, then, condition = stack.pop(), stack.pop(), stack.pop()
            stack.append(then if condition else other)
        elif name == "range":
            step, end, start = (i64.wrap(stack.pop()) for _ in range(3))
            if step <= 0:
                raise ValueError("step")
            stack.append(max(0, -(-(end - start) // step)))
        elif name in UNARY:
            stack.append(dtype.wrap(UNARY[name](dtype.wrap(stack.pop()))))
        else:
            right, left = dtype.wrap(stack.pop()), dtype.wrap(stack.pop())
            result = OPERATIONS[name](left, right, dtype)
            stack.append(int(result) if isinstance(result, bool) else dtype.wrap(result))
    assert not stack
    return extents


def test_the_launcher_has_these_operations_and_no_others() -> None:
    assert tuple(HOST_OPS) == _core.HOST_OPS


# Random extents


class Extents:
    """Random typed integer expressions over scalars of every type and two extents."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def tree(self, dtype: DType, depth: int) -> Expression:
        if depth == 0:
            return self.leaf(dtype)
        kinds = [self.choice, self.cast]
        kinds += [self.comparison, self.logic] if dtype.is_bool else [self.binary, self.call]
        return self.rng.choice(kinds)(dtype, depth - 1)

    def leaf(self, dtype: DType) -> Expression:
        pick = self.rng.random()
        if dtype is i64 and pick < 0.3:
            return IRDimSize("x", self.rng.randrange(2), i64)
        if pick < 0.6:
            return IRName(f"n_{dtype.name}", dtype)
        values = [dtype.minimum, dtype.maximum, 0, 1, 2, 7]
        values += [-1, -3] if dtype.is_signed else []
        value = self.rng.choice([value for value in values if dtype.holds(value)])
        return IRConstant(bool(value) if dtype.is_bool else value, dtype)

    def binary(self, dtype: DType, depth: int) -> Expression:
        if self.rng.random() < 0.15:
            return IRUnaryOp(self.rng.choice("-~"), self.tree(dtype, depth), dtype)
        if self.rng.random() < 0.05:
            exponent = IRConstant(self.rng.randrange(4), dtype)
            return IRBinOp("**", self.tree(dtype, depth), exponent, dtype)
        operator = self.rng.choice(["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^"])
        return IRBinOp(operator, self.tree(dtype, depth), self.tree(dtype, depth), dtype)

    def call(self, dtype: DType, depth: int) -> Expression:
        function = self.rng.choice(["abs", "min", "max"])
        count = 1 if function == "abs" else 2
        return IRCall(function, [self.tree(dtype, depth) for _ in range(count)], dtype)

    def choice(self, dtype: DType, depth: int) -> Expression:
        condition = self.tree(bool_, depth)
        return IRIfExp(condition, self.tree(dtype, depth), self.tree(dtype, depth), dtype)

    def cast(self, dtype: DType, depth: int) -> Expression:
        value = self.tree(self.rng.choice(INTEGERS), depth)
        if dtype.is_bool:
            zero = IRConstant(False if value.dtype is bool_ else 0, value.dtype)
            return IRCompare("!=", value, zero, bool_)
        return IRCast(value, dtype)

    def comparison(self, dtype: DType, depth: int) -> Expression:
        of = self.rng.choice(INTEGERS)
        operator = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return IRCompare(operator, self.tree(of, depth), self.tree(of, depth), bool_)

    def logic(self, dtype: DType, depth: int) -> Expression:
        if self.rng.random() < 0.3:
            return IRUnaryOp("not", self.tree(bool_, depth), bool_)
        kind = self.rng.choice([IRBoolOp, IRBinOp])
        operator = self.rng.choice(["and", "or"] if kind is IRBoolOp else ["&", "|", "^"])
        return kind(operator, self.tree(bool_, depth), self.tree(bool_, depth), bool_)

    def values(self) -> dict[str, int]:
        return {
            f"n_{dtype.name}": self.rng.choice(
                [dtype.minimum, dtype.maximum, 1, self.rng.randint(dtype.minimum, dtype.maximum)]
            )
            for dtype in INTEGERS
        }


def kernel_with(extents: list[Expression]) -> tuple[IRFunction, Layout]:
    params = [IRParam("x", f32, (None, None))]
    params += [IRParam(f"n_{dtype.name}", dtype) for dtype in INTEGERS]
    names = [f"i{k}" for k in range(len(extents))]
    loop = IRParallelFor(names, extents, [])
    function = IRFunction("extents", params, [loop], f32, Positions())
    return function, pack(function)


def slot_values(
    layout: Layout, function: IRFunction, names: dict[str, int], shape: tuple[int, ...]
) -> list[int]:
    values: list[int] = []
    for kind, number, *rest in layout.slots:
        if kind == "scalar":
            values.append(names[function.params[number].name])
        else:
            values.append(shape[rest[0]] if kind == "extent" else 0)
    return [i64.wrap(value) for value in values]


def test_random_extents_mean_what_the_language_says() -> None:
    make = Extents(1)
    for case in range(1500):
        extents = [make.tree(i64, 1 + case % 5) for _ in range(1 + case % 3)]
        function, layout = kernel_with(extents)
        host = host_program(function, extents, layout)
        names, shape = make.values(), (make.rng.randrange(9), make.rng.randrange(9))
        wanted = [
            max(ir_interpreter.evaluate(e, function, x=np.empty(shape), **names), 0)
            for e in extents
        ]
        slots = slot_values(layout, function, names, shape)
        assert evaluate_host(host, slots, len(extents)) == wanted
        assert _core.evaluate_host(host, slots, len(extents)) == wanted


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        *((0, 10, 1), (0, 10, 3), (3, 3, 1), (5, 3, 1), (-7, 8, 4), (10, 11, 100)),
        *((0, 2**63 - 1, 1), (-(2**63), -1, 2), (-(2**63), 2**63 - 1, 5), (-5, 2**62, 2**61)),
    ],
)
def test_ranges_have_as_many_rounds_as_in_python(start: int, end: int, step: int) -> None:
    first, last, stride = (IRConstant(value, i64) for value in (start, end, step))
    trips = IRTripCount(first, last, stride, i64)
    function, layout = kernel_with([trips])
    host = host_program(function, [trips], layout)
    wanted = [max(0, -(-(end - start) // step))]
    assert evaluate_host(host, [], 1) == wanted
    assert _core.evaluate_host(host, [], 1) == wanted


def test_a_step_that_is_not_positive_is_an_error() -> None:
    trips = IRTripCount(IRConstant(0, i64), IRConstant(9, i64), IRName("n_i64", i64), i64)
    function, layout = kernel_with([trips])
    host = host_program(function, [trips], layout)
    for step in (0, -1):
        with pytest.raises(ValueError, match="step"):
            _core.evaluate_host(host, [step], 1)


def test_only_what_is_used_has_a_slot() -> None:
    extent = IRBinOp("*", IRDimSize("x", 1, i64), IRName("n_i64", i64), i64)
    _, layout = kernel_with([extent])
    assert layout.slots == (("extent", 0, 1), ("scalar", 5, "i64"))
    assert layout.written == ()


# What the host cannot compute

REFUSED = {
    "int(scale * 2.0)": "it is a float",
    "int(tack.floor(scale))": "it is a float",
    "x.shape[0] / 2": "is an integer",
    "2 ** n": "an exponent is a literal",
    "n ** 65": "an exponent is a literal",
    "int(x[0])": "array elements",
    "m": "'m'",
}


@pytest.mark.parametrize("bound", REFUSED)
def test_bounds_that_the_host_cannot_compute_are_refused_where_they_stand(
    bound: str, load: Callable[[str], ModuleType]
) -> None:
    module = load(f"""
        @tack.kernel
        def kernel(x, n, scale):
            for i in range({bound}):
                x[i] = scale
    """)
    with pytest.raises(CompileError) as refusal:
        source(module.kernel, "f32[:], i64, f32")
    text = str(refusal.value)
    assert REFUSED[bound] in text
    assert f"range({bound})" in text
    assert "^" in text


def test_small_literal_powers_are_multiplied_out(load: Callable[[str], ModuleType]) -> None:
    module = load("""
        @tack.kernel
        def kernel(x, n):
            for i in range(n ** 3):
                x[i] = 1
    """)
    launch = source(module.kernel, "f32[:], i64").launch
    slots = [5 if slot[0] == "scalar" else 0 for slot in launch.slots]
    assert _core.evaluate_host(launch.host, slots, 1) == [125]


def source(kernel: Any, signature: str) -> Any:
    variant = Variant(kernel.definition, Signature.parse(signature), Target("cpu", "x86-64-v2"))
    return generate(variant, renderer_for(variant.target))
