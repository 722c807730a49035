"""Decomposed operations give what the language page says, and run nothing that C leaves undefined.

Integers of 8 bits exhaustively, the others at their edges; floats against CPython (doubles) and
NumPy's port of CPython's algorithm (f32).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import ir_interpreter
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_building import array, binary, elementwise, kernel, lowered, name, prepared, scalar

from tack.ir import nodes as ir
from tack.ir import operations
from tack.ir.traversal import copy_tree, walk_ir
from tack.ir.verify import verify_ir
from tack.model.dtypes import DTYPES, DType, bool_, f32, f64, i8, i16, i32, i64, u8, u16, u64
from tack.passes.decompose import decompose

SIGNED = [DTYPES[each] for each in ("i8", "i16", "i32", "i64")]
UNSIGNED = [DTYPES[each] for each in ("u8", "u16", "u32", "u64")]
INTEGERS = [*SIGNED, *UNSIGNED]
FLOATS = [f32, f64]

FLOAT_EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -3.0, 7.0, 0.1, -0.1, 1e-3, 3.7, 10.0, 1e10),
    *(math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-45, -1e-45, 1.1754943508222875e-38),
    *(3.4028234663852886e38, -3.4028234663852886e38, 1.7976931348623157e308, 2.2e-308, 1e300),
    *(16777215.0, 16777216.0, 16777217.0, 9007199254740991.0, 9007199254740993.0, 1 / 3, -1 / 3),
]


def numpy_type(dtype: DType) -> np.dtype[Any]:
    letter = {"bool": "uint8", "int": f"int{dtype.bits}", "uint": f"uint{dtype.bits}"}
    return np.dtype(letter.get(dtype.kind, f"float{dtype.bits}"))


def filled(values: Iterable[Any], dtype: DType) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore"):
        return np.array(list(values)).astype(numpy_type(dtype))


def integers(values: list[int], dtype: DType) -> np.ndarray[Any, Any]:
    return np.array([dtype.wrap(each) for each in values], numpy_type(dtype))


def apply(function: ir.IRFunction, **arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The results of an `elementwise` kernel once it is decomposed."""
    decomposed = verify_ir(decompose(copy_tree(function)), "decomposed")
    (param,) = [each for each in function.params if each.name == "out"]
    assert param.dtype is not None
    count = len(next(iter(arrays.values())))
    out = np.zeros(count, numpy_type(param.dtype))
    arguments = {f"{each}_in": values for each, values in arrays.items()}
    ir_interpreter.run(decomposed, {"out": out, **arguments}, c=True)
    return out


