"""The oracle against facts that are not tack: CPython, NumPy, fractions, the language page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import numbers
from oracle.arrays import numpy_dtype
from oracle.types import DTYPES, F32, F64, I64, U8, OracleRefused, WeakInt, default_float, promote
from oracle.values import Value, call_builtin, literal

Load = Callable[[str], ModuleType]

INTEGERS = [each for each in DTYPES.values() if each.kind in ("signed", "unsigned")]
NUMPY = {name: numpy_dtype(name) for name in DTYPES}
doubles = st.floats(allow_subnormal=True)
singles = st.floats(width=32, allow_subnormal=True)
finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


def same(one: Any, other: Any) -> bool:
    """Equal in bits; all NaNs are one."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return bool(one == other) and math.copysign(1, one) == math.copysign(1, other)


def pairs_of(dtype: Any) -> st.SearchStrategy[tuple[int, int]]:
    edges = st.sampled_from([dtype.low, dtype.low + 1, 0, 1, dtype.high - 1, dtype.high])
    each = st.one_of(edges, st.integers(dtype.low, dtype.high))
    return st.tuples(each, each)


# Numbers.


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_integers_wrap_as_numpy_does(dtype: Any, data: st.DataObject) -> None:
    a, b = data.draw(pairs_of(dtype))
    with np.errstate(over="ignore"):
        x, y = np.array([a], NUMPY[dtype.name]), np.array([b], NUMPY[dtype.name])
        facts = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}
    for op, expected in facts.items():
        assert numbers.int_binary(op, a, b, dtype) == expected.item()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_division_floors_and_its_hazards_are_defined(dtype: Any, data: st.DataObject) -> None:
    a, b = data.draw(pairs_of(dtype))
    quotient = numbers.int_binary("//", a, b, dtype)
    rest = numbers.int_binary("%", a, b, dtype)
    if b == 0:
        assert (quotient, rest) == (0, 0)
    elif (a, b) == (dtype.low, -1):
        assert (quotient, rest) == (dtype.low, 0)
    else:
        assert (quotient, rest) == divmod(a, b)


def test_shift_counts_are_taken_modulo_the_width() -> None:
    assert numbers.int_binary("<<", 1, 9, U8) == 2
    assert numbers.int_binary("<<", 255, 4, U8) == 240
    assert numbers.int_binary(">>", -128, 7, DTYPES["i8"]) == -1
    assert numbers.int_binary(">>", 128, -1, U8) == 1
    assert numbers.int_binary(">>", -1, 64, I64) == -1


@given(base=st.integers(0, 255), exponent=st.integers(0, 300))
def test_powers_are_exact_modulo_the_width(base: int, exponent: int) -> None:
    assert numbers.int_binary("**", base, exponent, U8) == base**exponent % 256


def test_a_negative_exponent_leaves_only_units() -> None:
    i8 = DTYPES["i8"]
    found = {base: [numbers.int_pow(base, e, i8) for e in (-1, -2)] for base in (0, 1, -1, 2, -3)}
    assert found == {0: [0, 0], 1: [1, 1], -1: [-1, 1], 2: [0, 0], -3: [0, 0]}


@given(a=doubles, b=doubles)
def test_float_division_and_remainder_are_cpythons(a: float, b: float) -> None:
    x, y = np.float64(a), np.float64(b)
    if b == 0:
        expected = math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a)
        expected *= math.copysign(1, b)
        assert same(numbers.float_floordiv(x, y), expected)
        assert math.isnan(numbers.float_mod(x, y))
    else:
        assert same(numbers.float_floordiv(x, y), a // b)
        assert same(numbers.float_mod(x, y), a % b)


@given(a=singles, b=singles)
def test_f32_remainders_are_numpys(a: float, b: float) -> None:
    x, y = np.float32(a), np.float32(b)
    with np.errstate(all="ignore"):
        quotient, rest = np.float32(x) // y, np.float32(x) % y
    assert same(numbers.float_mod(x, y), rest)
    # NumPy rounds its quotient from another starting point only next to infinity.
    if math.isfinite(quotient):
        assert same(numbers.float_floordiv(x, y), quotient)


@given(value=finite)
def test_fractions_round_to_the_nearest_float(value: float) -> None:
    if value:
        assert same(numbers.round_fraction(Fraction(value), F64), np.float64(value))
        with np.errstate(over="ignore"):
            assert same(numbers.round_fraction(Fraction(value), F32), np.float32(value))


@given(top=st.integers(-(2**80), 2**80).filter(bool), bottom=st.integers(1, 2**1080))
def test_fractions_round_as_cpython_rounds_quotients(top: int, bottom: int) -> None:
    assert same(numbers.round_fraction(Fraction(top, bottom), F64), np.float64(top / bottom))


@given(value=st.integers(-(2**64), 2**64))
def test_integers_become_the_nearest_float(value: int) -> None:
    assert numbers.convert(value, F64) == float(value)
    single = numbers.convert(value, F32)
    for other in (
        np.nextafter(single, np.float32(np.inf)),
        np.nextafter(single, np.float32(-np.inf)),
    ):
        assert abs(int(single) - value) <= abs(int(other) - value)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(value=doubles)
def test_float_casts_saturate(dtype: Any, value: float) -> None:
    found = numbers.convert(np.float64(value), dtype)
    if math.isnan(value):
        assert found == 0
    elif value >= dtype.high + 1:
        assert found == dtype.high
    elif value <= dtype.low - 1:
        assert found == dtype.low
    else:
        assert found == math.trunc(value)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, INTEGERS)))
