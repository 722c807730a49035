"""exp, log, pow, roots, hyperbolic functions and erf: accurate, and everywhere the same.

Exact values are mpmath's; the edges are those of C99, annex F.
"""

from __future__ import annotations

import hashlib
import math
from types import ModuleType
from typing import Any, Final

import accuracy
import ir_interpreter
import minimax
import mpmath
import numpy as np
import pytest
from exact import EXACT
from generator import load_module
from harness import differences, levels
from ir_building import elementwise
from mpmath import mp, mpf
from twins import Pair, Twins

import tack
from tack.elementary import error_function, exponential, logarithm, power, roots
from tack.ir import nodes as ir
from tack.ir.operations import ELEMENTARY
from tack.model.dtypes import DTYPES
from tack.passes.decompose import decompose

INF, NAN = math.inf, math.nan

KINDS: Final = {"f32": np.float32, "f64": np.float64}

TABLE: Final = """
cbrt: 0 0; -0 -0; inf inf; -inf -inf; nan nan; -1030301.0 -101; -27 -3; -1 -1; 1 1; 8 2;
    343 7; 8365427.0 203
cosh: 0 1; -0 1; inf inf; -inf inf; nan nan; 10000 inf; -10000 inf
erf: 0 0; -0 -0; inf 1; -inf -1; nan nan; 7 1; -1e+30 -1
exp: 0 1; -0 1; inf inf; -inf 0; nan nan; 10000 inf; -10000 0
exp2: 0 1; -0 1; inf inf; -inf 0; nan nan; 1024 inf; -10000 0; -149 0x1p-149; -126 0x1p-126;
    -1 0.5; 1 2; 5 32; 127 0x1p127
expm1: 0 0; -0 -0; inf inf; -inf -1; nan nan; 10000 inf; -10000 -1; 1e-40 1e-40
hypot: inf 0 inf; inf 1 inf; inf nan inf; inf inf inf; -inf 0 inf; -inf 1 inf; -inf nan inf;
    -inf inf inf; -0 inf inf; 1 inf inf; nan inf inf; -0 -inf inf; 1 -inf inf; nan -inf inf;
    nan 0 nan; 1 nan nan; 0 -0 0; -0 -0 0; 3 -4 5; -500000000.0 0 500000000.0;
    0 -1e-44 1e-44; 0 nan nan; 3e+38 0 3e+38
log: 0 -inf; -0 -inf; inf inf; -1 nan; -inf nan; nan nan; 1 0; -1e-40 nan
log10: 0 -inf; -0 -inf; inf inf; -1 nan; nan nan; 1 0; 10 1; 100 2; 1000 3; 10000 4;
    100000.0 5; 1000000.0 6; 10000000.0 7; 100000000.0 8; 1000000000.0 9; 10000000000.0 10
log1p: 0 0; -0 -0; inf inf; -1 -inf; -2 nan; -inf nan; nan nan; -1e-40 -1e-40
log2: 0 -inf; -0 -inf; inf inf; -1 nan; nan nan; 0x1p-149 -149; 0x1p-130 -130; 0x1p-126 -126;
    0.5 -1; 1 0; 2 1; 0x1p100 100; 0x1p127 127
pow: 0 0 1; 0 -0 1; -1 0 1; -1 -0 1; inf 0 1; inf -0 1; nan 0 1; nan -0 1; -3.5 0 1;
    -3.5 -0 1; 1 inf 1; 1 -inf 1; 1 nan 1; 1 2.5 1; -1 inf 1; -1 -inf 1; 0 -3 inf;
    0 -2.5 inf; 0 3 0; 0 2.5 0; -0 -3 -inf; -0 -2 inf; -0 -2.5 inf; -0 -inf inf; -0 3 -0;
    -0 2 0; -0 2.5 0; -0 inf 0; 0.5 inf 0; 0.5 -inf inf; -0.5 inf 0; -0.5 -inf inf;
    1.5 inf inf; 1.5 -inf 0; -2 inf inf; -2 -inf 0; -inf -3 -0; -inf -2 0; -inf -0.5 0;
    -inf 3 -inf; -inf 2 inf; -inf 0.5 inf; -inf inf inf; -inf -inf 0; inf -1 0; inf 0.5 inf;
    -8 0.3333333333333333 nan; -1e-40 0.5 nan; nan 1 nan; 2 nan nan; -2 3 -8; -2 -3 -0.125;
    3 5 243; 2 -149 0x1p-149; -2 127 -0x1p127; 4 0.5 2; 10 10 10000000000.0;
    9 -0.5 0.3333333333333333; -2 0x1p60 inf; 1.0000001 1e+300 inf; 0.9999999 1e+300 0;
    1.5 1e-320 1
rsqrt: 0 inf; -0 -inf; inf 0; -1 nan; -inf nan; nan nan; 4 0.5; 0.25 2; 0x1p-148 0x1p74
sinh: 0 0; -0 -0; inf inf; -inf -inf; nan nan; 10000 inf; -10000 -inf; 1e-40 1e-40
tanh: 0 0; -0 -0; inf 1; -inf -1; nan nan; 10000 1; -30 -1; -1e-40 -1e-40
"""
"""Function: operands and result; operands and result ... Every result is exact."""


