"""Terms, of which elementary functions are made: each operation means one thing wherever it runs.

Formulas of the tests stand in for those of ``tack.atan2`` and are run on NumPy, by C and by LLVM.
"""

from __future__ import annotations

import doctest
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generator import load_module
from harness import differences, levels
from twins import Pair, Twins

import tack
import tack.math
from tack.elementary import evaluate as evaluation
from tack.elementary.evaluate import evaluate
from tack.elementary.functions import FUNCTIONS, formula_of
from tack.elementary.precise import Double, double, polynomial, product, quick_sum, sum_of
from tack.elementary.term import (
    Guarded,
    Term,
    absolute,
    as_float,
    bits_of,
    constant,
    convert,
    copysign,
    floor,
    from_bits,
    guarded,
    integer,
    nearest,
    select,
    sqrt,
    trace,
    trunc,
)
from tack.ir.operations import ELEMENTARY
from tack.lang import elementary
from tack.model.dtypes import bool_, f32, f64, i32, i64, u8, u32, u64

KINDS = {"f32": np.float32, "f64": np.float64}
DTYPES = {"f32": f32, "f64": f64}

TEXT = """
import tack

@tack.kernel
def both(x, y, out):
    for i in range(x.shape[0]):
        out[i] = tack.atan2(x[i], y[i])

@tack.kernel
def guards(x, out):
    for i in range(x.shape[0]):
        a = x[i]
        n = 0
        while tack.sin(a) > -0.5 and n < 12 or tack.cos(a) > 0.99:
            a = a * 9 + 1
            n += 1
            if n > 15:
                break
        out[0, i] = a
        out[1, i] = n
        out[2, i] = tack.sin(a) if a > 5000 and tack.cos(a * 1000) > 0 else tack.tan(a)
        out[3, i] = tack.sin(x[i]) > 0 or tack.sin(x[i] * x[i]) < 0 and tack.tan(x[i]) < 0
        out[4, i] = tack.sin(tack.sin(x[i] * 1000) * 1000000)
        for k in range(int(tack.cos(a) * 3 + 4)):
            out[5, i] = out[5, i] + tack.tan(a + k)
"""


def _bits(x: Any) -> int:
    width = 8 * x.itemsize
    (found,) = struct.unpack(*_formats(width)[:1], struct.pack(_formats(width)[1], x))
    return int(found)


def _formats(width: int) -> tuple[str, str]:
    return ("<I", "<f") if width == 32 else ("<Q", "<d")


def _float(bits: int, like: Any) -> Any:
    width = 8 * like.itemsize
    whole, real = _formats(width)
    (found,) = struct.unpack(real, struct.pack(whole, bits % 2**width))
    return type(like)(found)


def _signed(bits: int, width: int) -> int:
    bits %= 1 << width
    return bits - (bits >> (width - 1) << width)


def _width(x: Any) -> int:
    return 8 * x.itemsize


def _whole(rounding: Callable[[float], float]) -> Callable[[Any, Any], Any]:
    def rounded(x: Any, _: Any) -> Any:
        value = float(x)
        return type(x)(math.copysign(rounding(value), value) if math.isfinite(value) else value)

    return rounded


def _small(x: Term) -> Term:
    return select(absolute(x) < 1e6, x, -7.75)


def _small_value(x: Any) -> float:
    return float(x) if abs(float(x)) < 1e6 else -7.75


def _halves(x: Any) -> Any:
    return type(x)(math.sqrt(x)) if x >= 0 else type(x)(math.nan if x else x)


def _as_signed(x: Term) -> Term:
    return convert(bits_of(x), i32 if x.dtype is f32 else i64)


def _guarded_sum(x: Term, y: Term) -> Term:
    one, other = guarded(x < y, lambda a, b: (a * b, a - b), x, y, otherwise=(x, y))
    return one - other


def _rounded(value: int, like: Any) -> Any:
    """An integer rounded to nearest, ties to even, by integer arithmetic."""
    size, bits = abs(value), 24 if like.itemsize == 4 else 53
    drop = max(size.bit_length() - bits, 0)
    kept, rest = size >> drop, size & ((1 << drop) - 1)
    half = 1 << drop >> 1
    kept += drop > 0 and (rest > half or (rest == half and kept & 1))
    return type(like)(math.copysign(math.ldexp(kept, drop), value))