@given(data=st.data())
def test_integer_casts_are_numpys(source: Any, target: Any, data: st.DataObject) -> None:
    value = data.draw(st.integers(source.low, source.high))
    expected = np.array([value], NUMPY[source.name]).astype(NUMPY[target.name])
    assert numbers.convert(value, target) == expected.item()


@given(a=finite, b=finite, c=finite)
def test_fma_is_rounded_once(a: float, b: float, c: float) -> None:
    found = numbers.fma(np.float64(a), np.float64(b), np.float64(c), F64)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        try:
            expected = float(exact)
        except OverflowError:
            expected = math.inf if exact > 0 else -math.inf
        assert same(found, expected)
    else:
        assert same(found, math.copysign(0, a) * math.copysign(1, b) + c if a * b == 0 else 0.0)


@given(a=singles, b=singles, c=singles)
def test_f32_fma_is_near_the_exact_value(a: float, b: float, c: float) -> None:
    found = numbers.fma(np.float32(a), np.float32(b), np.float32(c), F32)
    wide = a * b + c  # a * b is exact in a double
    if math.isnan(wide) or math.isinf(wide):
        assert same(found, wide)
    else:
        with np.errstate(over="ignore"):
            assert abs(float(found) - wide) <= abs(float(np.spacing(np.float32(wide)))) or (
                math.isinf(found)
            )


def test_infinities_and_signed_zeros_in_fma() -> None:
    inf, nan = math.inf, math.nan
    facts = [
        (inf, 0.0, 1.0, nan),
        (inf, 1.0, -inf, nan),
        (1e300, 1e300, -inf, -inf),
        (-0.0, 1.0, -0.0, -0.0),
        (-0.0, 1.0, 0.0, 0.0),
        (2.0, 3.0, -6.0, 0.0),
        (5e-324, 0.5, -0.0, 0.0),
        (-5e-324, 0.25, 0.0, -0.0),
    ]
    for a, b, c, expected in facts:
        found = numbers.fma(np.float64(a), np.float64(b), np.float64(c), F64)
        assert same(found, expected), (a, b, c)


def test_min_and_max_prefer_numbers_and_then_the_first() -> None:
    nan = np.float64(math.nan)
    zero, minus = np.float64(0.0), np.float64(-0.0)
    for op in ("min", "max"):
        assert numbers.pick(op, nan, zero) == 0
        assert numbers.pick(op, zero, nan) == 0
        assert math.isnan(numbers.pick(op, nan, nan))
        assert same(numbers.pick(op, zero, minus), zero)
        assert same(numbers.pick(op, minus, zero), minus)


# Types.


@pytest.mark.parametrize(("a", "b"), list(itertools.product(INTEGERS, INTEGERS)))
def test_integers_promote_as_numpys_do_where_a_type_holds_both(a: Any, b: Any) -> None:
    expected = np.result_type(NUMPY[a.name], NUMPY[b.name])
    if expected.kind == "f":
        with pytest.raises(OracleRefused):
            promote(a, b)
    else:
        common = promote(a, b)
        assert NUMPY[str(common)] == expected


def test_an_integer_meets_a_float_and_becomes_it() -> None:
    for each in (*INTEGERS, DTYPES["bool"]):
        assert promote(each, F32) == F32
        assert promote(F64, each) == F64
    assert promote(F32, F64) == F64


def test_literals_take_the_type_that_holds_them() -> None:
    assert (Value(U8, 250) + literal(10)).payload == 4
    wide = Value(U8, 250) + literal(300)
    assert (wide.type, wide.payload) == (I64, 550)
    assert (literal(2) * Value(F32, np.float32(0.5))).type == F32
    assert (Value(U8, 3) * literal(0.5)).type == F32
    with pytest.raises(OracleRefused):
        Value(DTYPES["u64"], 1) + literal(-1)


