"""Vectors and matrices wherever a number can stand: tack against the oracle and NumPy."""

from __future__ import annotations

import runpy
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from harness import differences, levels, run_tack
from packages import Package

import tack
from tack.lang.lower import lower_kernel
from tack.model.signature import Signature
from tack.model.vectors import vector_type

Load = Callable[[str], ModuleType]


def kernel_of(load: Load, text: str) -> Any:
    return load(textwrap.dedent(text).replace("def kernel", "@tack.kernel\ndef kernel")).kernel


def assert_same(kernel: Any, arguments: Sequence[Any], folder: Path) -> list[np.ndarray]:
    """The arrays after the call, the same under the oracle, as prebuilt C and at a JIT call."""
    copies = [
        [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        for _ in range(3)
    ]
    expected, built, called = copies
    with np.errstate(all="ignore"):
        oracle.run(kernel, expected)
    run_tack(kernel, built, folder / "unit")
    kernel(*called)
    arrays = [[each for each in list_ if isinstance(each, np.ndarray)] for list_ in copies]
    assert not differences(arrays[0], arrays[1])
    assert not differences(arrays[0], arrays[2])
    return arrays[0]


# Kernel over out (f64, 16 elements of 0): text, what out begins with.
CASES: dict[str, tuple[str, list[float]]] = {
    "a vector is made of numbers, of one number, and of smaller vectors": (
        """
        def kernel(out):
            for i in range(1):
                a = tack.f32x2(1, 2)
                b = tack.f32x4(a, 3, 4)
                c = tack.i32x3(b.yz, 2.9)
                d = tack.u8x2(300)
                e = tack.f64x3(c)
                out[0] = b.x + b.y * 10 + b.z * 100 + b.w * 1000
                out[1] = c.x + c.y * 10 + c.z * 100
                out[2] = d.x + d.y
                out[3] = e.x + e.y * 10 + e.z * 100
        """,
        [4321, 232, 88, 232, 0],
    ),
    "components are read and assigned": (
        """
        def kernel(out):
            for i in range(1):
                v = tack.f64x4(1, 2, 3, 4)
                v.y = 7
                v.w += v.x
                v.xz = v.zx
                out[0], out[1], out[2], out[3] = v
                w = v.wwx
                out[4] = w.x * 100 + w.y * 10 + w.z
                v.xyz = v.zxy
                out[5] = v.x * 100 + v.y * 10 + v.z
        """,
        [3, 7, 1, 5, 553, 137, 0],
    ),
    "indices are literals or of run time": (
        """
        def kernel(out):
            for i in range(3):
                v = tack.f64x3(5, 6, 7)
                out[i] = v[i] * 10 + v[2 - i]
                v[i] = v[0] + 1
                v[2 - i] *= 10
                out[3 + i] = v.x * 10000 + v.y * 100 + v.z
        """,
        [57, 66, 75, 60670, 56007, 500606, 0],
    ),
    "operators go by component, and numbers are repeated": (
        """
        def kernel(out):
            for i in range(1):
                a, b = tack.i32x3(7, -7, 9), tack.i32x3(2, 2, -4)
                c = a // b + a % b * 100
                out[0], out[1], out[2] = c
                d = (a << 2) | 1
                out[3], out[4], out[5] = d
                e = 10 - a
                out[6], out[7], out[8] = -e
                f = a / b
                out[9], out[10], out[11] = f
                out[12] = (a ** 2).y + (~b).x
                out[13] = len(a) + len(tack.f32x2x4(0))
        """,
        [103, 96, -303, 29, -27, 37, -3, -17, -1, 3.5, -3.5, -2.25, 46, 5],
    ),
    "builtins go by component": (
        """
        def kernel(out):
            for i in range(1):
                a, b = tack.f64x2(-2.25, 9), tack.f64x2(3, -4)
                out[0], out[1] = min(a, b)
                out[2], out[3] = max(a, b, 5)
                out[4], out[5] = abs(a)
                out[6], out[7] = tack.floor(a)
                out[8], out[9] = tack.ceil(a)
                out[10], out[11] = tack.trunc(a)
                out[12], out[13] = tack.sqrt(abs(a))
                out[14], out[15] = tack.fma(a, b, 1)
        """,
        [-2.25, -4, 5, 9, 2.25, 9, -3, 9, -2, 9, -2, 9, 1.5, 3, -5.75, -35],
    ),
    "comparisons give vectors of bool": (
        """
        def kernel(out):
            for i in range(1):
                a, b = tack.f32x3(1, 2, 3), tack.f32x3(3, 2, 1)
                less = a < b
                out[0], out[1], out[2] = less
                out[3] = any(less) and not all(less)
                out[4] = all(a == a) and not any(a != a)
                out[5] = any((a > b) & less) or any(less ^ less)
        """,
        [1, 0, 0, 1, 1, 0, 0],
    ),
    "choices and branches choose vectors": (
        """
        def kernel(out):
            for i in range(4):
                v = tack.f64x2(i, 1) if i % 2 else tack.f64x2(9)
                if i == 3:
                    v = v.yx
                elif i == 2:
                    v.x = 5
                out[2 * i] = v.x
                out[2 * i + 1] = v.y
        """,
        [9, 9, 1, 1, 5, 9, 1, 3, 0],
    ),
    "a value is copied, and an assignment reads before it writes": (
        """
        def kernel(out):
            for i in range(1):
                v = tack.f64x3(1, 2, 3)
                w = v
                w.x = 9
                out[0] = v.x
                v = tack.f64x3(v.z, v.x, v.y)
                out[1], out[2], out[3] = v
                v, w = w, v
                out[4] = v.x * 10 + w.x
                a = b = v
                a.y = 7
                out[5] = b.y
                v = v.zzz + v
                out[6], out[7], out[8] = v
        """,
        [1, 3, 1, 2, 93, 2, 12, 5, 6, 0],
    ),
    "functions take and give vectors": (
        """
        @tack.func
        def halves(v, k=2):
            return v.xy * k, v.zw, v.w

        @tack.func
        def early(v: tack.f64x2, flag, up=tack.f64x2(0, 10)):
            if flag:
                return v + up
            v.x += 1
            return v

        @tack.func
        def nested(v):
            v = v * 2
            return early(v, v.x > 4) + early(flag=False, v=v)

        def kernel(out):
            for i in range(1):
                v = tack.f64x4(1, 2, 3, 4)
                a, b, c = halves(v, k=3)
                out[0], out[1] = a
                out[2], out[3] = b
                out[4] = c
                out[5], out[6] = early(a, True)
                out[7], out[8] = early(a, False)
                out[9] = a.x
                out[10], out[11] = nested(b)
                out[12], out[13] = nested(tack.f64x2(1))
        """,
        [3, 6, 3, 4, 4, 3, 16, 4, 6, 3, 13, 26, 6, 4],
    ),
    "loops carry vectors": (
        """
        def kernel(out):
            start = tack.f64x2(out.shape[0], 1)
            for i in range(2):
                z = start
                total = tack.f64x2(0)
                for k in range(3):
                    z = tack.f64x2(z.y, z.x + i)
                    if k == 2:
                        continue
                    total += z
                while total.x > 5:
                    total.x -= 5
                out[2 * i], out[2 * i + 1] = total
        """,
        [2, 17, 3, 19, 0],
    ),
    "the products of vectors": (
        """
        def kernel(out):
            for i in range(1):
                a, b = tack.f64x3(1, 2, 3), tack.f64x3(4, -5, 6)
                out[0] = tack.dot(a, b)
                out[1], out[2], out[3] = tack.cross(a, b)
                out[4] = tack.length(tack.f64x2(3, -4))
                out[5], out[6] = tack.normalize(tack.f64x2(3, -4))
                out[7] = tack.length(tack.i32x2(6, 8))
                out[8] = tack.dot(tack.u8x2(16, 1), tack.u8x2(16, 1))
        """,
        [12, 27, 6, -13, 5, 0.6, -0.8, 10, 1],
    ),
    "elements and rows of matrices": (
        """
        def kernel(out):
            for i in range(2):
                m = tack.f64x2x3(1, 2, 3, 4, 5, 6)
                row = m[i]
                out[i] = m[i, 2 - i] * 10 + row.z
                m[1 - i, 0] = 7
                m[i, i + 1] += 20
                m[i].z -= 1
                m[0].xy = m[1].yx
                r = tack.f64x2x3(row, m[0])
                out[2 + 3 * i], out[3 + 3 * i], out[4 + 3 * i] = m[0] * 100 + m[1]
                out[8 + i] = r[0, 1] * 10 + r[1, 1]
                a, b = m
                out[10 + i] = b.x
        """,
        [33, 56, 507, 705, 206, 504, 405, 325, 27, 54, 7, 4, 0],
    ),
    "arithmetic of matrices": (
        """
        def kernel(out):
            for i in range(1):
                m = tack.f64x2x2(1, 2, 3, 4)
                n = m @ tack.f64x2x2(0, 1, 1, 0) + 2 * m - m
                out[0], out[1] = n[0]
                out[2], out[3] = n[1]
                out[4], out[5] = m @ tack.f64x2(1, 10)
                out[6], out[7] = tack.f64x2(1, 10) @ m
                t = tack.transpose(tack.f64x2x3(1, 2, 3, 4, 5, 6))
                out[8], out[9] = t[2]
                out[10] = tack.determinant(m)
                out[11], out[12] = tack.inverse(m)[0]
                m @= m
                out[13] = m[1, 1] + tack.f64x2(1, 2) @ tack.f64x2(3, 4)
        """,
        [3, 3, 7, 7, 21, 43, 31, 42, 3, 6, -2, -2, 1, 33],
    ),
    "one type for all components, joined over the assignments": (
        """
        def kernel(out):
            for i in range(1):
                v = tack.u8x2(200, 100)
                out[0], out[1] = v + v
                w = tack.u8x2(200, 100)
                w.x = 300
                out[2], out[3] = w + w
                d: tack.f32x2 = tack.f64x2(0.1, 2)
                out[4] = d.x == tack.f32(0.1)
                u: tack.i8x2 = tack.u8x2(200, 1)
                out[5] = u.x
                s = tack.u8x2(255, 1) + tack.i8x2(-1, 1)
                out[6], out[7] = s * 256
        """,
        [144, 200, 600, 200, 1, -56, -512, 512],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_vectors_give_what_the_language_says(name: str, load: Load, tmp_path: Path) -> None:
    text, begins = CASES[name]
    (found,) = assert_same(kernel_of(load, text), [np.zeros(16)], tmp_path)
    assert list(found[: len(begins)]) == begins


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_integer_has_vectors(dtype: str, count: int, load: Load, tmp_path: Path) -> None:
    kernel = kernel_of(
        load,
        f"""
        def kernel(x: tack.Array[tack.{dtype}x{count}], y: tack.Array[tack.{dtype}x{count}]):
            for i in range(x.shape[0]):
                a, b = x[i], y[i]
                y[i] = (a + b) * a - (a // b) + (a % b) ^ (a & ~b) + min(a, b) * (b > a)
                y[i].yx += abs(x[i].xy) << tack.{dtype}(tack.dot(a, b) & 3)
        """,
    )
    rng = np.random.default_rng(count)
    info = np.iinfo(tack.model.dtypes.numpy_name(getattr(tack, dtype)))
    x, y = (
        rng.integers(info.min, info.max, (20, count), info.dtype, endpoint=True) for _ in range(2)
    )
    assert_same(kernel, [x, y], tmp_path)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_float_has_vectors_and_matrices(
    dtype: str, count: int, load: Load, tmp_path: Path
) -> None:
    name = f"{dtype}x{count}"
    kernel = kernel_of(
        load,
        f"""
        def kernel(x: tack.Array[tack.{name}], m: tack.Array[tack.{name}x{count}]):
            for i in range(x.shape[0]):
                t = tack.transpose(m[i])
                d = tack.determinant(m[i])
                v = tack.inverse(t) @ tack.normalize(x[i])
                m[i] = t @ m[i] - m[i] * d
                m[i][1].x = v.y
                x[i] = v @ m[i] if i % 2 else v // x[i] + x[i] % 0.3
                x[i].x *= tack.length(v)
        """,
    )
    rng = np.random.default_rng(count)
    numpy = tack.model.dtypes.numpy_name(getattr(tack, dtype))
    x = rng.normal(size=(12, count)).astype(numpy)
    m = rng.normal(size=(12, count, count)).astype(numpy)
    x[3], m[4], x[5, 1] = 0, 0, np.nan
    assert_same(kernel, [x, m], tmp_path)


def test_determinant_and_inverse_are_those_of_linear_algebra(load: Load) -> None:
    kernel = kernel_of(
        load,
        """
        def kernel(m: tack.Array[tack.f64x4x4], d):
            for i in range(m.shape[0]):
                d[i] = tack.determinant(m[i])
                m[i] = tack.inverse(m[i])
        """,
    )
    m, d = np.random.default_rng(1).normal(size=(30, 4, 4)), np.zeros(30)
    inverses = m.copy()
    kernel(inverses, d)
    np.testing.assert_allclose(d, np.linalg.det(m), rtol=1e-9)
    np.testing.assert_allclose(inverses, np.linalg.inv(m), rtol=1e-7, atol=1e-9)


def test_arrays_of_vectors_are_read_before_they_are_written(load: Load, tmp_path: Path) -> None:
    kernel = kernel_of(
        load,
        """
        @tack.func
        def spoil(x, i):
            x[i] = tack.f32x3(0)
            return tack.f32x3(1)

        def kernel(x: tack.Array[tack.f32x3], y: tack.Array[tack.f32x3]):
            for i in range(x.shape[0]):
                x[i] = x[i].zxy
                x[i].xy = y[i].yx
                y[i].z += x[i][i % 3] + spoil(x, i).x
                y[i] += spoil(y, i)
                y[i][i % 3] *= 3
                y[i] = y[i] + spoil(y, i) + y[i]
                x[x.shape[0] - 1 - i if x.shape[0] == 1 else i] = y[i] * 2
        """,
    )
    x = np.random.default_rng(2).random((7, 3), np.float32)
    assert_same(kernel, [x, x + 1], tmp_path)
    overlapping = x.copy()
    expected = x.copy()
    oracle.run(kernel, [expected, expected])
    kernel(overlapping, overlapping)
    assert not differences([expected], [overlapping])


def test_arrays_of_vectors_have_two_dimensions_too(load: Load, tmp_path: Path) -> None:
    kernel = kernel_of(
        load,
        """
        def kernel(x: tack.Array[tack.f32x2], out):
            for i, j in tack.ndrange(x.shape[0], x.shape[1]):
                out[i, j] = tack.length(x[i, j])
                x[i, j].y = out[i, j]
        """,
    )
    x = np.random.default_rng(3).random((4, 5, 2), np.float32)
    assert_same(kernel, [x, np.zeros((4, 5), np.float32)], tmp_path)


def test_the_function_of_a_kernel_runs_in_plain_python(load: Load) -> None:
    kernel = kernel_of(
        load,
        """
        def kernel(x: tack.Array[tack.f32x3], out):
            for i in range(x.shape[0]):
                v = tack.normalize(tack.cross(x[i], x[i].yzx) + tack.f32x3(x[i].xy, 1))
                m = tack.f32x3x3(v, x[i], tack.f32x3(1, 2, 3))
                w = tack.inverse(m) @ v + v @ tack.transpose(m)
                w.xy = w.yx
                w += tack.fma(v, w, 1) * len(w)
                x[i].z = w.x
                out[i] = tack.dot(v, w) + tack.determinant(m) + tack.floor(w * 4)[i % 3]
        """,
    )
    x, out = np.random.default_rng(4).random((9, 3), np.float32), np.zeros(9, np.float32)
    plain, plain_out = x.copy(), out.copy()
    kernel(x, out)
    kernel.py_func(plain.view(tack.Vector), plain_out)
    assert not differences([x, out], [plain, plain_out])


def test_a_vector_type_makes_small_arrays_in_plain_python() -> None:
    v = tack.f32x3(1, 2, 3)
    assert v.dtype == np.float32
    assert v.zx.tolist() == [3, 1]
    w = v
    w += 1
    assert v.tolist() == [1, 2, 3]
    v.xz = 5, 6
    assert v.tolist() == [5, 2, 6]
    assert tack.u8x2(300).tolist() == [44, 44]
    assert tack.f32x2x2(v.xy, 0, 1).tolist() == [[5, 2], [0, 1]]
    assert isinstance(tack.dot(v, v), np.float32)
    with pytest.raises(TypeError, match="f32x3 has 3 components, and is given 2 components"):
        tack.f32x3(1, 2)
    with pytest.raises(AttributeError, match="no component 'w'"):
        v.w
    assert tack.f32x3 is tack.f32x3
    assert repr(tack.f32x3x2) == "f32x3x2"
    with pytest.raises(AttributeError):
        tack.f32x5


def test_a_vector_array_is_chosen_by_the_annotation(load: Load) -> None:
    text = """
        @tack.kernel
        def kernel(x{annotation}):
            for i in range(x.shape[0]):
                x[i].x = 1
    """
    kernel = load(text.replace("{annotation}", ": tack.Array[tack.f32x3]")).kernel
    x = np.zeros((4, 3), np.float32)
    kernel(x)
    assert x.tolist() == [[1, 0, 0]] * 4
    for wrong, words in (
        (np.zeros((4, 3)), "array of f64"),
        (np.zeros((4, 2), np.float32), "the shape (4, 2)"),
        (np.zeros((), np.float32), "the shape ()"),
        (1.0, "was given a float"),
    ):
        with pytest.raises(TypeError) as caught:
            kernel(wrong)
        assert words in str(caught.value)
    plain = load(text.replace("{annotation}", "")).kernel
    with pytest.raises(tack.errors.CompileError, match=r"annotate it tack\.Array"):
        plain(x)
    with pytest.raises(TypeError, match="names a vector or matrix type"):
        tack.Array[tack.f32]


PARAMETERS = """
    def kernel(x, v: tack.f32x3, n: tack.i32x2, m: "tack.f64x2x2", flags: tack.boolx2, a=2.0):
        w = v * 2
        for i in range(n.x - n.y):
            v.y += i
            x[i] = tack.dot(v, w) * a + n.y + (m @ v.xy)[i % 2] + (1 if flags.x else 0)
"""


def test_a_parameter_may_be_a_vector_or_a_matrix(load: Load, tmp_path: Path) -> None:
    kernel = kernel_of(load, PARAMETERS)
    arguments = [np.zeros(5), (1, 2.5, 3), [7, 2], ((1, 2), (3, 4.5)), (True, False), 3.0]
    (expected,) = assert_same(kernel, arguments, tmp_path)
    same = [
        [np.array([1, 2.5, 3]), (np.int8(7), 2), np.array([[1, 2], [3, 4.5]]), [True, False]],
        [tack.f32x3(1, 2.5, 3), tack.i32x2(7, 2), (1, 2, 3, 4.5), np.array([True, False])],
        [(1.0, 2.5, 3.0), (7, 2), [(1, 2), np.array([3, 4.5])], tack.boolx2(True, False)],
    ]
    for values in same:
        found = np.zeros(5)
        kernel(found, *values, a=3.0)
        assert not differences([expected], [found])
    assert "f64[:], f32x3, i32x2, f64x2x2, boolx2, f64" in str(
        tack.explain(kernel, found, *same[0], 3.0)
    )


@pytest.mark.parametrize(
    ("position", "value", "words"),
    [
        (1, (1, 2), "'v' is annotated f32x3: pass a sequence of 3 numbers, not 2 of them"),
        (1, 1.0, "not a float"),
        (1, np.zeros((3, 1)), "not an array of shape (3, 1)"),
        (1, (1, 2, "3"), "'v.z' is a str"),
        (2, (1, 2.0), "'n.y' is annotated i32 and was given the float 2.0"),
        (3, np.zeros(3), "not an array of shape (3,)"),
        (4, (1, True), "'flags.x' is annotated bool and was given 1"),
    ],
)
def test_a_wrong_vector_argument_is_named(
    position: int, value: object, words: str, load: Load
) -> None:
    kernel = kernel_of(load, PARAMETERS)
    arguments = [np.zeros(5), (1, 2, 3), (7, 2), ((1, 2), (3, 4)), (True, False)]
    kernel(*arguments)
    arguments[position] = value
    with pytest.raises(TypeError) as caught:
        kernel(*arguments)
    assert words in str(caught.value)
    with pytest.raises(OverflowError, match="which holds"):
        kernel(arguments[0], (1, 2, 3), (2**31, 0), ((1, 2), (3, 4)), (True, False))


def test_a_read_only_array_behind_a_vector_is_named(load: Load) -> None:
    kernel = kernel_of(
        load,
        """
        def kernel(v: tack.f32x4, x):
            for i in range(x.shape[0]):
                x[i] = v[i % 4]
        """,
    )
    x = np.zeros(6, np.float32)
    kernel((1, 2, 3, 4), x)
    assert x.tolist() == [1, 2, 3, 4, 1, 2]
    x.flags.writeable = False
    with pytest.raises(ValueError, match="array 'x' is read-only"):
        kernel((1, 2, 3, 4), x)


def test_a_vector_parameter_needs_an_annotation(load: Load) -> None:
    kernel = kernel_of(load, "    def kernel(x, v):\n        for i in range(3): x[i] = v")
    with pytest.raises(ValueError, match=r"no call selects f32x3; annotate it tack\.f32x3"):
        lower_kernel(kernel.definition, Signature.parse("f32[:], f32x3"))


PREBUILT = """
    import tack

    @tack.kernel
    def push(p: tack.Array[tack.f32x3], v: tack.f32x3, dt):
        for i in range(p.shape[0]):
            p[i] += v * dt

    @tack.kernel
    def scale(p, factor):
        for i in range(p.shape[0]):
            p[i] = p[i] * factor
"""


def test_vectors_are_prebuilt_and_a_row_decides_without_an_annotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Package(tmp_path, {"kernels": PREBUILT})
    rows = [
        ("push", "f32x3[:], f32x3, f32"),
        ("push", "f32x3[:; strided], f32x3, f32"),
        ("scale", "f32x3[:], f32"),
        ("scale", "f32[:], f32"),
    ]
    package.build(rows, levels()[-1:])
    kernels = package.load()
    monkeypatch.setenv("TACK_JIT", "forbid")
    p = np.zeros((4, 3), np.float32)
    kernels.push(p, (1, 2, 3), 0.5)
    kernels.scale(p, 4.0)
    kernels.scale(p.reshape(-1), 0.5)
    assert p.tolist() == [[1, 2, 3]] * 4
    kernels.push(p[::-2, ::-1], (1, 2, 3), 1.0)
    assert p.tolist() == [[1, 2, 3], [4, 4, 4]] * 2
    assert "f32x3[:; strided]" in str(tack.explain(kernels.push, p.T[::-1].T, (1, 2, 3), 1.0))
    with pytest.raises(tack.errors.NoVariantError):
        kernels.scale(np.zeros((4, 2), np.float32), 1.0)
    package.forget()


def test_signatures_write_vectors() -> None:
    text = "f32x3[:], u8x2[:, :; strided], f32x3[()], f64x2x2[:], f32x4[8], f32x3, boolx2, i8x4x3"
    assert str(Signature.parse(text)) == text
    (spec,) = Signature.parse("f32x3[:, 5]")
    assert (spec.rank, spec.all_dims) == (2, (None, 5, 3))
    with pytest.raises(ValueError, match="9 dimensions, those of its elements included"):
        Signature.parse("f32x3x3[:, :, :, :, :, :, :]")
    with pytest.raises(ValueError, match="unknown type 'f32x5'"):
        Signature.parse("f32x5[:]")


def test_there_is_a_type_for_every_scalar_type_and_size() -> None:
    names = [f"{d}x{n}" for d in tack.model.dtypes.DTYPES for n in (2, 3, 4)]
    names += [f"f32x{r}x{c}" for r in (2, 3, 4) for c in (2, 3, 4)]
    for name in names:
        assert getattr(tack, name) is vector_type(name)
        assert getattr(tack, name).name == name
    assert textwrap.dedent(tack.f32x2x3.__doc__) == "A 2 by 3 matrix of f32."


def test_the_example_agrees_with_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parent.parent / "examples" / "vectors" / "rays.py"
    runpy.run_path(str(path), run_name="__main__")
    assert "rays meet lit ground" in capsys.readouterr().out
