"""What the C writer promises: literals read back, precedence is right, names never meet."""

from __future__ import annotations

import ctypes
import keyword
import math
import random
import re
import struct
import subprocess
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import ir_interpreter
import numpy as np
import pytest
from c_compiler import compile_c
from hypothesis import given
from hypothesis import strategies as st

from tack.ir.nodes import (
    Expression,
    IRArrayLoad,
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
    IRStride,
    IRUnaryOp,
)
from tack.ir.positions import Positions
from tack.model.dtypes import DTYPES, DType, bool_, f32, f64, i8, i32, i64, numpy_name, u8, u32, u64
from tack.render.c import assemble
from tack.render.c_dialect import C
from tack.render.cfamily import ExpressionWriter
from tack.render.names import Names, ascii_identifier

HEAD = "#include <stdbool.h>\n#include <stdint.h>\n"
WRITTEN = {name: dtype for name, dtype in DTYPES.items() if not dtype.is_narrow_float}
"""The types of C: ``narrow_floats`` leaves no others."""
CTYPES = {
    "bool": ctypes.c_bool,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    **{name: getattr(ctypes, f"c_{d}") for name, d in ((n, numpy_name(DTYPES[n])) for n in WRITTEN)
       if name[0] in "iu"},
}  # fmt: skip
INTEGERS = [dtype for dtype in DTYPES.values() if dtype.is_integer]
FLOATS = [f32, f64]