def _special(text: str) -> dict[str, list[tuple[tuple[float, ...], float]]]:
    table = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        name, _, rows = line.partition(": ")
        numbers = [
            [float.fromhex(each) if "0x" in each else float(each) for each in row.split()]
            for row in rows.split(";")
        ]
        table[name] = [(tuple(args), result) for *args, result in numbers]
    return table


ODD: Final = _special(TABLE)

UNARY: Final = [name for name in ODD if ELEMENTARY[name] == 1]
BINARY: Final = [name for name in ODD if ELEMENTARY[name] == 2]

TEXT = """
import tack

@tack.kernel
def unary(x, out):
    for i in range(x.shape[0]):
{unary}

@tack.kernel
def binary(x, y, out):
    for i in range(x.shape[0]):
{binary}

@tack.func
def gauss(v):
    return tack.exp(-(v ** 2))

@tack.device_class
class Wave:
    def __init__(self, height):
        self.height = height

    @tack.func
    def at(self, t):
        return self.height * tack.tanh(t)

@tack.kernel
def template(wave, x, out):
    for i in range(x.shape[0]):
        out[i] = wave.at(x[i]) + gauss(x[i])

@tack.kernel
def vectors(x: tack.Array[tack.f32x3], out: tack.Array[tack.f32x3]):
    for i in range(x.shape[0]):
        out[i] = tack.exp(x[i]) + tack.pow(x[i], 3) + x[i] ** 2 + 2.0 ** x[i]

@tack.kernel
def powers(x, n, out):
    for i in range(x.shape[0]):
        out[0, i] = x[i] ** 2
        out[1, i] = x[i] ** 0.5
        out[2, i] = x[i] ** n
        out[3, i] = n ** x[i]
        out[4, i] = pow(x[i], -1)
        out[5, i] = 2 ** x[i]
        out[6, i] = tack.pow(n, 3) + tack.log(n) + 2.0 ** 0.5
        t = x[i]
        t **= 2
        out[7, i] = t
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    unary = [f"        out[{k}, i] = tack.{name}(x[i])\n" for k, name in enumerate(UNARY)]
    binary = [f"        out[{k}, i] = tack.{name}(x[i], y[i])\n" for k, name in enumerate(BINARY)]
    text = TEXT.replace("{unary}\n", "".join(unary)).replace("{binary}\n", "".join(binary))
    return load_module(text, tmp_path_factory.mktemp("elementary"))


def samples(dtype: str, count: int, seed: int = 7) -> np.ndarray[Any, Any]:
    """Floats of every size, those around 1, the edges, and what lies next to the limits of exp."""
    kind = KINDS[dtype]
    random, bits = np.random.default_rng(seed), np.dtype(kind).itemsize * 8
    any_bits = random.integers(0, 1 << bits, count, np.uint64).astype(f"u{bits // 8}").view(kind)
    near_one = 1 + random.normal(0, 1, count) * 2.0 ** -random.integers(0, bits - 10, count)
    span = 110 if dtype == "f32" else 760
    usual = [random.uniform(-span, span, count), random.normal(0, 1, count), near_one]
    info = np.finfo(kind)
    limits = [0.0, info.tiny, info.smallest_subnormal, info.max, INF, NAN, 1.0, 0.875, 0.5**0.5]
    limits += [88.72284, 87.33655, 103.27893, 103.97208, 709.782712893384, 745.1332191019412]
    limits += [708.3964185322641, 710.4758600739439, 128.0, 126.0, 149.0, 150.0, 1024.0, 1074.0]
    limits += [k * math.log(2) / 2 for k in range(1, 8)] + [2.0**-13, 2.0**-28, 2.0**-30, 2.0**-60]
    with np.errstate(over="ignore"):
        edges = np.array(limits).astype(kind)
        beside = [np.nextafter(edges, kind(0)), np.nextafter(edges, kind(INF))]
    edges = np.concatenate([edges, *beside])
    parts = [any_bits, *(each.astype(kind) for each in usual), edges, -edges]
    return np.concatenate(parts)


def evaluated(name: str, *args: Any) -> Any:
    """What plain Python gives for arrays."""
    return getattr(tack, name)(*args)


def ulps(name: str, found: float, args: tuple[float, ...], dtype: str) -> float:
    """How far a finite result is from the exact one; the greatest number is one from infinity."""
    info = np.finfo(KINDS[dtype])
    exact = EXACT[name](*map(mpf, args))
    if isinstance(exact, mpmath.mpc):
        return 0.0 if math.isnan(found) else INF
    if abs(exact) >= mpf(float(info.max)) * (1 + mpf(float(info.eps)) / 4):
        return 0.0 if math.isinf(found) and (found > 0) == (exact > 0) else INF
    least = int(info.minexp)
    exponent = max(mpmath.frexp(exact)[1] - 1, least) if exact else least
    return float(abs(mpf(found) - exact) / mpf(2) ** (exponent - info.nmant))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_special_values_are_those_of_c99(name: str, dtype: str) -> None:
    kind = KINDS[dtype]
    for args, wanted in ODD[name]:
        with np.errstate(over="ignore", under="ignore"):
            given, right = [kind(each) for each in args], kind(wanted)
        if dtype == "f32" and not all(map(math.isfinite, given)) and all(map(math.isfinite, args)):
            continue
        found = evaluated(name, *given)
        assert type(found) is kind
        assert found.tobytes() == right.tobytes() or (math.isnan(found) and math.isnan(right)), (
            f"{name}{args} is {found}, not {wanted}"
        )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_results_are_as_accurate_as_promised(name: str, dtype: str) -> None:
    with mp.workprec(250):
        args = [samples(dtype, 60, seed) for seed in range(11, 11 + ELEMENTARY[name])]
        if name == "pow":
            args = hard_powers(dtype, args)
        results = evaluated(name, *args)
        worst = (0.0, ())
        for row in zip(results.tolist(), *(each.tolist() for each in args), strict=True):
            found, *given = row
            if not all(map(math.isfinite, given)) or outside(name, given):
                continue
            worst = max(worst, (ulps(name, found, tuple(given), dtype), (*given, found)))
    assert worst[0] <= accuracy.BOUNDS[name][dtype == "f64"], worst


def outside(name: str, given: list[float]) -> bool:
    """Whether the function has a pole there, is not defined, or is far beyond every float."""
    x = given[0]
    if name in ("log", "log2", "log10", "rsqrt", "log1p"):
        return x <= (-1 if name == "log1p" else 0)
    if name == "pow":
        return x <= 0 or abs(given[1] * math.log(x)) > 2000
    return name in ("exp", "exp2", "expm1", "sinh", "cosh") and abs(x) > 2000


def hard_powers(dtype: str, args: list[Any]) -> list[Any]:
    """The samples, and operands whose results are next to overflow, next to 0, and next to 1."""
    kind, random = KINDS[dtype], np.random.default_rng(5)
    top, low = (88.7, -103.9) if dtype == "f32" else (709.7, -745.0)
    base = np.concatenate(
        [np.exp(random.uniform(-60, 60, 400)), 1 + random.normal(0, 1, 400) * 2.0**-14]
    ).astype(kind)
    target = random.choice([top, low, 0.9 * low, 0.85 * low, 1e-5, 1.0], 800)
    exponent = target / np.log(base.astype(np.float64)) * random.choice([1, 0.999, 0.99], 800)
    return [np.concatenate([args[0], base]), np.concatenate([args[1], exponent.astype(kind)])]


@pytest.mark.parametrize("dtype", KINDS)
def test_every_way_gives_the_bits_of_plain_python(module: ModuleType, dtype: str) -> None:
    x, y = samples(dtype, 700), samples(dtype, 700, 8)[::-1].copy()
    wanted = [np.stack([evaluated(name, x) for name in UNARY])]
    wanted += [np.stack([evaluated(name, x, y) for name in BINARY])]
    for kernel, inputs, expected in (
        (module.unary, [x], wanted[0]),
        (module.binary, [x, y], wanted[1]),
    ):
        signature = ", ".join([f"{dtype}[:]"] * len(inputs)) + f", {dtype}[:, :]"
        pair = Pair(
            kernel,
            signature,
            lambda expected=expected: [np.zeros_like(expected)],
            lambda memory, inputs=inputs: [*inputs, *memory],
        )
        for way, found in Twins([pair], levels()).runs(0):
            assert not differences([expected], found), way
    digest = hashlib.sha256()
    for each in wanted:
        digest.update(np.where(np.isnan(each), KINDS[dtype](NAN), each).tobytes())
    assert digest.hexdigest()[:16] == BITS[dtype], (
        "on purpose? then the bits of every target change"
    )


BITS: Final = {"f32": "31faaa35f3946f22", "f64": "1f3101c977e88cc4"}
"""The bits of all results above, NaN alike: the same on every machine and target."""


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_no_float_is_cast_beyond_the_integers(name: str, dtype: str) -> None:
    real, names = DTYPES[dtype], ("a", "b")[: ELEMENTARY[name]]
    call = ir.IRCall(name, [ir.IRName(each, real) for each in names], real)
    function = decompose(elementwise(call, *((each, real) for each in names)))
    values = samples(dtype, 3)
    args = [np.roll(values, 5 * k) for k in range(len(names))]
    out = np.zeros_like(values)
    arrays = {f"{each}_in": arg for each, arg in zip(names, args, strict=True)}
    ir_interpreter.run(function, {"out": out, **arrays}, c=True)
    assert not differences([evaluated(name, *args)], [out])


RISING: Final[dict[str, tuple[float, ...]]] = {
    "cbrt": (1.0, 2.0, 4.0, 8.0, 1e-3),
    "erf": (0.875, 0.6174, 1.0, 3.0),
    "exp": tuple((k + 0.5) * math.log(2) for k in range(-4, 4)),
    "exp2": (-1.5, -0.5, 0.5, 1.5),
    "expm1": tuple((k + 0.5) * math.log(2) for k in range(-4, 4)),
    "log": (*(math.sqrt(0.5) * 2.0**k for k in range(-3, 4)), 1.0),
    "log10": (*(math.sqrt(0.5) * 2.0**k for k in range(-3, 4)), 1.0),
    "log1p": (2.0**-30, 2.0**-60, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 1.0),
    "log2": (*(math.sqrt(0.5) * 2.0**k for k in range(-3, 4)), 1.0),
    "sinh": tuple((k + 0.5) * math.log(2) for k in range(4)),
    "tanh": (2.0**-13, 2.0**-28, *((k + 0.5) * math.log(2) for k in range(4))),
}
"""Function that rises -> where its formula changes."""


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", RISING)
def test_functions_rise_where_their_formulas_meet(name: str, dtype: str) -> None:
    kind, bits = KINDS[dtype], np.dtype(f"i{int(dtype[1:]) // 8}")
    for joint in RISING[name]:
        around = kind(joint).view(bits) + np.arange(-500, 500, dtype=bits)
        x = np.sort(around.view(kind))
        assert (np.diff(evaluated(name, x)) >= 0).all(), joint


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_are_computed_as_f32_and_rounded(module: ModuleType, dtype: str) -> None:
    kind = np.float16 if dtype == "f16" else pytest.importorskip("ml_dtypes").bfloat16
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    with np.errstate(all="ignore"):
        wanted = np.stack([evaluated(name, x.astype(np.float32)).astype(kind) for name in UNARY])
        plain = np.stack([evaluated(name, x) for name in UNARY])
    assert not differences([wanted], [plain])
    pair = Pair(
        module.unary,
        f"{dtype}[:], {dtype}[:, :]",
        lambda: [np.zeros_like(wanted)],
        lambda memory: [x, *memory],
    )
    for way, found in Twins([pair], levels()[-1:]).runs(0):
        assert not differences([wanted], found), way


def test_vectors_are_taken_by_components(module: ModuleType) -> None:
    x = np.random.default_rng(1).uniform(0.1, 3, (5, 3)).astype(np.float32)
    out = np.zeros_like(x)
    module.vectors(x, out)
    wanted = tack.exp(x) + tack.pow(x, np.float32(3)) + x * x + tack.pow(np.float32(2), x)
    assert not differences([wanted], [out])
    vector = tack.exp(tack.f32x3(1.0, 2.0, 0.5))
    assert type(vector) is type(tack.f32x3(0.0, 0.0, 0.0))
    assert float(vector.y) == float(tack.exp(np.float32(2)))


def test_objects_and_device_functions_may_use_them(module: ModuleType) -> None:
    x = np.linspace(-3, 3, 41).astype(np.float32)
    out = np.zeros_like(x)
    module.template(module.Wave(2.5), x, out)
    assert not differences([np.float32(2.5) * tack.tanh(x) + tack.exp(-(x * x))], [out])


@pytest.mark.parametrize("dtype", KINDS)
def test_powers_of_floats(module: ModuleType, dtype: str) -> None:
    kind = KINDS[dtype]
    x = samples(dtype, 40)
    wanted = np.zeros((8, len(x)), kind)
    with np.errstate(all="ignore"):
        wanted[0] = wanted[7] = x * x
        for row, args in enumerate(
            [(x, kind(0.5)), (x, kind(-3)), (kind(-3), x), (x, kind(-1)), (kind(2), x)], 1
        ):
            wanted[row] = tack.pow(*np.broadcast_arrays(*args))
        three, root = np.float32(-3), tack.pow(2.0, 0.5)
        sum_ = tack.pow(three, np.float32(3)) + tack.log(three)
        wanted[6] = kind(sum_) + kind(root)
    pair = Pair(
        module.powers,
        f"{dtype}[:], i64, {dtype}[:, :]",
        lambda: [np.zeros_like(wanted)],
        lambda memory: [x, -3, *memory],
    )
    for way, found in Twins([pair], levels()[:1]).runs(0):
        assert not differences([wanted], found), way


def test_plain_python_takes_numbers_of_every_kind() -> None:
    assert tack.exp(0.0) == 1.0
    assert type(tack.exp(1.0)) is np.float64
    assert type(tack.exp(1)) is np.float32
    assert type(tack.pow(np.float32(2), 3)) is np.float32
    assert type(tack.pow(np.int64(2), np.float16(3))) is np.float16
    assert type(tack.hypot(np.float32(2), np.float64(3))) is np.float64
    assert tack.pow(2, 10) == 1024


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("exponential.EVEN[32]", exponential.EVEN[32]),
        ("exponential.ODD[32]", exponential.ODD[32]),
        ("logarithm.SERIES[32]", logarithm.SERIES[32]),
        ("power.SERIES[32]", power.SERIES[32]),
        ("roots.CUBE_ROOT", roots.CUBE_ROOT),
        ("error_function.TAIL[32]", error_function.TAIL[32]),
    ],
)
def test_coefficients_are_those_that_the_script_makes(name: str, found: tuple[float, ...]) -> None:
    assert list(found) == minimax.fit(minimax.POLYNOMIALS[name])[0]
