"""The rules of types: literals, promotion, locals, stores, and what is refused with what advice."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from ir_building import lowered, prepared

import tack
from tack.ir import nodes as ir
from tack.ir.traversal import statements_of, walk_ir
from tack.model.dtypes import DTYPES, i64, numpy_name
from tack.model.errors import CompileError

SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
FLOATS = ["f32", "f64"]
NUMBERS = [*SIGNED, *UNSIGNED, *FLOATS]


def local_types(body: str, signature: str) -> dict[str, str]:
    function = prepared(lowered(body, signature), "inferred")
    return {name: dtype.name for name, dtype in function.locals.items()}


def type_of(expression: str, **params: str) -> str:
    """The type of an expression of scalar parameters and of ``x``, a u8 array.

    Choosing between a local and itself keeps its type and makes it no literal.
    """
    names = "".join(f", {name}: {dtype}" for name, dtype in params.items())
    body = f"value = {expression}\nvalue = value if i < 1 else value"
    return local_types(body, f"x: u8[:]{names}")["value"]


def refusal(body: str, signature: str, stage: str = "typed") -> str:
    with pytest.raises(CompileError) as caught:
        prepared(lowered(body, signature), stage)
    assert caught.value.position is not None
    return caught.value.message


# Promotion.


def promoted(a: str, b: str) -> str | None:
    """The narrowest type that holds both ranges, spelled out anew."""
    if a == b:
        return a
    if a[0] == "f" or b[0] == "f":
        return max(each for each in (a, b) if each[0] == "f")
    bits = {each: int(each[1:]) for each in (a, b)}
    if a[0] == b[0]:
        return max(a, b, key=lambda each: bits[each])
    signed, unsigned = sorted((a, b))
    wide = max(bits[signed], 2 * bits[unsigned])
    return f"i{wide}" if wide <= 64 else None


@pytest.mark.parametrize("a", NUMBERS)
@pytest.mark.parametrize("b", NUMBERS)
@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%"])
def test_arithmetic_promotes_to_the_narrowest_type_that_holds_both(a: str, b: str, op: str) -> None:
    expected = promoted(a, b)
    if expected is None:
        message = refusal(f"value = a {op} b", f"a: {a}, b: {b}", "inferred")
        assert "no common type" in message
        assert f"cast one of them: tack.{a}(...)" in message
    else:
        assert type_of(f"a {op} b", a=a, b=b) == expected


@pytest.mark.parametrize("a", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("b", [*SIGNED, *UNSIGNED])
def test_division_of_integers_is_f32(a: str, b: str) -> None:
    assert type_of("a / b", a=a, b=b) == "f32"


@pytest.mark.parametrize(
    ("expression", "params", "expected"),
    [
        ("a / b", {"a": "i64", "b": "f64"}, "f64"),
        ("a / b", {"a": "bool", "b": "bool"}, "f32"),
        ("a + b", {"a": "bool", "b": "u8"}, "u8"),
        ("a + b", {"a": "bool", "b": "bool"}, "i64"),
        ("a * b", {"a": "bool", "b": "f32"}, "f32"),
        ("-a", {"a": "bool"}, "i64"),
        ("-a", {"a": "u8"}, "u8"),
        ("~a", {"a": "i16"}, "i16"),
        ("abs(a)", {"a": "bool"}, "i64"),
        ("abs(a)", {"a": "i8"}, "i8"),
        ("min(a, b)", {"a": "bool", "b": "bool"}, "i64"),
        ("max(a, b)", {"a": "u8", "b": "f32"}, "f32"),
        ("max(a, b, 2)", {"a": "u8", "b": "i8"}, "i16"),
        ("a ** b", {"a": "u8", "b": "i64"}, "u8"),
        ("a ** b", {"a": "bool", "b": "u64"}, "i64"),
        ("a ** b", {"a": "f32", "b": "i64"}, "f32"),
        ("a ** b", {"a": "u8", "b": "f16"}, "f16"),
        ("a ** b", {"a": "f32", "b": "f64"}, "f64"),
        ("a ** 2", {"a": "f16"}, "f16"),
        ("a ** 2", {"a": "f8e4m3"}, "f32"),
        ("a", {"a": "f8e5m2"}, "f8e5m2"),
        ("-a", {"a": "f8e5m2"}, "f32"),
        ("a if b else a", {"a": "f8e4m3", "b": "bool"}, "f8e4m3"),
        ("a if b else 0.1", {"a": "f8e4m3", "b": "bool"}, "f32"),
        ("tack.floor(a)", {"a": "f8e4m3"}, "f32"),
        ("max(a, b)", {"a": "f8e4m3", "b": "f8e4m3"}, "f32"),
        ("a ** 0.5", {"a": "i64"}, "f32"),
        ("2.0 ** a", {"a": "i64"}, "f32"),
        ("a ** -1", {"a": "f64"}, "f64"),
        ("tack.pow(a, b)", {"a": "i64", "b": "u8"}, "f32"),
        ("tack.exp(a)", {"a": "i64"}, "f32"),
        ("a << b", {"a": "i8", "b": "u64"}, "i8"),
        ("a >> b", {"a": "u16", "b": "bool"}, "u16"),
        ("1 << a", {"a": "u8"}, "i64"),
        ("a & b", {"a": "u8", "b": "i16"}, "i16"),
        ("a & 1", {"a": "bool"}, "i64"),
        ("tack.floor(a)", {"a": "f32"}, "f32"),
        ("tack.floor(a)", {"a": "i8"}, "i8"),
        ("tack.trunc(a)", {"a": "f64"}, "f64"),
        ("tack.sqrt(a)", {"a": "i64"}, "f32"),
        ("tack.sqrt(a)", {"a": "f64"}, "f64"),
        ("tack.sqrt(2.0)", {}, "f32"),
        ("tack.fma(a, b, 1)", {"a": "f32", "b": "f64"}, "f64"),
        ("round(a)", {"a": "f64"}, "f64"),
        ("tack.round(a)", {"a": "u8"}, "u8"),
        ("tack.copysign(a, b)", {"a": "f32", "b": "f64"}, "f64"),
        ("tack.copysign(a, 1)", {"a": "f32"}, "f32"),
        ("tack.isnan(a)", {"a": "f64"}, "bool"),
        ("tack.clamp(a, b, 2)", {"a": "u8", "b": "i8"}, "i16"),
        ("tack.clamp(a, 0, 300)", {"a": "u8"}, "i64"),
        ("tack.sign(a)", {"a": "u16"}, "u16"),
        ("tack.sign(a)", {"a": "bool"}, "i64"),
        ("tack.step(a, b)", {"a": "i8", "b": "f32"}, "f32"),
        ("tack.mix(a, b, 0.5)", {"a": "f32", "b": "i32"}, "f32"),
        ("tack.popcount(a)", {"a": "u8"}, "u8"),
        ("tack.clz(a)", {"a": "i64"}, "i64"),
        ("tack.ctz(a)", {"a": "bool"}, "i64"),
        ("tack.popcount(7)", {}, "i64"),
        ("int(a)", {"a": "u8"}, "i64"),
        ("float(a)", {"a": "u8"}, "f32"),
        ("tack.i16(a)", {"a": "f64"}, "i16"),
        ("a if a > b else b", {"a": "u8", "b": "i8"}, "i16"),
        ("a & b", {"a": "bool", "b": "bool"}, "bool"),
        ("x.shape[0]", {}, "i64"),
        ("i", {}, "i64"),
        ("x[0] + 1", {}, "u8"),
        ("x[0] + 300", {}, "i64"),
        ("x[0] - -1", {}, "i64"),
        ("x[0] + (200 + 50)", {}, "u8"),
        ("x[0] + (200 + 100)", {}, "i64"),
        ("x[0] + (300 - 100)", {}, "u8"),
        ("x[0] * 0.5", {}, "f32"),
        ("x[0] * (1 << 3)", {}, "u8"),
        ("a + 18446744073709551615", {"a": "u64"}, "u64"),
        ("a + (2 ** 64 - 1)", {"a": "u64"}, "u64"),
        ("a + 1", {"a": "f32"}, "f32"),
        ("a + 0.1", {"a": "f64"}, "f64"),
        ("a + 0.1", {"a": "i64"}, "f32"),
        ("1 / 3", {}, "f32"),
        ("1 + 2", {}, "i64"),
        ("0.5", {}, "f32"),
    ],
)
def test_types_of_expressions(expression: str, params: dict[str, str], expected: str) -> None:
    assert type_of(expression, **params) == expected


@pytest.mark.parametrize(
    "expression",
    ["a < b", "a == 1", "not a", "a and b", "a or b", "0 <= a < b", "a != 0.5", "bool(a)"],
)
def test_comparisons_and_logic_are_bool(expression: str) -> None:
    assert local_types(f"value = {expression}", "a: i32, b: f32")["value"] == "bool"


def test_floats_without_a_type_are_f64_if_an_array_is() -> None:
    assert local_types("t = float(a)\nt = t + 1", "x: f64[:], a: i64") == {"t": "f64"}
    assert local_types("t = a * 0.5", "x: f64[:], a: i64") == {"t": "f64"}
    assert local_types("t = a * 0.5", "x: f32[:], a: i64") == {"t": "f32"}


# Locals.


def test_a_local_has_one_type_joined_over_its_assignments() -> None:
    assert local_types("t = x[0]\nt = a", "x: u8[:], a: i8") == {"t": "i16"}
    assert local_types("t = True\nt = a", "a: i8") == {"t": "i8"}
    assert local_types("t = 1\nif a > 0:\n    t = x[0]", "x: f32[:], a: i8") == {"t": "f32"}


def test_an_accumulator_takes_the_type_of_what_it_adds() -> None:
    body = "t = 0\nfor k in range(9):\n    t += x[k]"
    assert local_types(body, "x: u64[:]") == {"t": "u64", "k": "i64"}
    assert local_types(body, "x: f32[:]")["t"] == "f32"


def test_a_counter_is_i64() -> None:
    assert local_types("t = 0\nwhile t < 9:\n    t += 1", "x: u8[:]") == {"t": "i64"}
    assert local_types("t = 0.5\nt = t * 2", "x: u8[:]") == {"t": "f32"}


def test_types_travel_through_a_chain_of_locals_in_a_loop() -> None:
    body = "a = 0\nb = 0\nfor k in range(9):\n    a = b\n    b = a + x[k]"
    assert local_types(body, "x: i16[:]") == {"a": "i16", "b": "i16", "k": "i64"}


def test_a_local_that_is_assigned_only_literals_stays_weak() -> None:
    function = prepared(lowered("t = 3\nx[0] = x[0] + t", "x: u8[:]"), "inferred")
    assert function.locals == {"t": i64}
    assert (function.weak["t"].low, function.weak["t"].high) == (3, 3)
    prepared(function := lowered("t = 3\nx[0] = x[0] + t", "x: u8[:]"))
    assert "x[0:i64] = (x[0:i64] + 3:u8)" in str(function)


def test_its_greatest_literal_decides_whether_it_fits() -> None:
    body = "t = 3\nif a > 0:\n    t = 300\nvalue = x[0] + t"
    assert local_types(body, "x: u8[:], a: i64")["value"] == "i64"
    assert local_types(body.replace("300", "30"), "x: u8[:], a: i64")["value"] == "u8"


def test_literals_of_both_kinds_make_a_weak_float() -> None:
    body = "t = 1\nif a > 0:\n    t = 0.1\nx[0] = x[0] * t"
    function = prepared(lowered(body, "x: f64[:], a: i64"), "typed")
    assert function.locals["t"].name == "f64"
    assert function.weak["t"].floating


def test_a_weak_float_is_exact_where_it_meets_f64() -> None:
    function = prepared(lowered("t = 0.1\nx[0] = x[0] * t", "x: f64[:]"))
    assert "0.1:f64" in str(function)


def test_a_literal_is_rounded_to_the_type_that_it_meets() -> None:
    function = prepared(lowered("x[0] = x[0] * 0.1", "x: f32[:]"), "typed")
    (constant,) = [
        node
        for node in walk_ir(function)
        if isinstance(node, ir.IRConstant) and node.value not in (0, 1)
    ]
    assert constant.value == 0.10000000149011612
    assert constant.dtype is not None
    assert constant.dtype.name == "f32"


def test_a_large_integer_is_rounded_to_f32_once() -> None:
    # Just above the middle of two f32 values; a double would first round it down to the middle.
    value = 2**60 + 2**36 + 1
    function = prepared(lowered(f"x[0] = tack.f32({value})", "x: f32[:]"))
    assert f"{float(2**60 + 2**37)!r}:f32" in str(function)


def test_no_integer_literal_is_out_of_the_range_of_its_type() -> None:
    function = prepared(lowered("x[0] = x[0] + (2 ** 70 - 2 ** 70 + 5)", "x: u8[:]"), "typed")
    assert "5:u8" in str(function)


def test_a_declared_local_has_its_type_whatever_is_assigned() -> None:
    assert local_types("t: tack.f32 = a\nt = b", "a: i64, b: f64") == {"t": "f32"}
    assert "cast it: tack.u8(...)" in refusal("t: tack.u8 = a", "a: f32")


def test_a_loop_variable_may_become_a_float() -> None:
    function = prepared(lowered("for k in range(9):\n    k = k * 0.5\n    x[0] = k", "x: f32[:]"))
    assert function.locals["k"].name == "f32"
    (loop,) = [s for s in statements_of(function) if isinstance(s, ir.IRSequentialFor)]
    assert function.locals[loop.var].name == "i64"


def test_a_choice_between_literals_is_one() -> None:
    body = "t = 1 if a > 0 else 2\nvalue = x[0] + t"
    assert local_types(body, "x: u8[:], a: i64")["value"] == "u8"
    assert local_types(body.replace("2", "300"), "x: u8[:], a: i64")["value"] == "i64"


def test_temporaries_change_no_type() -> None:
    text = "k = 3\nt = k + 1\nx[0] = x[0] + t"
    function = lowered(text, "x: u8[:]")
    function.temporaries = {"t"}
    assert "x[0:i64] = (x[0:i64] + u8(t))" in str(prepared(function, "typed"))
    assert "x[0:i64] = u8((i64(x[0:i64]) + t))" in str(prepared(lowered(text, "x: u8[:]"), "typed"))


# Conversions.


@pytest.mark.parametrize(
    ("target", "value", "params"),
    [
        ("u8", "a", "i64"),
        ("f32", "a", "i64"),
        ("f32", "a", "f64"),
        ("i64", "a", "bool"),
        ("f32", "a", "bool"),
        ("u8", "300", "i64"),
    ],
)
def test_a_store_converts_within_its_kind_and_to_floats(
    target: str, value: str, params: str
) -> None:
    prepared(lowered(f"x[0] = {value}", f"x: {target}[:], a: {params}"))


@pytest.mark.parametrize("value", ["a", "0.5", "a * 2", "1 / 2", "tack.sqrt(4)"])
def test_a_float_into_an_integer_array_is_refused(value: str) -> None:
    message = refusal(f"x[0] = {value}", "x: u8[:], a: f32")
    assert "an element of x is u8" in message
    assert "cast it: tack.u8(...)" in message


@pytest.mark.parametrize("target", ["f8e5m2", "f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("digits", [310, 400, 1000])
def test_a_literal_beyond_a_float_is_stored_as_an_infinity(target: str, digits: int) -> None:
    for sign in ("", "-"):
        function = prepared(lowered(f"x[0] = {sign}(10 ** {digits})", f"x: {target}[:]"), "typed")
        assert f"= {sign}inf:{target}" in str(function)


def test_conditions_are_the_truth_of_a_value() -> None:
    function = prepared(lowered("if a:\n    x[0] = 1", "x: u8[:], a: f32"), "typed")
    assert "if (a != 0.0:f32):" in str(function)


def test_an_index_is_converted_and_a_float_is_refused() -> None:
    function = prepared(lowered("x[a] = 1", "x: u8[:], a: u16"), "typed")
    assert "x[i64(a)] = 1:u8" in str(function)
    assert "an index of x is an integer, not an f32" in refusal("x[a] = 1", "x: u8[:], a: f32")


REFUSED = [
    ("value = a + b", "a: i64, b: u64", "i64 and u64 have no common type"),
    ("value = a < b", "a: i8, b: u64", "cast one of them: tack.i8(...) or tack.u64(...)"),
    ("value = a + -1", "a: u64", "-1 does not fit u64"),
    ("value = a + 18446744073709551615", "a: i64", "18446744073709551615 does not fit i64"),
    ("value = ~(a > 0)", "a: i64", "'~' of a bool; write not"),
    ("value = ~a", "a: f32", "'~' takes integers, not an f32"),
    ("value = a & 0.5", "a: i64", "'&' takes integers, not a float literal"),
    ("value = a << b", "a: f32, b: i64", "'<<' takes integers"),
    ("value = a ** -1", "a: i64", "negative power"),
    ("value = 2 ** -1", "a: i64", "negative power"),
    ("value = 1 // 0", "a: i64", "divides a literal by zero"),
    ("value = 1 << -1", "a: i64", "negative count"),
    ("value = tack.fma(a, 1, 2)", "a: i64", "fma takes floats, not an i64"),
    ("value = tack.copysign(a, 2)", "a: i64", "copysign takes floats, not an i64"),
    ("value = tack.mix(a, 1, 2)", "a: i64", "mix takes floats, not an i64"),
    ("value = tack.isnan(a)", "a: i64", "isnan takes floats, not an i64: every integer is finite"),
    ("value = tack.popcount(a)", "a: f32", "popcount takes integers, not an f32; cast it"),
    ("for k in range(a):\n    pass", "a: f32", "an argument of range is an integer"),
    ("for k in range(a):\n    pass", "a: u64", "cast it: tack.i64(...)"),
    ("t = a\nt = b", "a: i64, b: u64", "'t' is i64 elsewhere and u64 here"),
    ("t = 2 ** 64", "a: i64", "fits no integer type"),
    ("t = 18446744073709551615\nt = -1", "a: i64", "fits no integer type"),
]


@pytest.mark.parametrize(("body", "signature", "words"), REFUSED)
def test_refusals_say_what_and_what_to_do(body: str, signature: str, words: str) -> None:
    assert words in refusal(body, signature)


def test_a_refusal_points_at_the_expression() -> None:
    with pytest.raises(CompileError) as caught:
        prepared(lowered("value = a * (a + b)", "a: i64, b: u64"), "typed")
    assert str(caught.value).splitlines()[-2:] == [
        "    value = a * (a + b)",
        "                 ^^^^^",
    ]
    assert caught.value.position is not None
    assert caught.value.position.line == 5


def test_an_extent_is_an_integer_that_i64_holds() -> None:
    source = lowered("x[i] = 0", "x: u8[:], a: u64")
    (loop,) = source.body
    assert isinstance(loop, ir.IRParallelFor)
    loop.extents = [ir.IRName("a")]
    with pytest.raises(CompileError, match="which does not hold every u64"):
        prepared(source, "typed")


# The page of the docs.

PAGE = Path(__file__).parents[1] / "docs" / "arithmetic.md"
ROW = re.compile(r"^\| `([^|]+)` \| `([^|]+)` \| (\w+) \|$", re.MULTILINE)


PLAIN_ROW = re.compile(r"^\| `([^|]+)` \| `([^|]+)` \| (\w+) \| (\w+) \|$", re.MULTILINE)


@pytest.mark.parametrize(
    ("expression", "signature", "expected", "plain"),
    PLAIN_ROW.findall(PAGE.read_text(encoding="utf-8")),
)
def test_plain_python_promotes_as_numpy_does(
    expression: str, signature: str, expected: str, plain: str
) -> None:
    names = [each.split(": ") for each in signature.split(", ")]
    given = {name: np.dtype(numpy_name(DTYPES[dtype])).type(3) for name, dtype in names}
    try:
        found = type(eval(expression, given)).__name__
    except OverflowError as error:
        found = type(error).__name__
    assert found.removesuffix("_") == plain
    assert local_types(f"value = {expression}", signature)["value"] == expected
    cast = re.sub(r"[ab]", rf"tack.{expected}(\g<0>)", expression)
    assert local_types(f"value = {cast}", signature)["value"] == expected
    assert type(eval(cast, given | {"tack": tack})).__name__ == numpy_name(DTYPES[expected])


@pytest.mark.parametrize(
    ("expression", "signature", "expected"), ROW.findall(PAGE.read_text(encoding="utf-8"))
)
def test_rows_of_the_docs(expression: str, signature: str, expected: str) -> None:
    body = f"value = {expression}\nvalue = value if i < 1 else value"
    assert local_types(body, signature)["value"] == expected