def edges(dtype: DType) -> list[int]:
    """The values of an integer type where something may happen."""
    if dtype.bits == 8:
        return list(range(dtype.minimum, dtype.maximum + 1))
    near = {0, 1, 2, 3, 5, 7, 10, 63, 64, 65, 127, 128, 255, 256}
    near |= {dtype.bits - 1, dtype.bits, dtype.bits + 1}
    near |= {dtype.maximum - each for each in range(3)} | {dtype.maximum // 2, dtype.maximum // 3}
    return sorted({dtype.wrap(sign * each) for each in near for sign in (1, -1)} | {dtype.minimum})


def check(
    function: ir.IRFunction, dtypes: list[DType], expected: Callable[..., int], result: DType
) -> None:
    """Compares a kernel on every combination of edges with exact arithmetic, wrapped."""
    rows = list(itertools.product(*map(edges, dtypes)))
    columns = {
        letter: integers(list(column), dtype)
        for letter, column, dtype in zip("ab", zip(*rows, strict=True), dtypes, strict=False)
    }
    found = apply(function, **columns)
    wanted = [result.wrap(expected(*row)) for row in rows]
    wrong = [
        (row, want, got) for row, want, got in zip(rows, wanted, found, strict=True) if want != got
    ]
    assert not wrong[:5]


def floor_divide(a: int, b: int) -> int:
    return math.floor(Fraction(a, b)) if b else 0


def remainder(a: int, b: int) -> int:
    return a - b * math.floor(Fraction(a, b)) if b else 0


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_floor_division(dtype: DType) -> None:
    check(binary("//", dtype), [dtype, dtype], floor_divide, dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_remainder(dtype: DType) -> None:
    check(binary("%", dtype), [dtype, dtype], remainder, dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["//", "%"])
def test_literal_divisors(dtype: DType, op: str) -> None:
    exact = floor_divide if op == "//" else remainder
    for divisor in edges(dtype)[:: 3 if dtype.bits == 8 else 1]:
        node = ir.IRBinOp(op, name("a", dtype), ir.IRConstant(divisor, dtype), dtype)
        check(elementwise(node, ("a", dtype)), [dtype], lambda a, d=divisor: exact(a, d), dtype)


@pytest.mark.parametrize("op", ["//", "%"])
def test_literal_dividends(op: str) -> None:
    exact = floor_divide if op == "//" else remainder
    for dividend in (-128, -7, 0, 7, 127):
        node = ir.IRBinOp(op, ir.IRConstant(dividend, i8), name("b", i8), i8)
        function = elementwise(node, ("b", i8))
        out = apply(function, b=integers(edges(i8), i8))
        assert out.tolist() == [i8.wrap(exact(dividend, b)) for b in edges(i8)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("count", [i8, u8, i64, u64], ids=str)
def test_shifts_count_modulo_the_width(dtype: DType, count: DType) -> None:
    left = lambda a, b: a << (b % dtype.bits)  # noqa: E731
    right = lambda a, b: a >> (b % dtype.bits)  # noqa: E731
    check(binary("<<", dtype, count), [dtype, count], left, dtype)
    check(binary(">>", dtype, count), [dtype, count], right, dtype)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, -1, 64])
def test_literal_counts(count: int) -> None:
    node = ir.IRBinOp(">>", name("a", i8), ir.IRConstant(count, i64), i8)
    check(elementwise(node, ("a", i8)), [i8], lambda a: a >> (count % 8), i8)


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return int(Fraction(a) ** b) if a in (1, -1) else 0


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("exponent", [i8, u8, i64], ids=str)
def test_powers_are_exact_modulo_the_width(dtype: DType, exponent: DType) -> None:
    if dtype.bits == exponent.bits == 8:
        rows = [*range(-9, 10), -128, 127, 255]
        a = integers([each for each in rows for _ in edges(exponent)], dtype)
        b = integers(edges(exponent) * len(rows), exponent)
        out = apply(binary("**", dtype, exponent), a=a, b=b)
        assert out.tolist() == [
            dtype.wrap(power(int(x), int(y))) for x, y in zip(a, b, strict=True)
        ]
    else:
        check(binary("**", dtype, exponent), [dtype, exponent], power, dtype)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 10, 63, 64, 65, 200])
def test_literal_exponents(exponent: int) -> None:
    node = ir.IRBinOp("**", name("a", i16), ir.IRConstant(exponent, i64), i16)
    function = elementwise(node, ("a", i16))
    check(function, [i16], lambda a: power(a, exponent), i16)
    loops = any(isinstance(each, ir.IRWhile) for each in walk_ir(decompose(function)))
    assert loops == (exponent > 64)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_absolute_minimum_and_maximum(dtype: DType) -> None:
    absolute = elementwise(ir.IRCall("abs", [name("a", dtype)], dtype), ("a", dtype))
    check(absolute, [dtype], abs, dtype)
    for function, exact in (("min", min), ("max", max)):
        node = ir.IRCall(function, [name("a", dtype), name("b", dtype)], dtype)
        check(elementwise(node, ("a", dtype), ("b", dtype)), [dtype, dtype], exact, dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["-", "~"])
def test_unary_operators_wrap(dtype: DType, op: str) -> None:
    node = ir.IRUnaryOp(op, name("a", dtype), dtype)
    exact = (lambda a: -a) if op == "-" else (lambda a: ~a)
    check(elementwise(node, ("a", dtype)), [dtype], exact, dtype)


# Floats.


def same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """NaN sign and payload aside."""
    both = np.isnan(one) & np.isnan(other)
    bits = np.dtype(f"u{one.itemsize}")
    return bool(np.all(both | (one.view(bits) == other.view(bits))))


def pairs(dtype: DType) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    values = list(itertools.product(FLOAT_EDGES, repeat=2))
    return filled([a for a, _ in values], dtype), filled([b for _, b in values], dtype)