class PlainNames:
    """Every name stands for itself; variables of the trees live behind a pointer."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def name(self, python_name: str) -> str:
        return f"{self.prefix}{python_name}"

    def extent(self, array: str, dim: int) -> str:
        return f"{array}_shape_{dim}"

    def stride(self, array: str, dim: int) -> str:
        return f"{array}_stride_{dim}"

    def strided(self, array: str) -> DType | None:
        return f32 if array == "any" else None


def write(expression: Expression, prefix: str = "") -> str:
    return ExpressionWriter(C, PlainNames(prefix)).write(expression)


# Literals


def bits_of(value: float, dtype: DType) -> int:
    code = "<f" if dtype.bits == 32 else "<d"
    return int.from_bytes(struct.pack(code, value), "little")


def float_of_bits(bits: int, dtype: DType) -> float:
    code, size = ("<f", 4) if dtype.bits == 32 else ("<d", 8)
    return float(struct.unpack(code, bits.to_bytes(size, "little"))[0])


def sample(dtype: DType, rng: random.Random) -> list[float]:
    """The edges of a type, and some hundred values between them."""
    if dtype.is_bool:
        return [False, True]
    if dtype.is_integer:
        low, high = dtype.minimum, dtype.maximum
        edges: list[float] = [
            low,
            low + 1,
            -1,
            0,
            1,
            7,
            2**31 - 1,
            2**31,
            2**32 - 1,
            2**63 - 1,
            high - 1,
            high,
        ]
        kept = [value for value in edges if low <= value <= high]
        return kept + [rng.randint(low, high) for _ in range(300)]
    mantissa = 23 if dtype.bits == 32 else 52
    one = bits_of(1.0, dtype)
    patterns = [0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, one - 1, one, one + 1]
    patterns += [bits_of(math.inf, dtype) - 1, bits_of(math.inf, dtype)]
    patterns += [rng.getrandbits(dtype.bits - 1) for _ in range(2000)]
    patterns += [rng.getrandbits(mantissa) for _ in range(100)]
    values = [float_of_bits(bits | sign, dtype) for bits in patterns
              for sign in (0, 1 << (dtype.bits - 1))]  # fmt: skip
    return values + [dtype.convert(k / 10) for k in range(-50, 50)]


@pytest.mark.parametrize("dtype", WRITTEN.values(), ids=WRITTEN)
def test_every_literal_reads_back(dtype: DType, tmp_path: Path) -> None:
    values = sample(dtype, random.Random(dtype.name))
    texts = ",\n".join(write(IRConstant(value, dtype)) for value in values)
    text = (
        f"{HEAD}extern const {C.type(dtype)} values[];\n"
        f'__attribute__((visibility("default"))) const {C.type(dtype)} values[] = {{\n{texts}}};\n'
    )
    library = compile_c(text, tmp_path)
    found = (CTYPES[dtype.name] * len(values)).in_dll(library, "values")
    for value, read in zip(values, found, strict=True):
        if dtype.is_float:
            same = bits_of(value, dtype) == bits_of(read, dtype)
            assert same or (math.isnan(value) and math.isnan(read)), value
        else:
            assert value == read


@pytest.mark.parametrize("dtype", [i32, u32, i64, u64, f32, f64], ids=str)
def test_a_literal_that_stands_alone_has_its_type(dtype: DType, tmp_path: Path) -> None:
    values = [v for v in sample(dtype, random.Random(3))[:200] if math.isfinite(v)]
    operator = "-" if dtype.is_float else "~"
    texts = [write(IRUnaryOp(operator, IRConstant(value, dtype), dtype)) for value in values]
    lines = [
        f'_Static_assert(_Generic({text}, {C.type(dtype)}: 1, default: 0), "{text}");'
        for text in texts
    ]
    compile_c(HEAD + "\n".join(lines), tmp_path)


def test_not_a_number_and_infinity_need_no_header() -> None:
    assert write(IRConstant(math.nan, f32)) == '__builtin_nanf("")'
    assert write(IRConstant(-math.inf, f64)) == "-__builtin_inf()"


# Precedence: some texts as a person would write them

A, B, D = (IRName(name, i64) for name in "abd")
P, Q, R = (IRName(name, bool_) for name in "pqr")
X, Y, Z = (IRName(name, f32) for name in "xyz")
S, T = IRName("s", u8), IRName("t", u8)


def op(operator: str, left: Expression, right: Expression, dtype: DType | None = None) -> IRBinOp:
    return IRBinOp(operator, left, right, dtype or left.dtype)


def test_parentheses_are_those_that_are_needed() -> None:
    one, minus = IRConstant(1, i64), IRConstant(-1, i64)
    less = IRCompare("<", A, B, bool_)
    cases: dict[str, Expression] = {
        "a - (-1)": op("-", A, minus),
        "-(-a)": IRUnaryOp("-", IRUnaryOp("-", A, i64), i64),
        "-(-INT64_C(1))": IRUnaryOp("-", minus, i64),
        "a - b - d": op("-", op("-", A, B), D),
        "a - (b - d)": op("-", A, op("-", B, D)),
        "a + b - d": op("+", A, op("-", B, D)),
        "x + (y - z)": op("+", X, op("-", Y, Z)),
        "x * (y * z)": op("*", X, op("*", Y, Z)),
        "(a + b) * d": op("*", op("+", A, B), D),
        "a * b + d": op("+", op("*", A, B), D),
        "a / (b * d)": op("cdiv", A, op("*", B, D)),
        "(a + 1) << 3": op("shl", op("+", A, one), IRConstant(3, i64)),
        "INT64_C(1) << b": op("shl", one, B),
        "a & b & d": op("&", op("&", A, B), D),
        "(a & b) | d": op("|", op("&", A, B), D),
        "a + b < d": IRCompare("<", op("+", A, B), D, bool_),
        "(a & b) == 0": IRCompare("==", op("&", A, B), IRConstant(0, i64), bool_),
        "(a < b) != p": IRCompare("!=", less, P, bool_),
        "(!p) == q": IRCompare("==", IRUnaryOp("not", P, bool_), Q, bool_),
        "!(a < b)": IRUnaryOp("not", less, bool_),
        "p && q && r": IRBoolOp("and", IRBoolOp("and", P, Q, bool_), R, bool_),
        "(p && q) || r": IRBoolOp("or", IRBoolOp("and", P, Q, bool_), R, bool_),
        "p ? a : q ? b : d": IRIfExp(P, A, IRIfExp(Q, B, D, i64), i64),
        "p ? (q ? a : b) : d": IRIfExp(P, IRIfExp(Q, A, B, i64), D, i64),
        "(p ? a : b) + 1": op("+", IRIfExp(P, A, B, i64), one),
        "(uint8_t)(s + t)": op("+", S, T),
        "(uint8_t)(s + t) < 7": IRCompare("<", op("+", S, T), IRConstant(7, u8), bool_),
        "(uint8_t)~s": IRUnaryOp("~", S, u8),
        "(float)(s & t)": IRCast(IRBinOp("&", S, T, bool_), f32),
        "(int64_t)(a < b)": IRCast(less, i64),
        "m[a * m_shape_1 + b]": IRArrayLoad(
            "m", [op("+", op("*", A, IRDimSize("m", 1, i64)), B)], f32
        ),
        "*(tack_any_f32 *)(any + a * any_stride_0 + b)": IRArrayLoad(
            "any", [op("+", op("*", A, IRStride("any", 0, i64)), B)], f32
        ),
        "*(tack_any_f32 *)any * x": op("*", IRArrayLoad("any", [IRConstant(0, i64)], f32), X),
        "*(tack_any_f32 *)(any + (-a))": IRArrayLoad("any", [IRUnaryOp("-", A, i64)], f32),
        "__builtin_fmaf(x, y, -z)": IRCall("fma", [X, Y, IRUnaryOp("-", Z, f32)], f32),
    }
    assert {write(tree): text for text, tree in cases.items()} == {t: t for t in cases}


def test_two_literals_are_not_computed_as_int() -> None:
    big = IRConstant(2_000_000_000, i64)
    assert write(op("*", big, big)) == "INT64_C(2000000000) * INT64_C(2000000000)"
    assert write(op("+", big, op("-", big, A))) == "2000000000 + (2000000000 - a)"
    assert write(IRCompare("<", op("-", IRConstant(0, u32), IRConstant(1, u32)), IRName("n", u32)))
    chosen = IRIfExp(P, big, IRConstant(1, i64), i64)
    assert write(op("*", chosen, big)) == (
        "(p ? INT64_C(2000000000) : INT64_C(1)) * INT64_C(2000000000)"
    )


# Precedence and promotion: random trees, computed by C and by an interpreter of IR


class Trees:
    """Random typed expressions with the operators that decomposed IR has, defined everywhere."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def tree(self, dtype: DType, depth: int) -> Expression:
        if depth == 0 or self.rng.random() < 0.1:
            return self.leaf(dtype)
        if dtype.is_bool:
            kinds = [self.comparison, self.logic, self.negation, self.bits, self.choice]
        elif dtype.is_float:
            kinds = [self.arithmetic, self.minus, self.conversion, self.choice, self.call]
        else:
            kinds = [self.arithmetic, self.minus, self.conversion, self.choice, self.bits,
                     self.division, self.shift]  # fmt: skip
        return self.rng.choice(kinds)(dtype, depth - 1)

    def leaf(self, dtype: DType) -> Expression:
        if self.rng.random() < 0.6:
            return IRName(f"{self.rng.choice('ab')}_{dtype.name}", dtype)
        return self.literal(dtype)

    def literal(self, dtype: DType) -> IRConstant:
        values: list[float] = [False, True]
        if dtype.is_integer:
            values = [dtype.minimum, dtype.maximum, dtype.maximum // 2 + 1, 0, 1, 2, 3, 100]
            values += [-1, -2] if dtype.is_signed else []
        elif dtype.is_float:
            values = [0.0, -0.0, 1.0, -1.5, 0.1, 3e30, 1e-40]
            values = [dtype.convert(value) for value in values]
        return IRConstant(self.rng.choice(values), dtype)

    def arithmetic(self, dtype: DType, depth: int) -> Expression:
        operator = self.rng.choice(["+", "-", "*", "/"] if dtype.is_float else ["+", "-", "*"])
        return IRBinOp(operator, self.tree(dtype, depth), self.tree(dtype, depth), dtype)

    def bits(self, dtype: DType, depth: int) -> Expression:
        if dtype.is_integer and self.rng.random() < 0.3:
            return IRUnaryOp("~", self.tree(dtype, depth), dtype)
        operator = self.rng.choice("&|^")
        return IRBinOp(operator, self.tree(dtype, depth), self.tree(dtype, depth), dtype)

    def division(self, dtype: DType, depth: int) -> Expression:
        divisor = IRConstant(self.rng.choice([2, 3, 7, 100, dtype.maximum]), dtype)
        return IRBinOp(self.rng.choice(["cdiv", "cmod"]), self.tree(dtype, depth), divisor, dtype)

    def shift(self, dtype: DType, depth: int) -> Expression:
        count: Expression = IRConstant(self.rng.randrange(dtype.bits), dtype)
        if self.rng.random() < 0.5:
            mask = IRConstant(dtype.bits - 1, dtype)
            count = IRBinOp("&", self.tree(dtype, depth), mask, dtype)
        return IRBinOp(self.rng.choice(["shl", "shr"]), self.tree(dtype, depth), count, dtype)

    def minus(self, dtype: DType, depth: int) -> Expression:
        return IRUnaryOp("-", self.tree(dtype, depth), dtype)

    def conversion(self, dtype: DType, depth: int) -> Expression:
        sources = [d for d in WRITTEN.values() if dtype.is_float or not d.is_float]
        return IRCast(self.tree(self.rng.choice(sources), depth), dtype)

    def choice(self, dtype: DType, depth: int) -> Expression:
        condition = self.tree(bool_, depth)
        return IRIfExp(condition, self.tree(dtype, depth), self.tree(dtype, depth), dtype)

    def call(self, dtype: DType, depth: int) -> Expression:
        function, count = self.rng.choice(
            [("abs", 1), ("floor", 1), ("ceil", 1), ("trunc", 1), ("sqrt", 1), ("copysign", 2)]
        )
        return IRCall(function, [self.tree(dtype, depth) for _ in range(count)], dtype)

    def comparison(self, dtype: DType, depth: int) -> Expression:
        of = self.rng.choice(list(WRITTEN.values()))
        operator = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return IRCompare(operator, self.tree(of, depth), self.tree(of, depth), bool_)

    def logic(self, dtype: DType, depth: int) -> Expression:
        operator = self.rng.choice(["and", "or"])
        return IRBoolOp(operator, self.tree(bool_, depth), self.tree(bool_, depth), bool_)

    def negation(self, dtype: DType, depth: int) -> Expression:
        return IRUnaryOp("not", self.tree(bool_, depth), bool_)

    def inputs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for dtype in WRITTEN.values():
            for name in "ab":
                value = self.literal(dtype).value
                if dtype.is_integer and self.rng.random() < 0.5:
                    value = self.rng.randint(dtype.minimum, dtype.maximum)
                kind = getattr(np, numpy_name(dtype))
                found[f"{name}_{dtype.name}"] = kind(value) if dtype.is_float else value
        return found


# Random trees say much that a compiler rightly finds odd.
ODD = tuple(
    f"-Wno-{name}"
    for name in (
        *("type-limits", "bool-compare", "overflow", "bool-operation", "tautological-compare"),
        *("int-in-bool-context", "shift-overflow", "logical-op", "unused-value"),
    )
)


@pytest.mark.parametrize("optimize", ["-O0", "-O2"])
def test_random_expressions_mean_in_c_what_they_mean_in_ir(optimize: str, tmp_path: Path) -> None:
    trees = Trees(1)
    dtypes = list(WRITTEN.values())
    cases = [trees.tree(dtypes[k % len(dtypes)], 1 + k % 5) for k in range(1500)]
    fields = [(f"{name}_{d.name}", d) for d in dtypes for name in "ab"]
    members = "".join(f"  {C.type(d)} {name};\n" for name, d in fields)
    functions = "".join(
        f"EXPORT {C.type(case.dtype)} f{k}(const struct inputs *v)\n"
        f"{{\n  (void)v;\n  return {write(case, 'v->')};\n}}\n"
        for k, case in enumerate(cases)
        if case.dtype is not None
    )
    text = (
        f'{HEAD}#define EXPORT __attribute__((visibility("default")))\n'
        f"struct inputs {{\n{members}}};\n{functions}"
    )
    library = compile_c(text, tmp_path, flags=(*ODD, optimize))

    class Inputs(ctypes.Structure):
        _fields_ = [(name, CTYPES[d.name]) for name, d in fields]

    nowhere = IRFunction("trees", [], [], f32, Positions())
    for _ in range(4):
        values = trees.inputs()
        packed = Inputs(**{name: CTYPES[d.name](values[name]) for name, d in fields})
        for k, case in enumerate(cases):
            assert case.dtype is not None
            function = library[f"f{k}"]
            function.restype = CTYPES[case.dtype.name]
            found = function(ctypes.byref(packed))
            wanted = ir_interpreter.evaluate(case, nowhere, **values)
            if case.dtype.is_float:
                same = bits_of(float(wanted), case.dtype) == bits_of(found, case.dtype)
                assert same or (np.isnan(wanted) and math.isnan(found)), (write(case), values)
            else:
                assert wanted == found, (write(case), values)


# Names

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
python_names = st.one_of(
    st.sampled_from(sorted(C.reserved)),
    st.from_regex(r"[^\W\d]\w{0,6}(\.[^\W\d]\w{0,3}(\.\d{1,2})?)?", fullmatch=True),
)


@given(st.lists(st.tuples(python_names, st.booleans())))
def test_names_never_meet(requests: list[tuple[str, bool]]) -> None:
    names = Names(C.reserved)
    given_names: dict[object, str] = {}
    for number, (name, is_local) in enumerate(requests):
        key: object = name if is_local else number
        text = names.local(name) if is_local else names.fresh(name)
        assert given_names.setdefault(key, text) == text
    texts = list(given_names.values())
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert IDENTIFIER.match(text)
        assert text not in C.reserved
        assert not re.match(r"__|_[A-Z]", text), "C keeps these for itself"


def test_names_stay_as_they_are_where_they_can() -> None:
    names = Names(C.reserved)
    wishes = ["total", "clamp.i.1", "int", "größe", "__init", "_X", "clamp_i_1", "_x", "begin"]
    assert [names.local(wish) for wish in wishes] == [
        *("total", "clamp_i_1", "int_", "gr_u00f6_u00dfe", "v__init", "v_X", "clamp_i_1_1"),
        *("_x", "begin_"),
    ]


def test_every_keyword_of_python_and_c_can_be_a_name(tmp_path: Path) -> None:
    words = sorted(
        {*C.reserved, *keyword.kwlist, "main", "exit", "errno", "NULL", "stdin", "π", "名"}
    )
    names = Names(C.reserved)
    lines = [f"  int {names.local(word)} = 0;\n  (void){names.local(word)};" for word in words]
    body = "\n".join(lines)
    compile_c(f"{HEAD}void f(void);\nvoid f(void)\n{{\n{body}\n}}\n", tmp_path)


def test_no_macro_of_the_headers_can_be_a_name(macros: set[str]) -> None:
    assert {macro for macro in macros if not macro.startswith("_")} <= C.reserved


@pytest.fixture
def macros() -> set[str]:
    """The macros that a generated file has defined before its first kernel."""
    head = assemble("nothing", [])
    with as_file(files("tack.templates") / "c") as headers:
        command = ["gcc", "-std=c11", f"-I{headers}", "-dM", "-E", "-xc", "-"]
        done = subprocess.run(command, input=head, capture_output=True, text=True, check=True)
    return {re.split(r"\W", line.split()[1])[0] for line in done.stdout.splitlines()}


def test_other_alphabets_are_spelt_by_code_point() -> None:
    assert ascii_identifier("π") == "_u03c0"
    assert ascii_identifier("𝛑") == "_u1d6d1"
    assert ascii_identifier("") == "v"
    assert IDENTIFIER.match(ascii_identifier("1.2"))


def test_a_shift_of_a_negative_literal_is_written_without_a_warning(tmp_path: Path) -> None:
    text = write(op("shl", IRConstant(-1, i8), IRName("n", i8)))
    assert text == "(int8_t)((uint8_t)-1 << n)"
    compile_c(
        f"{HEAD}int8_t f(int8_t n);\nint8_t f(int8_t n)\n{{\n  return {text};\n}}\n", tmp_path
    )
