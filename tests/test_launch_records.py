"""Launch records: a damaged one is a `ValueError` when it is made; host programs are Python's."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import native
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native import array, make, scalar

from tack import _core

WIDTHS = {f"{sign}{bits}": (sign == "i", bits) for sign in "iu" for bits in (8, 16, 32, 64)}
WIDTHS["bool"] = (False, 1)


def wrap(dtype: str, value: int) -> int:
    """``value`` modulo 2^N, as the dtype reads it."""
    signed, bits = WIDTHS[dtype]
    value %= 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


def stored(value: int) -> int:
    """``value`` as a signed 64-bit integer, which is how u64 lies on the stack."""
    return wrap("i64", value)


# The operations, one at a time. A loop clamps negative numbers, so a result is looked at through
# its two halves.

BINARY: dict[str, Any] = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul": lambda a, b, bits: a * b,
    "floordiv": lambda a, b, bits: a // b if b else 0,
    "mod": lambda a, b, bits: a % b if b else 0,
    "min": lambda a, b, bits: min(a, b),
    "max": lambda a, b, bits: max(a, b),
    "and": lambda a, b, bits: a & b,
    "or": lambda a, b, bits: a | b,
    "xor": lambda a, b, bits: a ^ b,
    "shl": lambda a, b, bits: a << (b % bits),
    "shr": lambda a, b, bits: a >> (b % bits),
    "lt": lambda a, b, bits: a < b,
    "le": lambda a, b, bits: a <= b,
    "eq": lambda a, b, bits: a == b,
    "ne": lambda a, b, bits: a != b,
}
UNARY: dict[str, Any] = {
    "neg": lambda a: -a,
    "abs": abs,
    "invert": lambda a: ~a,
}
COMPARISONS = {"lt", "le", "eq", "ne"}


def evaluated(program: Sequence[Sequence[Any]], slots: Sequence[int] = ()) -> int:
    """The value that ``program`` leaves, as an unsigned 64-bit integer."""
    half = [
        [*program, ["const", 32], ["shr", "u64"], ["loop", 0]],
        [*program, ["const", 2**32 - 1], ["and", "u64"], ["loop", 1]],
    ]
    high, low = _core.evaluate_host([op for part in half for op in part], slots, 2)
    return high << 32 | low


EDGES = sorted(
    {
        value + delta
        for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64)
        for value in (2**bits, -(2**bits))
        for delta in (-1, 0, 1)
        if -(2**63) <= value + delta < 2**64
    }
    | {0}
)
WORDS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**64 - 1), st.integers(-9, 9))


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from(sorted(BINARY)), st.sampled_from(sorted(WIDTHS)), WORDS, WORDS)
@example("floordiv", "i64", -(2**63), -1)
@example("mod", "i64", -(2**63), -1)
@example("shl", "i64", -1, 64)
def test_operations_on_two_values(op: str, dtype: str, left: int, right: int) -> None:
    a, b = wrap(dtype, left), wrap(dtype, right)
    result = int(BINARY[op](a, b, WIDTHS[dtype][1]))
    wanted = result if op in COMPARISONS else wrap(dtype, result)
    program = [["const", left], ["const", right], [op, dtype]]
    assert evaluated(program) == wanted % 2**64


@pytest.mark.parametrize("dtype", sorted(WIDTHS))
def test_operations_on_two_values_at_the_edges(dtype: str) -> None:
    slots = [["slot", 0, dtype], ["slot", 1, dtype]]
    values = sorted({wrap(dtype, value) for value in EDGES})
    for op, function in BINARY.items():
        for a in values:
            for b in values:
                result = int(function(a, b, WIDTHS[dtype][1]))
                wanted = result if op in COMPARISONS else wrap(dtype, result)
                assert evaluated([*slots, [op, dtype]], [a, b]) == wanted % 2**64


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(UNARY)), st.sampled_from(sorted(WIDTHS)), WORDS)
def test_operations_on_one_value(op: str, dtype: str, value: int) -> None:
    wanted = wrap(dtype, UNARY[op](wrap(dtype, value)))
    assert evaluated([["const", value], [op, dtype]]) == wanted % 2**64


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(WIDTHS)), WORDS, WORDS, WORDS)
def test_casts_selections_and_slots(dtype: str, a: int, b: int, c: int) -> None:
    cast = int(a != 0) if dtype == "bool" else wrap(dtype, a)
    assert evaluated([["const", a], ["cast", dtype]]) == cast % 2**64
    assert evaluated([["const", a], ["not"]]) == int(a == 0)
    chosen = (b if a else c) % 2**64
    assert evaluated([["const", a], ["const", b], ["const", c], ["select"]]) == chosen
    assert evaluated([["slot", 0, dtype]], [a]) == wrap(dtype, a) % 2**64


SIGNED = st.one_of(
    st.sampled_from([stored(value) for value in EDGES]),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-20, 20),
)


@settings(max_examples=1000, deadline=None)
@given(SIGNED, SIGNED, SIGNED)
@example(-(2**63), 2**63 - 1, 1)
@example(-(2**63), 2**63 - 1, 2)
@example(-(2**63), 2**63 - 1, 2**63 - 1)
@example(0, 5, 1)
@example(0, -5, 1)
def test_a_range_has_the_length_that_python_says(start: int, end: int, step: int) -> None:
    for first in (["const", start], ["slot", 0, "i64"]):
        program = [first, ["slot", 1, "i64"], ["const", step], ["range"], ["loop", 0]]
        if step <= 0:
            with pytest.raises(ValueError, match="step"):
                _core.evaluate_host(program, [start, end], 1)
            continue
        trips = max(0, -(-(end - start) // step))
        if trips >= 2**63:
            with pytest.raises(OverflowError):
                _core.evaluate_host(program, [start, end], 1)
        else:
            assert _core.evaluate_host(program, [start, end], 1) == [trips]


@given(SIGNED, SIGNED, SIGNED)
def test_loops_take_their_slots_and_clamp_them(a: int, b: int, c: int) -> None:
    clamped = [max(0, value) for value in (a, b, c)]
    direct = [op for d in range(3) for op in (["slot", d, "i64"], ["loop", d])]
    assert _core.evaluate_host(direct, [a, b, c], 3) == clamped
    backwards = [op for d in (2, 0, 1) for op in (["slot", d, "i64"], ["loop", d])]
    assert _core.evaluate_host(backwards, [a, b, c], 3) == clamped
    twice = [["slot", 1, "i64"], ["loop", 0], ["slot", 0, "i64"], ["loop", 0]]
    assert _core.evaluate_host(twice, [a, b], 1) == clamped[:1]
    mixed = [["slot", 0, "i64"], ["loop", 1], ["slot", 1, "i64"], ["neg", "i64"], ["loop", 0]]
    assert _core.evaluate_host(mixed, [a, b], 2) == [max(0, stored(-b)), clamped[0]]


def test_the_operations_have_names() -> None:
    assert set(BINARY) | set(UNARY) | {
        "const",
        "slot",
        "not",
        "select",
        "cast",
        "range",
        "loop",
    } == set(_core.HOST_OPS)


# Damage

GOOD = {
    "params": [scalar("i32", True), array("f32", 2), array("f64")],
    "slots": [["scalar", 0, "i32"], ["pointer", 1], ["extent", 1, 1], ["loop", 0]],
    "host": [["slot", 0, "i32"], ["loop", 0]],
    "written": [1],
    "general": 4096,
    "noalias": 0,
    "label": "module:name",
    "keepalive": None,
}
LOOP = ["loop", 0]
DEEP = [["const", 1]] * 65 + [["add", "i64"]] * 64 + [LOOP]

DAMAGED: list[tuple[str, Any]] = [
    ("general", 0),
    ("params", "array"),
    ("params", [("pointer", "f32", 1, (-1,))]),
    ("params", [("array", "f32", 1)]),
    ("params", [("array", "f16", 1, (-1,), "contiguous")]),
    ("params", [("array", "bool", 1, (-1,), "contiguous")]),
    ("params", [("array", "f32", -1, (), "contiguous")]),
    ("params", [("array", "f32", 1, (-1,), "fortran")]),
    ("params", [("array", "f32", 1, (-1,))]),
    ("params", [("array", "f32", 9, (-1,) * 9, "contiguous")]),
    ("params", [("array", "f32", 2, (-1,), "contiguous")]),
    ("params", [("array", "f32", 1, (-2,), "contiguous")]),
    ("params", [("array", "f32", 1, (2**63,), "contiguous")]),
    ("params", [("array", "f32", 1, 3, "contiguous")]),
    ("params", [("array", "f32", 1.0, (-1,), "contiguous")]),
    ("params", [("array", "f32", True, (-1,), "contiguous")]),
    ("params", [("scalar", "f32")]),
    ("params", [("scalar", "f32", 1)]),
    ("params", [("scalar", "\udc80", True)]),
    ("params", [()]),
    ("params", [(None, None, None)]),
    ("params", [array()] * 128),
    ("slots", None),
    ("slots", [["pointer"]]),
    ("slots", [["pointer", 3]]),
    ("slots", [["pointer", -1]]),
    ("slots", [["pointer", 2**70]]),
    ("slots", [["pointer", 0]]),
    ("slots", [["pointer", 1, 0]]),
    ("slots", [["extent", 1, 2]]),
    ("slots", [["extent", 1, -1]]),
    ("slots", [["extent", 0, 0]]),
    ("slots", [["extent", 1]]),
    ("slots", [["scalar", 0, "i64"]]),
    ("slots", [["scalar", 1, "f32"]]),
    ("slots", [["scalar", 0]]),
    ("slots", [["stride", 1, 0]]),
    ("slots", [["loop", 1]]),
    ("slots", [["loop", 3]]),
    ("slots", [["loop"]]),
    ("slots", [["pointer", 1]] * 512),
    ("host", []),
    ("host", [[]]),
    ("host", [LOOP]),
    ("host", [["const", 1]]),
    ("host", [["const", 1], ["const", 2], LOOP]),
    ("host", [["const"], LOOP]),
    ("host", [["const", 1.0], LOOP]),
    ("host", [["const", 2**64], LOOP]),
    ("host", [["const", -(2**63) - 1], LOOP]),
    ("host", [["const", 1, 1], LOOP]),
    ("host", [["const", 1], ["loop", 3]]),
    ("host", [["const", 1], ["loop", -1]]),
    ("host", [["const", 1], ["loop", 1]]),
    ("host", [["const", 1], ["loop", 0], ["const", 1], ["loop", 2]]),
    ("host", [["slot", 4, "i64"], LOOP]),
    ("host", [["slot", -1, "i64"], LOOP]),
    ("host", [["slot", 1, "i64"], LOOP]),
    ("host", [["slot", 3, "i64"], LOOP]),
    ("host", [["slot", 0, "i64"], LOOP]),
    ("host", [["slot", 2, "i32"], LOOP]),
    ("host", [["slot", 0], LOOP]),
    ("host", [["const", 1], ["neg", "f32"], LOOP]),
    ("host", [["const", 1], ["neg"], LOOP]),
    ("host", [["const", 1], ["neg", "i128"], LOOP]),
    ("host", [["const", 1], ["add", "i64"], LOOP]),
    ("host", [["const", 1], ["const", 1], ["select"], LOOP]),
    ("host", [["const", 1], ["const", 1], ["range"], LOOP]),
    ("host", [["const", 1], ["power", "i64"], LOOP]),
    ("host", [["const", 1], ["loop_of_slot", 0], LOOP]),
    ("host", [["not"], LOOP]),
    ("host", DEEP),
    ("host", ["const"]),
    ("host", {"const": 1}),
    ("written", [0]),
    ("written", [3]),
    ("written", [-1]),
    ("written", ["out"]),
    ("written", 1),
]


@pytest.mark.parametrize(("field", "value"), DAMAGED)
def test_a_damaged_record_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"malformed launch record: .+: \S"):
        _core.Launchable(**{**GOOD, field: value})


def test_the_record_that_is_damaged_above_is_a_good_one() -> None:
    record = _core.Launchable(**GOOD)
    assert (record.label, record.general, record.noalias) == ("module:name", 4096, 0)
    assert repr(record) == "<Launchable module:name>"
    with pytest.raises(AttributeError):
        record.label = "other"  # type: ignore[misc]
    _core.Launchable(**{**GOOD, "host": DEEP[1:64] + [["add", "i64"]] * 62 + [LOOP]})


def test_a_float_is_no_bound() -> None:
    with pytest.raises(ValueError, match="slot 0 holds no integer"):
        make([scalar("f32")], host=[["slot", 0, "i32"], LOOP])


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.integers(),
    st.floats(),
    st.sampled_from(
        [
            "array",
            "scalar",
            "pointer",
            "extent",
            "loop",
            "const",
            "slot",
            "range",
            "select",
            "neg",
            "add",
            "not",
        ]
    ),
    st.sampled_from([*WIDTHS, "f32", "f64", ""]),
    st.text(max_size=3),
)
ROWS = st.lists(st.one_of(st.lists(ATOMS, max_size=4), ATOMS), max_size=6)
FIELDS = {"params": ROWS, "slots": ROWS, "host": ROWS, "written": st.lists(ATOMS, max_size=3)}


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_arbitrary_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """Whatever a bundle holds: a record that is made can be run."""
    fields: dict[str, Any] = {name: list(GOOD[name]) for name in FIELDS}  # type: ignore[call-overload]
    for name in data.draw(st.sets(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=2)):
        rows = fields[name]
        if rows and data.draw(st.booleans()):  # one entry of one row
            place = data.draw(st.integers(0, len(rows) - 1))
            row = list(rows[place]) if isinstance(rows[place], list | tuple) else [rows[place]]
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(ATOMS)
            rows[place] = row if name != "written" else row[0]
        else:
            fields[name] = data.draw(FIELDS[name])
    try:
        record = _core.Launchable(**{**GOOD, **fields, "general": native.library().symbol("spy")})
    except ValueError:
        return
    parameters = len(fields["params"])
    names = [f"p{k}" for k in range(parameters)]
    scope: dict[str, Any] = {}
    exec(f"def function({', '.join(names)}): pass", scope)
    called = native.kernel(scope["function"], record, annotated=[True] * parameters)
    native.spied().clear(slots=len(fields["slots"]))
    given_values = [3, np.zeros((2, 3), "f4"), np.zeros(4), 2, 1.5, True][:parameters]
    with contextlib.suppress(LookupError, ValueError, OverflowError):
        called(*given_values, *[0] * (parameters - len(given_values)))