def python_floor_divide(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        if b == 0:
            return a / b
        return np.floor_divide(a, b) if isinstance(a, np.float32) else float(a) // float(b)


def python_remainder(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        if b == 0:
            return math.nan
        return np.remainder(a, b) if isinstance(a, np.float32) else float(a) % float(b)


PYTHON = {"//": python_floor_divide, "%": python_remainder}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["//", "%"])
def test_float_division_is_pythons(dtype: DType, op: str) -> None:
    a, b = pairs(dtype)
    found = apply(binary(op, dtype), a=a, b=b)
    assert same_bits(found, filled(map(PYTHON[op], a, b), dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["//", "%"])
@settings(max_examples=60)
@given(data=st.data())
def test_float_division_of_any_numbers(dtype: DType, op: str, data: st.DataObject) -> None:
    numbers = st.lists(st.floats(width=dtype.bits), min_size=8, max_size=8)
    a, b = filled(data.draw(numbers), dtype), filled(data.draw(numbers), dtype)
    found = apply(binary(op, dtype), a=a, b=b)
    assert same_bits(found, filled(map(PYTHON[op], a, b), dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("function", ["min", "max"])
def test_float_extremes_prefer_numbers_and_the_first_of_equals(dtype: DType, function: str) -> None:
    a, b = pairs(dtype)
    node = ir.IRCall(function, [name("a", dtype), name("b", dtype)], dtype)
    found = apply(elementwise(node, ("a", dtype), ("b", dtype)), a=a, b=b)
    python = min if function == "min" else max
    wanted = [
        (y if np.isnan(x) else x) if np.isnan(x) or np.isnan(y) else python(x, y)
        for x, y in zip(a, b, strict=True)
    ]
    assert same_bits(found, filled(wanted, dtype))


def around(dtype: DType, source: DType) -> list[float]:
    """Floats about the limits of an integer type."""
    kind = numpy_type(source).type
    values = []
    for limit in (dtype.minimum, 0, dtype.maximum, dtype.maximum + 1, -1, 1, dtype.maximum // 2):
        middle = kind(float(limit))
        low, high = np.nextafter(middle, kind(-np.inf)), np.nextafter(middle, kind(np.inf))
        values += [middle, low, high, middle - kind(0.5), middle + kind(0.5), -middle]
    return [*map(float, values), *FLOAT_EDGES]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_casts_to_integers_saturate_and_nan_is_0(dtype: DType, source: DType) -> None:
    a = filled(around(dtype, source), source)
    found = apply(elementwise(ir.IRCast(name("a", source), dtype), ("a", source)), a=a)

    def exact(value: Any) -> int:
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return dtype.maximum if value > 0 else dtype.minimum
        return min(max(int(value), dtype.minimum), dtype.maximum)

    assert found.tolist() == [exact(each) for each in a]


@pytest.mark.parametrize("op", sorted(operations.COMPARISONS))
def test_comparisons_of_floats_are_left_to_c(op: str) -> None:
    node = ir.IRCompare(op, name("a", f64), name("b", f64), bool_)
    function = elementwise(node, ("a", f64), ("b", f64))
    assert str(decompose(copy_tree(function))) == str(function)


# What is known leaves out what is not needed.


def text_of(body: str, signature: str) -> str:
    return str(prepared(lowered(body, signature)))


def test_naturals_are_divided_as_c_does() -> None:
    text = text_of("x[(i // 3) % 7] = 0", "x: u8[:]")
    assert "x[((i cdiv 3:i64) cmod 7:i64)] = 0:u8" in text
    text = text_of("for k in range(9):\n    x[k % x.shape[0]] = 0", "x: u8[:]")
    assert "(k cmod x.shape[0]) if (x.shape[0] != 0:i64) else 0:i64" in text
    assert "t." not in text


def test_powers_of_two_are_shifts_and_masks() -> None:
    text = text_of("x[0] = (n // 8) + (n % 8)", "x: i64[:], n: i64")
    assert "((n shr 3:i64) + (n & 7:i64))" in text


def test_a_local_that_is_set_once_keeps_its_range() -> None:
    text = text_of("half = x.shape[0] // 2\nx[0] = half % n", "x: i64[:], n: u8")
    assert "cmod" in text
    assert " & " not in text


def test_an_unsigned_type_needs_no_signs() -> None:
    assert str(decompose(binary("//", u16))).count("if") == 1


# Guards.


def guarded(body: str, signature: str, **arguments: Any) -> np.ndarray[Any, Any]:
    """Runs a kernel typed and decomposed, and gives what both wrote to ``out``."""
    results = []
    for stage in ("typed", "decomposed"):
        function = prepared(lowered(body, signature), stage)
        out = np.zeros(4, np.int64)
        ir_interpreter.run(function, {"out": out, **arguments}, c=stage == "decomposed")
        results.append(out)
    assert results[0].tolist() == results[1].tolist()
    return results[1]


def test_what_and_guards_stays_guarded() -> None:
    body = "out[0] = 1 if k < x.shape[0] and x[k] // n > 1 else 2"
    x = np.array([9], np.int64)
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=0, n=-2)[0] == 2
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=0, n=2)[0] == 1
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=5, n=2)[0] == 2


def test_what_or_guards_stays_guarded() -> None:
    body = "out[0] = 1 if k >= x.shape[0] or x[k] % n == 1 else 2"
    x = np.array([9], np.int64)
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=5, n=2)[0] == 1
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=0, n=-5)[0] == 2


