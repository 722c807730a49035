"""What people write of Python and NumPy in kernels, where it has the meaning that they expect."""

from __future__ import annotations

import math
import textwrap
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module
from harness import differences

from tack.lang.bindings import describe

PRELUDE = """
import math
from math import inf

import numpy as np
import tack

TABLE = (1.5, 7, tack.constant(3, tack.u8))
"""


@pytest.fixture
def load(tmp_path: Any) -> Any:
    def make(text: str) -> ModuleType:
        return load_module(PRELUDE + textwrap.dedent(text), tmp_path)

    return make


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("float('inf')", math.inf),
        ("float('-inf')", -math.inf),
        ("float('nan')", math.nan),
        ("-math.inf", -math.inf),
        ("inf", math.inf),
        ("np.nan", math.nan),
        ("np.pi * 2", math.tau),
        ("math.e", math.e),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_of_python_and_numpy_are_literals(
    load: Any, written: str, value: float, dtype: str
) -> None:
    kernel = load(f"""
        @tack.kernel
        def kernel(x):
            for i in range(x.shape[0]):
                best = {written}
                x[i] = best
    """).kernel
    expected, found = np.zeros(2, dtype), np.zeros(2, dtype)
    oracle.run(kernel, [expected])
    kernel(found)
    assert not differences([expected], [found])
    assert not differences([np.full(2, value, dtype)], [found])


def test_types_of_numpy_cast(load: Any) -> None:
    kernel = load("""
        @tack.kernel
        def kernel(x, out):
            for i in range(x.shape[0]):
                out[i, 0] = np.float32(x[i]) / np.float32(3)
                out[i, 1] = np.uint8(x[i] * 100)
                out[i, 2] = np.bool_(x[i])
    """).kernel
    x, out = np.arange(5), np.zeros((5, 3))
    kernel(x, out)
    assert out[:, 0].tolist() == (x.astype("f4") / np.float32(3)).tolist()
    assert out[:, 1].tolist() == [0, 100, 200, 44, 144]
    assert out[:, 2].tolist() == [0, 1, 1, 1, 1]


def test_tuples_are_tables_at_literal_indices_and_count_in_the_key(load: Any) -> None:
    module = load("""
        @tack.kernel
        def kernel(x):
            for i in range(len(TABLE)):
                x[i] = TABLE[0] * i + TABLE[1] + TABLE[2]
    """)
    x = np.zeros(4, np.float32)
    module.kernel(x)
    assert x.tolist() == [10, 11.5, 13, 0]
    assert describe((1, 2.5)) != describe((1, 2.0)) != describe((1, 2))


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4)])
def test_a_loop_over_all_indices_of_an_array(load: Any, shape: tuple[int, ...]) -> None:
    names = ", ".join("ijk"[: len(shape)])
    kernel = load(f"""
        @tack.kernel
        def kernel(x):
            for {names}{"," * (len(shape) == 1)} in tack.ndrange(*x.shape):
                x[{names}] += 1 + i
    """).kernel
    x = np.zeros(shape)
    kernel(x)
    kernel.py_func(plain := np.zeros(shape))
    assert x.tolist() == plain.tolist()
    assert x.all()


def test_a_literal_beyond_a_type_of_floats_is_infinity_as_rounding_says(load: Any) -> None:
    kernel = load("""
        @tack.kernel
        def kernel(x):
            for i in range(x.shape[0]):
                best = 1e300
                x[i] = best if x[i] < best else 0.0
    """).kernel
    for dtype, value in (("f4", math.inf), ("f8", 1e300)):
        expected, found = np.ones(1, dtype), np.ones(1, dtype)
        oracle.run(kernel, [expected])
        kernel(found)
        assert not differences([expected], [found])
        assert found[0] == value