# Formula of two floats, and the same of NumPy's scalars and Python's integers.
CASES: dict[str, tuple[Callable[[Term, Term], Term], Callable[[Any, Any], Any]]] = {
    "x + y": (lambda x, y: x + y, lambda x, y: x + y),
    "1 + x": (lambda x, _: 1 + x, lambda x, _: type(x)(1) + x),
    "x - y": (lambda x, y: x - y, lambda x, y: x - y),
    "1 - x": (lambda x, _: 1 - x, lambda x, _: type(x)(1) - x),
    "0 - x": (lambda x, _: 0.0 - x, lambda x, _: type(x)(0) - x),
    "x * y": (lambda x, y: x * y, lambda x, y: x * y),
    "0.1 * x": (lambda x, _: 0.1 * x, lambda x, _: type(x)(0.1) * x),
    "x / y": (lambda x, y: x / y, lambda x, y: x / y),
    "3 / x": (lambda x, _: 3 / x, lambda x, _: type(x)(3) / x),
    "x * y + x is not fused": (lambda x, y: x * y + x, lambda x, y: x * y + x),
    "-x": (lambda x, _: -x, lambda x, _: _float(_bits(x) ^ 1 << (_width(x) - 1), x)),
    "absolute": (lambda x, _: absolute(x), lambda x, _: type(x)(abs(float(x)))),
    "copysign": (copysign, lambda x, y: type(x)(math.copysign(float(x), float(y)))),
    "sqrt": (lambda x, _: sqrt(x), lambda x, _: _halves(x)),
    "nearest": (lambda x, _: nearest(x), _whole(round)),
    "floor": (lambda x, _: floor(x), _whole(math.floor)),
    "trunc": (lambda x, _: trunc(x), _whole(math.trunc)),
    "and": (
        lambda x, y: from_bits(bits_of(x) & bits_of(y)),
        lambda x, y: _float(_bits(x) & _bits(y), x),
    ),
    "or": (
        lambda x, y: from_bits(bits_of(x) | bits_of(y)),
        lambda x, y: _float(_bits(x) | _bits(y), x),
    ),
    "xor": (
        lambda x, y: from_bits(bits_of(x) ^ bits_of(y)),
        lambda x, y: _float(_bits(x) ^ _bits(y), x),
    ),
    "invert": (lambda x, _: from_bits(~bits_of(x)), lambda x, _: _float(~_bits(x), x)),
    "integers wrap": (
        lambda x, y: from_bits(bits_of(x) * bits_of(y) + bits_of(y) - 7),
        lambda x, y: _float(_bits(x) * _bits(y) + _bits(y) - 7, x),
    ),
    "signed integers wrap": (
        lambda x, y: from_bits(-(_as_signed(x) * _as_signed(y) + _as_signed(y))),
        lambda x, y: _float(-(_bits(x) * _bits(y) + _bits(y)), x),
    ),
    "shift left": (lambda x, _: from_bits(bits_of(x) << 3), lambda x, _: _float(_bits(x) << 3, x)),
    "shift left by a term": (
        lambda x, y: from_bits(bits_of(x) << (bits_of(y) & 31)),
        lambda x, y: _float(_bits(x) << (_bits(y) & 31), x),
    ),
    "shift right": (
        lambda x, y: from_bits(bits_of(x) >> (bits_of(y) & 31)),
        lambda x, y: _float(_bits(x) >> (_bits(y) & 31), x),
    ),
    "shift right with the sign": (
        lambda x, _: from_bits(_as_signed(x) >> 9),
        lambda x, _: _float(_signed(_bits(x), _width(x)) >> 9, x),
    ),
    "<": (lambda x, y: select(x < y, x, 2.0), lambda x, y: x if x < y else type(x)(2)),
    "<=": (lambda x, y: select(x <= y, x, 2.0), lambda x, y: x if x <= y else type(x)(2)),
    ">": (lambda x, y: select(x > y, x, 2.0), lambda x, y: x if x > y else type(x)(2)),
    ">=": (lambda x, y: select(x >= y, x, 2.0), lambda x, y: x if x >= y else type(x)(2)),
    "equals": (lambda x, y: select(x.equals(y), y, 2), lambda x, y: y if x == y else type(x)(2)),
    "differs": (lambda x, y: select(x.differs(y), y, 2), lambda x, y: y if x != y else type(x)(2)),
    "not, and, or, xor of bools": (
        lambda x, y: select((~(x < y) & (y > 0.0) | (x > 1.0)) ^ (y < 9.0), x, y),
        lambda x, y: x if ((not x < y and y > 0) or x > 1) != (y < 9) else y,
    ),
    "bools are 1 and 0": (
        lambda x, y: as_float(convert(x < y, i32 if x.dtype is f32 else i64)),
        lambda x, y: type(x)(int(x < y)),
    ),
    "a bool that is constant": (
        lambda x, y: select(constant(True, bool_) ^ (x < y), x, y),
        lambda x, y: (x, y)[int(x < y)],
    ),
    "comparison of integers": (
        lambda x, y: select(bits_of(x) < bits_of(y), x, y),
        lambda x, y: x if _bits(x) < _bits(y) else y,
    ),
    "comparison of signed integers": (
        lambda x, y: select(_as_signed(x) < _as_signed(y), x, y),
        lambda x, y: x if _signed(_bits(x), _width(x)) < _signed(_bits(y), _width(y)) else y,
    ),
    "integer and back": (
        lambda x, _: as_float(integer(_small(x))) + 0.25,
        lambda x, _: type(x)(int(_small_value(x))) + type(x)(0.25),
    ),
    "as_float rounds once": (
        lambda x, _: as_float(_as_signed(x)),
        lambda x, _: _rounded(_signed(_bits(x), _width(x)), x),
    ),
    "as_float of unsigned": (lambda x, _: as_float(bits_of(x)), lambda x, _: _rounded(_bits(x), x)),
    "convert to wider and narrower": (
        lambda x, y: from_bits(
            convert(convert(bits_of(x), u64) * convert(bits_of(y), u64) >> 20, bits_of(x).dtype)
        ),
        lambda x, y: _float(_bits(x) * _bits(y) % 2**64 >> 20, x),
    ),
    "convert keeps the sign of signed types": (
        lambda x, _: from_bits(convert(convert(_as_signed(x), i64) >> 7, bits_of(x).dtype)),
        lambda x, _: _float(_signed(_bits(x), _width(x)) >> 7, x),
    ),
    "convert to a byte": (
        lambda x, _: from_bits(convert(convert(bits_of(x), u8), bits_of(x).dtype)),
        lambda x, _: _float(_bits(x) & 255, x),
    ),
    "guarded": (
        _guarded_sum,
        lambda x, y: x * y - (x - y) if x < y else x - y,
    ),
    "guarded inside guarded": (
        lambda x, y: guarded(x > 0.0, lambda a, b: (_guarded_sum(a, b) + a,), x, y, otherwise=(y,))[
            0
        ],
        lambda x, y: ((x * y - (x - y) if x < y else x - y) + x) if x > 0 else y,
    ),
}