def test_what_a_choice_guards_stays_guarded() -> None:
    body = "out[0] = x[k] // n if k < x.shape[0] else (n % k if n > 0 else -1)"
    x = np.array([9], np.int64)
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=0, n=-2)[0] == -5
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=5, n=7)[0] == 2
    assert guarded(body, "out: i64[:], x: i64[:], k: i64, n: i64", x=x, k=5, n=-7)[0] == -1


def test_a_while_condition_is_evaluated_every_round() -> None:
    body = """
k = n
while k // 3 > 0:
    k -= 1
    if k == 5:
        continue
    out[0] += 1
out[1] = k
"""
    out = guarded(body, "out: i64[:], n: i64", n=9)
    assert out.tolist()[:2] == [6, 2]


def test_a_condition_between_branches_is_evaluated_where_it_is_reached() -> None:
    body = """
if n > 5:
    out[0] = 1
elif x[n] // m == 2:
    out[0] = 2
else:
    out[0] = 3
"""
    x = np.array([5, 9], np.int64)
    assert guarded(body, "out: i64[:], x: i64[:], n: i64, m: i64", x=x, n=9, m=2)[0] == 1
    assert guarded(body, "out: i64[:], x: i64[:], n: i64, m: i64", x=x, n=0, m=2)[0] == 2


# Loops.


def rounds(start: int, end: int, step: int, literal: bool) -> list[int]:
    """The values that a decomposed loop gives its variable, four at most."""
    by = str(step) if literal else "step"
    body = f"n = 0\nfor k in range(start, end, {by}):\n    out[n] = k\n    n += 1\n"
    body += "    if n == 4:\n        break\nlast[0] = n"
    text = "out: i64[:], last: i64[:], start: i64, end: i64, step: i64"
    function = prepared(lowered(body, text))
    out, last = np.zeros(4, np.int64), np.zeros(1, np.int64)
    arguments = {"out": out, "last": last, "start": start, "end": end, "step": step}
    ir_interpreter.run(function, arguments, c=True)
    return out[: last[0]].tolist()


LOOP_EDGES = [0, 1, -1, 5, -5, 6, i64.maximum, i64.maximum - 1, i64.minimum, i64.minimum + 1]
STEPS = [1, -1, 2, -2, 3, 7, i64.maximum, i64.minimum]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("literal", [True, False])
def test_loops_run_what_range_runs(step: int, literal: bool) -> None:
    for start, end in itertools.product(LOOP_EDGES, repeat=2):
        expected = list(itertools.islice(range(start, end, step), 4))
        assert rounds(start, end, step, literal) == expected, (start, end)


def test_a_step_of_zero_runs_nothing() -> None:
    assert rounds(0, 9, 0, literal=False) == []


def test_arguments_of_range_are_evaluated_once() -> None:
    body = """
for k in range(a, b, c):
    a = 100
    b = 0
    c = 7
    out[0] += k
"""
    text = "out: i64[:], start: i64, end: i64"
    out = guarded(f"a = start\nb = end\nc = 2\n{body}", text, start=1, end=8)
    assert out[0] == 1 + 3 + 5 + 7


def test_the_variable_may_be_assigned_and_keeps_its_last_value() -> None:
    body = "k = 40\nfor k in range(n, 9, 3):\n    out[0] += 1\n    k += 100\nout[1] = k"
    assert guarded(body, "out: i64[:], n: i64", n=0).tolist()[:2] == [3, 106]
    assert guarded(body, "out: i64[:], n: i64", n=9).tolist()[:2] == [0, 40]


# Whole kernels.


def test_the_host_keeps_its_own_operators() -> None:
    extent = ir.IRBinOp("//", name("n"), ir.IRConstant(2, i64), i64)
    function = kernel([scalar("n"), array("out", u8)], [], extents=[extent])
    assert "//" in str(decompose(function))


def test_nothing_is_left_that_c_leaves_undefined() -> None:
    body = "x[0] = (a // b) % (a ** b) + (a << b) - (a >> b) + abs(a) + tack.i32(f // g % f)"
    function = prepared(lowered(body, "x: i32[:], a: i32, b: i32, f: f32, g: f32"))
    operators = {each.op for each in walk_ir(function) if isinstance(each, ir.IRBinOp)}
    assert operators <= operations.TARGET_BINARY
    names = [each.target for each in walk_ir(function) if isinstance(each, ir.IRAssign)]
    assert list(dict.fromkeys(names)) == list(function.locals)
    assert i32 in function.locals.values()