def test_literals_combine_exactly() -> None:
    three_hundred = literal(200) + literal(100)
    assert three_hundred.type == WeakInt(300, 300, literal=True)
    assert (three_hundred // literal(2) + Value(U8, 1)).type == U8


def test_operations_of_single_values() -> None:
    i8 = DTYPES["i8"]
    assert (-Value(i8, -128)).payload == -128
    assert call_builtin("abs", Value(i8, -128)).payload == -128
    assert (-Value(U8, 1)).payload == 255
    assert (~Value(U8, 1)).payload == 254
    assert (Value(i8, 7) / Value(i8, 2)).type == F32
    assert (Value(DTYPES["bool"], True) + Value(DTYPES["bool"], True)).payload == 2
    assert call_builtin("int", Value(F64, np.float64("nan"))).payload == 0
    assert call_builtin("u8", literal(300)).payload == 44
    assert call_builtin("u8", literal(300.0)).payload == 255


# Kernels.


def outcome(load: Load, body: str, *arrays: np.ndarray[Any, Any], **scalars: Any) -> dict[str, Any]:
    """Run `body` as one iteration over arrays x, y, ... and give the types of its locals."""
    names = ", ".join([*"xyz"[: len(arrays)], *scalars])
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    module = load(f"@tack.kernel\ndef kernel({names}):\n    for i in range(1):\n{lines}\n")
    arguments = [*arrays, *scalars.values()]
    oracle.run(module.kernel, arguments)
    return {name: str(t) for name, t in oracle.check(module.kernel, arguments).items()}


def test_an_accumulator_has_the_type_of_what_it_sums(load: Load) -> None:
    x, y = np.array([2**63, 5], np.uint64), np.zeros(1, np.uint64)
    types = outcome(load, "acc = 0\nfor k in range(2):\n    acc += x[k]\ny[i] = acc", x, y)
    assert types["acc"] == "u64"
    assert y[0] == 2**63 + 5


def test_a_counter_without_a_type_is_i64(load: Load) -> None:
    x = np.zeros(1, np.uint8)
    types = outcome(load, "n = 0\nn += 1\nm = n + x[i]\nh = 0.0\nh = h + 0.5", x)
    assert (types["n"], types["m"], types["h"]) == ("i64", "i64", "f32")


def test_a_local_that_holds_only_literals_stays_weak(load: Load) -> None:
    x = np.array([250], np.uint8)
    types = outcome(load, "c = 10\nd = c\nx[i] = x[i] + c\nw = x[i] + c\nv = x[i] + d", x)
    assert (types["w"], types["v"], types["d"]) == ("u8", "i64", "i64")
    assert x[0] == 4


def test_a_weak_local_counts_with_all_its_literals(load: Load) -> None:
    x = np.array([250], np.uint8)
    types = outcome(load, "c = 10\nif x[i] > 300:\n    c = 300\nw = x[i] + c", x)
    assert types["w"] == "i64"


def test_an_f64_array_makes_floats_f64(load: Load) -> None:
    x, y = np.zeros(1, np.float64), np.zeros(1, np.int32)
    assert outcome(load, "w = y[i] * 0.1", x, y)["w"] == "f64"
    assert outcome(load, "w = x[i] * 0.1", y)["w"] == "f32"


def test_what_floats_default_to_ends_with_the_run(load: Load) -> None:
    x = np.zeros(1)
    outcome(load, "w = 0.5\nx[i] = w", x)
    assert default_float() == F32
    with pytest.raises(OracleRefused):
        outcome(load, "x[i] = -x.shape", x)
    assert default_float() == F32


def test_a_choice_has_the_type_of_both_branches(load: Load) -> None:
    x, y = np.array([200], np.uint8), np.zeros(1, np.int32)
    types = outcome(load, "w = (x[i] if x[i] > 0 else y[i]) + x[i]\ny[i] = w", x, y)
    assert types["w"] == "i32"
    assert y[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        "x[i] = 1.5",
        "x[i] = x[-1]",
        "w = y[i] + x[i]",
        "w = x[i]\nw = y[i]",
        "w = y[i] + -1",
        "w = x[i] ** -1",
        "w = x[i, i]",
        "x[i] += 0.5",
        "w = y[i] if y[i] else x[i]",
        "w = x[i] & 0.5",
        "x[i > 0] = 1",
        "w = x[x[i] == y[i]]",
        "x.flat[i > 0] = 1",
        "tack.atomic_add(x, i > 0, 1)",
        "w = tack.i32x2(1, 2)\nx[i] = w[i > 0]",
        "for k in range(i > 0):\n    x[i] = 1",
    ],
)
def test_what_the_language_refuses(load: Load, body: str) -> None:
    with pytest.raises(OracleRefused):
        outcome(load, body, np.zeros(1, np.int32), np.zeros(1, np.uint64))


