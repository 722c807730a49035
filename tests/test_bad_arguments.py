"""Arguments that no variant could take: one sentence each, before anything runs."""

from __future__ import annotations

import fractions

import ml_dtypes
import numpy as np
import pytest

import tack
from tack.errors import NoVariantError

pytestmark = pytest.mark.usefixtures("no_jit")

KERNELS = """
    @tack.kernel
    def plain(a, x, out):
        for i in range(x.shape[0]):
            out[i] = a * x[i]

    @tack.kernel
    def annotated(n: tack.u8, s: tack.i64, f: tack.f32, b: tack.bool_, x):
        for i in range(x.shape[0]):
            x[i] = 1.0
"""
X = np.zeros(4, np.float32)


class Odd(np.ndarray):
    """Says of itself what it is not; a kernel goes by the array."""

    shape = dtype = flags = ndim = "odd"


READ_ONLY = np.zeros(4, np.float32)
READ_ONLY.flags.writeable = False
UNALIGNED = np.zeros(17, np.uint8)[1:].view(np.float32)


@pytest.fixture
def kernels(load):
    return load(KERNELS)


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((1.0, [1, 2], X), TypeError, "'x' is a list; pass a NumPy array: numpy.asarray"),
        (("1", X, X), TypeError, "'a' is a str"),
        ((None, X, X), TypeError, "'a' is None"),
        ((1.0, memoryview(X), X), TypeError, "'x' is a memoryview; pass a NumPy array: numpy.asar"),
        ((1.0, X.dtype, X), TypeError, "'x' is a numpy.dtypes.Float32DType; a kernel takes"),
        ((1.0, np.ndarray, X), TypeError, "'x' is the class ndarray; pass an object of it"),
        ((ml_dtypes.int4(1), X, X), TypeError, "'a' is a ml_dtypes.int4; a kernel takes arrays"),
        ((ml_dtypes.float8_e4m3fnuz(1), X, X), TypeError, "'a' is a ml_dtypes.float8_e4m3fnuz"),
        ((np.void(b"1"), X, X), TypeError, "'a' is a numpy.void; a kernel takes arrays"),
        ((np.timedelta64(1, "s"), X, X), TypeError, "'a' is a numpy.timedelta64; a kernel"),
        (
            (fractions.Fraction(10**400), X, X),
            OverflowError,
            "scalar 'a' is a fractions.Fraction beyond the range of f64",
        ),
        ((1j, X, X), TypeError, "'a' is a complex"),
        ((1.0, X.astype(complex), X), TypeError, "'x' has dtype complex128"),
        ((1.0, X.astype("S1"), X), TypeError, "'x' has dtype |S1"),
        ((1.0, X.astype(object), X), TypeError, "'x' has dtype object"),
        ((1.0, X.astype(np.longdouble), X), TypeError, "'x' has dtype"),
        ((1.0, X.astype(">f4"), X), TypeError, "in another byte order; pass .astype('float32')"),
        ((1.0, np.zeros(4, "M8[s]"), X), TypeError, "'x' has dtype datetime64[s]"),
        ((1.0, np.zeros(4, [("a", "f4")]), X), TypeError, "'x' has dtype"),
        (
            (1.0, np.zeros((1,) * 9, np.float32), X),
            TypeError,
            "9 dimensions; a kernel takes at most 8",
        ),
        ((1.0, np.ma.masked_array(X), X), TypeError, "'x' is masked"),
        ((2**63, X, X), OverflowError, "'a' is i64, which holds"),
        ((-(2**63) - 1, X, X), OverflowError, "'a' is i64"),
        ((10**5000, X, X), OverflowError, "'a' is i64"),
        ((np.uint64(2**63), X, X), OverflowError, "'a' is i64"),
    ],
)
def test_a_wrong_argument_is_named(kernels, args, error, words):
    with pytest.raises(error) as caught:
        kernels.plain(*args)
    assert words in str(caught.value)
    with pytest.raises(error) as explained:
        tack.explain(kernels.plain, *args)
    assert str(explained.value) == str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n": 256}, OverflowError, "'n' is u8, which holds 0 to 255, and was given 256"),
        ({"n": -1}, OverflowError, "'n' is u8"),
        ({"n": 1.0}, TypeError, "'n' is annotated u8 and was given the float 1.0"),
        ({"n": np.float64(1)}, TypeError, "'n' is annotated u8"),
        ({"n": np.int64(256)}, OverflowError, "'n' is u8"),
        ({"n": X}, TypeError, "'n' is annotated u8 and was given an array"),
        ({"s": 2**63}, OverflowError, "'s' is i64"),
        ({"f": 10**400}, OverflowError, "'f' is f32, and 1000"),
        ({"f": "1"}, TypeError, "'f' is a str"),
        ({"b": 1}, TypeError, "'b' is annotated bool and was given 1; pass True or False"),
        ({"b": 1.0}, TypeError, "'b' is annotated bool"),
        ({"x": 1.0}, NoVariantError, "(u8, i64, f32, bool, f32)"),
    ],
)
def test_a_wrong_annotated_scalar_is_named(kernels, change, error, words):
    arguments = {"n": 1, "s": 1, "f": 1.0, "b": True, "x": X} | change
    with pytest.raises(error) as caught:
        kernels.annotated(**arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("args", "signature"),
    [
        ((1.0, X, X), "f32, f32[:], f32[:]"),
        ((1, X, X), "i64, f32[:], f32[:]"),
        ((True, X, X), "bool, f32[:], f32[:]"),
        ((np.bool_(True), X, X), "bool, f32[:], f32[:]"),
        ((np.float64(1), X, X), "f32, f32[:], f32[:]"),
        ((np.float16(1), X, X), "f32, f32[:], f32[:]"),
        ((np.uint8(1), X, X), "i64, f32[:], f32[:]"),
        ((1.0, X, X.astype("f8")), "f64, f32[:], f64[:]"),
        ((np.float32(1), X, X.astype("f8")), "f64, f32[:], f64[:]"),
        ((fractions.Fraction(1, 2), X, X), "f32, f32[:], f32[:]"),
        ((1.0, X.astype(np.longlong), X.astype("u8")), "f32, i64[:], u64[:]"),
        ((1.0, READ_ONLY, X.reshape(2, 2)), "f32, f32[:], f32[:, :]"),
        ((1.0, X[:0], X), "f32, f32[:], f32[:]"),
        ((1.0, X[::2], X[::-1]), "f32, f32[:; strided], f32[:; strided]"),
        ((1.0, UNALIGNED, X[:0:2]), "f32, f32[:; strided], f32[:]"),
        ((1.0, np.broadcast_to(X, (2, 4)), X), "f32, f32[:, :; strided], f32[:]"),
        ((1.0, np.zeros((), "f4"), X.reshape(1, 2, 1, 2)), "f32, f32[()], f32[:, :, :, :]"),
        ((1.0, UNALIGNED[0:1].reshape(()), X), "f32, f32[(); strided], f32[:]"),
        ((ml_dtypes.bfloat16(1), X, X), "f32, f32[:], f32[:]"),
        ((np.longdouble(1), X.view(Odd), X), "f32, f32[:], f32[:]"),
    ],
)
def test_the_signature_of_a_call_is_that_of_the_language(kernels, args, signature):
    with pytest.raises(NoVariantError) as caught:
        kernels.plain(*args)
    assert f":plain({signature}): no variant answers" in str(caught.value)
    assert "ships no bundle" in str(caught.value)
    assert str(tack.explain(kernels.plain, *args)) == str(caught.value)


@pytest.mark.parametrize(
    ("args", "keywords", "words"),
    [
        ((), {}, "missing 3 required"),
        ((1.0, X), {}, "missing 1 required"),
        ((1.0, X, X, X), {}, "takes 3 positional arguments but 4 were given"),
        ((1.0, X), {"y": X}, "unexpected keyword argument 'y'"),
        ((1.0, X, X), {"x": X}, "multiple values for argument 'x'"),
    ],
)
def test_a_call_binds_as_a_python_function_does(kernels, args, keywords, words):
    with pytest.raises(TypeError, match=words):
        kernels.plain(*args, **keywords)


def test_explain_takes_kernels_only():
    with pytest.raises(TypeError, match=r"tack\.explain takes a kernel, not a function"):
        tack.explain(lambda x: x, 1)