def arguments(kind: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Pairs of edges, and of numbers of every size."""
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-45, 1e-310, 1e30, -1e38, 8388607.5]
    edges += [math.inf, -math.inf, math.nan, 0.1, -7.75, 999999.0, 123456.7, 1.00000011920929]
    random = np.random.default_rng(5)
    drawn = random.integers(0, 2 ** (8 * np.dtype(kind).itemsize) - 1, (2, 200), np.uint64)
    x, y = drawn.astype(f"u{np.dtype(kind).itemsize}").view(kind)
    one, other = np.meshgrid(np.array(edges, kind), np.array(edges, kind))
    return np.concatenate([one.ravel(), x]), np.concatenate([other.ravel(), y])


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_module(TEXT, tmp_path_factory.mktemp("terms"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", KINDS)
def test_an_operation_means_the_same_on_numpy_in_c_and_in_llvm(
    name: str, dtype: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, oracle = CASES[name]

    def atan2(y: Term, x: Term) -> Term:
        return function(y, x)

    monkeypatch.setitem(FUNCTIONS, "atan2", atan2)
    x, y = arguments(KINDS[dtype])
    with np.errstate(all="ignore"):
        expected = np.array([oracle(a, b) for a, b in zip(x, y, strict=True)], KINDS[dtype])
    formula = formula_of("atan2", DTYPES[dtype])
    assert not differences([expected], [evaluate(formula, x, y)])
    each = [evaluate(formula, a, b) for a, b in zip(x, y, strict=True)]
    assert {type(value) for value in each} == {KINDS[dtype]}
    assert not differences([expected], [np.array(each)])
    signature = ", ".join([f"{dtype}[:]"] * 3)
    pair = Pair(module.both, signature, lambda: [np.zeros_like(x)], lambda memory: [x, y, *memory])
    for way, found in Twins([pair], levels()[-1:]).runs(0):
        assert not differences([expected], found), way


def test_every_operation_is_tested() -> None:
    used: set[str] = set()
    stack = [trace(function, (f32, f32)) for function, _ in CASES.values()]
    while stack:
        for term in stack.pop().terms():
            used.add(term.op)
            if isinstance(term.value, Guarded):
                stack.append(term.value.formula)
    assert used - {"parameter"} == set(evaluation._APPLY)


@pytest.mark.parametrize("dtype", KINDS)
def test_guarded_parts_stay_where_they_are_asked_for(dtype: str, module: Any) -> None:
    random = np.random.default_rng(3)
    x = np.concatenate([random.uniform(-20, 20, 60), 10 ** random.uniform(0, 30, 60)])
    x = x.astype(KINDS[dtype])
    out = np.zeros((6, len(x)), KINDS[dtype])
    expected = out.copy()
    with np.errstate(all="ignore"):
        module.guards.py_func(x, expected)
    assert expected[1].max() > 2  # loops did run
    signature = f"{dtype}[:], {dtype}[:, :]"
    pair = Pair(module.guards, signature, lambda: [out.copy()], lambda memory: [x, *memory])
    for way, found in Twins([pair], levels()[-1:]).runs(0):
        assert not differences([expected], found), way


def test_a_guarded_part_runs_where_its_condition_holds_somewhere() -> None:
    def once(x: Term) -> Term:
        return guarded(x > 1.0, lambda a: (1 / a,), x, otherwise=(x,))[0]

    formula = trace(once, (f64,))
    np.testing.assert_array_equal(evaluate(formula, np.array([0.0, 4.0])), [0.0, 0.25])
    assert evaluate(formula, np.float64(0.5)) == 0.5


def test_mistakes_are_refused_while_a_formula_is_written() -> None:
    x, y = Term("parameter", [], f32), Term("parameter", [], f64)
    with pytest.raises(TypeError, match="f32 \\+ f64: both have one type"):
        x + y
    with pytest.raises(TypeError, match="both have one type"):
        select(x < 1.0, x, y)
    with pytest.raises(TypeError, match="integers only"):
        convert(x, f64)
    with pytest.raises(TypeError, match="no truth value"):
        bool(x < 1.0)
    with pytest.raises(ValueError, match="out of the range of u32"):
        constant(-1, u32)


def test_every_table_has_the_same_functions() -> None:
    names = list(ELEMENTARY)
    assert list(FUNCTIONS) == names
    assert sorted(elementary.__all__) == names
    assert {name: FUNCTIONS[name].__code__.co_argcount for name in names} == ELEMENTARY
    for name in names:
        assert getattr(tack, name) is getattr(tack.math, name) is getattr(elementary, name)
        assert name in tack.__all__
        assert name in tack.math.__all__


def test_examples_of_the_docs_hold() -> None:
    failed, count = doctest.testmod(elementary)
    assert failed == 0
    assert count >= len(ELEMENTARY)


@pytest.mark.parametrize("dtype", KINDS)
def test_pairs_of_floats_have_twice_the_precision(dtype: str) -> None:
    from fractions import Fraction

    kind, bits = KINDS[dtype], 24 if dtype == "f32" else 53
    random = np.random.default_rng(1)
    sizes = 2.0 ** random.integers(-20, 20, (2, 300))
    x, y = (random.uniform(-1, 1, (2, 300)) * sizes).astype(kind)

    def exact(double_: Callable[[Term, Term], Double]) -> list[Fraction]:
        high = trace(lambda a, b: double_(a, b).high, (DTYPES[dtype],) * 2)
        low = trace(lambda a, b: double_(a, b).low, (DTYPES[dtype],) * 2)
        parts = evaluate(high, x, y), evaluate(low, x, y)
        return [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(*parts, strict=True)]

    fractions = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(x, y, strict=True)]
    assert exact(sum_of) == [a + b for a, b in fractions]
    assert exact(product) == [a * b for a, b in fractions]
    ordered = exact(lambda a, b: quick_sum(select(absolute(a) > absolute(b), a, b * 2.0**41), b))
    assert ordered == [(a if abs(a) > abs(b) else b * 2**41) + b for a, b in fractions]
    third = double(
        1 / 3 if dtype == "f32" else (1 / 3, 1 / 3 * 2.0**-54), Term("parameter", [], DTYPES[dtype])
    )
    exactly = Fraction(float(third.high.value)) + Fraction(float(third.low.value))
    assert abs(exactly - Fraction(1, 3)) < Fraction(1, 2 ** (2 * bits))
    for found, (a, b) in zip(
        exact(lambda a, b: product(a, b) / sum_of(a, 3.0)), fractions, strict=True
    ):
        wanted = a * b / (a + 3)
        assert abs(found - wanted) <= abs(wanted) / 2 ** (2 * bits - 5)
    for found, (a, b) in zip(
        exact(lambda a, b: product(a, b) * sum_of(a, b)), fractions, strict=True
    ):
        wanted = a * b * (a + b)
        assert abs(found - wanted) <= abs(wanted) / 2 ** (2 * bits - 5)


def test_a_polynomial_is_evaluated_from_the_highest_power_down() -> None:
    formula = trace(lambda x: polynomial((3.0, 0.1, 0.7), x), (f32,))
    x = np.float32(1.3)
    expected = x * (x * np.float32(0.7) + np.float32(0.1)) + np.float32(3)
    assert evaluate(formula, x) == expected