def test_only_the_chosen_side_is_evaluated(load: Load) -> None:
    x = np.zeros(1, np.int32)
    module = load(
        """
        @tack.func
        def count(x):
            x[0] += 1
            return x[0]

        @tack.kernel
        def kernel(x, y):
            for i in range(1):
                a = False and count(x)
                b = True or count(x)
                c = 1 if True else count(x)
                d = 0 < count(x) < 5 < count(x)
                x[0] += count(x) * 10
        """
    )
    oracle.run(module.kernel, [x, x])
    assert x[0] == 2 + 30


def test_iterations_start_with_fresh_scalars_in_any_order(load: Load) -> None:
    module = load(
        """
        @tack.kernel
        def kernel(x, n: tack.i8):
            for i, j in tack.ndrange(2, 3):
                n += 1
                x[i, j] = n
        """
    )
    for order in (iter, reversed):
        x = np.zeros((2, 3), np.int64)
        oracle.run(module.kernel, [x, 127], order=order)  # type: ignore[arg-type]
        assert (x == -128).all()


def test_device_functions_are_typed_for_each_call(load: Load) -> None:
    module = load(
        """
        @tack.func
        def twice(a, by=2):
            if a > 100:
                return a * by, 1
            return a, 0

        @tack.kernel
        def kernel(x, y):
            for i in range(x.shape[0]):
                a, b = twice(x[i])
                c, d = twice(by=3, a=y[i])
                y[i] = a + c + b + d
        """
    )
    x, y = np.array([200], np.uint8), np.array([200], np.int32)
    types = oracle.check(module.kernel, [x, y])
    assert (str(types["a"]), str(types["c"])) == ("u8", "i32")
    oracle.run(module.kernel, [x, y])
    assert y[0] == 400 % 256 + 600 + 2


def test_a_choice_between_literals_is_one(load: Load) -> None:
    x = np.array([250], np.uint8)
    types = outcome(load, "c = 1 if x[i] > 9 else 10\nw = x[i] + c\nv = c + 0\nu = x[i] + v", x)
    assert (types["w"], types["v"], types["u"]) == ("u8", "i64", "i64")


def test_an_annotated_local_keeps_its_type(load: Load) -> None:
    x = np.array([250], np.int32)
    types = outcome(load, "w: tack.u8 = x[i] + 10\nw += 1000\nx[i] = w", x)
    assert types["w"] == "u8"
    assert x[0] == (4 + 1000) % 256


def test_what_cannot_be_reached_changes_no_types(load: Load) -> None:
    x = np.zeros(1, np.int32)
    types = outcome(load, "w = x[i]\ncontinue\nw = 0.5", x)
    assert types["w"] == "i32"


def test_functions_stand_for_what_they_are_given_and_give(load: Load) -> None:
    module = load(
        """
        @tack.func
        def same(a):
            return a

        @tack.func
        def assigned(a):
            a = a
            return a

        @tack.func
        def declared(a: tack.i16):
            return a

        @tack.kernel
        def kernel(x):
            for i in range(1):
                c = 10
                p = x[i] + same(c)
                q = x[i] + assigned(c)
                r = x[i] + same(10)
                s = x[i] + declared(10)
        """
    )
    types = oracle.check(module.kernel, [np.zeros(1, np.uint8)])
    assert [str(types[name]) for name in "pqrs"] == ["u8", "i64", "u8", "i16"]


def test_recursion_is_refused(load: Load) -> None:
    module = load(
        """
        @tack.func
        def f(a):
            return f(a)

        @tack.kernel
        def kernel(x):
            for i in range(1):
                x[i] = f(x[i])
        """
    )
    with pytest.raises(OracleRefused, match="calls itself"):
        oracle.run(module.kernel, [np.zeros(1, np.int32)])


def test_loads_see_stores_through_aliases(load: Load) -> None:
    module = load(
        """
        @tack.kernel
        def kernel(x, y):
            for i in range(1):
                x[0] = 258
                x[0] += y[1]
        """
    )
    x = np.zeros(1, np.uint16)
    oracle.run(module.kernel, [x, x.view(np.uint8)])
    assert x[0] == 259
