"""Kernels that a generator seldom writes: tack against the oracle, and what both have to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from harness import differences, run_tack

Load = Callable[[str], ModuleType]

# Kernel over x (i64, 8 elements of 0), further scalars: (values, text, what x begins with).
CASES: dict[str, tuple[tuple[Any, ...], str, list[int]]] = {
    "an annotated scalar that is assigned keeps its type": (
        (100,),
        """
        def kernel(x, n: tack.i8):
            for i in range(2):
                n = n + 300
                x[i] = n
        """,
        [-112, -112, 0],
    ),
    "an extent has the types of the names that it reads": (
        (200,),
        """
        def kernel(x, a: tack.u8):
            c = 10
            d = c * 2
            for i in range(a * d // 1000):
                x[i] = a * d
        """,
        [4000, 4000, 4000, 4000, 0],
    ),
    "the end of a range is read once": (
        (5,),
        """
        def kernel(x, n):
            for i in range(1):
                for k in range(n // 2 + 1):
                    n = n + 1
                    x[k] = n
        """,
        [6, 7, 8, 0],
    ),
    "a load in the end of a range is read once": (
        (),
        """
        def kernel(x):
            for i in range(1):
                x[0] = 3
                for k in range(x[0]):
                    x[0] += 1
                    x[1] += 1
        """,
        [6, 3],
    ),
    "a loop's index may be assigned, and keeps its last value": (
        (),
        """
        def kernel(x):
            for i in range(1):
                k = 7
                for k in range(0):
                    x[0] = 1
                x[1] = k
                for k in range(4):
                    x[2] += k
                    k = 100
                x[3] = k
                for k in range(9, 2, -3):
                    pass
                x[4] = k
        """,
        [0, 7, 6, 100, 3],
    ),
    "an augmented store reads the old value before its right side": (
        (),
        """
        @tack.func
        def spoil(x):
            x[0] = 50
            return 1

        def kernel(x):
            for i in range(1):
                x[0] = 7
                x[0] += spoil(x)
                x[1] = x[0] + spoil(x) + x[0]
        """,
        [50, 59],
    ),
    "a value is evaluated before its index": (
        (),
        """
        @tack.func
        def next_of(x):
            x[7] += 1
            return x[7]

        def kernel(x):
            for i in range(1):
                x[next_of(x)] = next_of(x)
                x[next_of(x)] += next_of(x) * 10
        """,
        [0, 0, 1, 40],
    ),
    "what inlining hoists stays inside its guard": (
        (0,),
        """
        @tack.func
        def count(x, value):
            x[0] += 1
            return value

        def kernel(x, n):
            for i in range(1):
                a = n > 0 and count(x, True) or count(x, False)
                b = count(x, 5) if n > 0 else 6
                c = 0 > n < count(x, 2) < count(x, 1)
                while n < 2 and count(x, True):
                    n += 1
                x[1] = b + a + c
        """,
        [3, 6],
    ),
    "a tuple is evaluated before it is unpacked": (
        (),
        """
        def kernel(x):
            for i in range(1):
                a, b = 1, 2
                a, b = b, a
                x[0], x[1] = a, b
                x[0], x[1] = x[1], x[0]
        """,
        [1, 2],
    ),
    "a name is one local, whatever it is assigned": (
        (),
        """
        def kernel(x):
            for i in range(1):
                v = tack.u8(200)
                x[0] = v + tack.u8(100)
                v = tack.i16(-1)
                x[1] = v
        """,
        [300, -1],
    ),
    "literals that are unpacked, passed and returned stay literals": (
        (250,),
        """
        @tack.func
        def by_thirty(p):
            return p * 30

        def kernel(x, a: tack.u8):
            for i in range(1):
                ten, many = 1 + 9, 300
                c = d = 2 * 3
                x[0] = a + ten
                x[1] = a + many
                x[2] = a + by_thirty(1 + 5)
                x[3] = a + by_thirty(2 + 10)
                x[4] = a + c + d
        """,
        [4, 550, 174, 610, 6],
    ),
    "a parallel range counts exactly to the end of i64": (
        (2**63 - 8, 2**63 - 1),
        """
        def kernel(x, start, end):
            for i in range(start, end, 3):
                x[(i - start) // 3] = end - i
        """,
        [7, 4, 1, 0],
    ),
    "a sequential range counts exactly to the end of i64": (
        (2**63 - 8, 2**63 - 1),
        """
        def kernel(x, start, end):
            for i in range(1):
                n = 0
                for k in range(start, end, 3):
                    x[n] = end - k
                    n += 1
                for k in range(-start, -end - 1, -4):
                    x[n] = k + end
                    n += 1
        """,
        [7, 4, 1, 7, 3, 0],
    ),
    "iterations beyond 32 bits have their numbers": (
        (2**40,),
        """
        def kernel(x, n):
            for i in range(n, n + 3):
                x[i % 8] = i // n
        """,
        [1, 1, 1, 0],
    ),
    "operands, arguments and elements of a tuple are evaluated from left to right": (
        (),
        """
        @tack.func
        def log(x, k):
            x[7] = x[7] * 10 + k
            return k

        @tack.func
        def first(a, b, c=0):
            return a

        def kernel(x):
            for i in range(1):
                x[0] = log(x, 1) + log(x, 2) * log(x, 3)
                x[1] = first(log(x, 4), c=log(x, 5), b=log(x, 6))
                x[2], x[3] = log(x, 7), log(x, 8)
                x[4] = x[7]
        """,
        [7, 4, 7, 8, 12345678],
    ),
    "a chained comparison evaluates its middle once, and the rest only if it is needed": (
        (),
        """
        @tack.func
        def log(x, k):
            x[7] = x[7] * 10 + k
            return k

        def kernel(x):
            for i in range(1):
                x[0] = log(x, 1) < log(x, 2) < log(x, 3)
                x[1] = log(x, 5) < log(x, 4) < log(x, 6)
                x[2] = x[7]
        """,
        [1, 0, 12354],
    ),
    "and, or and a choice evaluate only what they choose": (
        (3,),
        """
        @tack.func
        def log(x, k):
            x[7] = x[7] * 10 + k
            return k

        def kernel(x, n):
            for i in range(1):
                x[0] = log(x, 1) > 5 and log(x, 2) > 0
                x[1] = log(x, 3) > 0 or log(x, 4) > 0
                x[2] = log(x, 5) if log(x, n) > 2 else log(x, 6)
                x[3] = x[7]
        """,
        [0, 1, 5, 1335],
    ),
    "an augmented assignment evaluates its index once, before the right side": (
        (),
        """
        @tack.func
        def log(x, k):
            x[7] = x[7] * 10 + k
            return k

        def kernel(x):
            for i in range(1):
                x[log(x, 2)] += log(x, 3)
                x[0] = x[7]
        """,
        [23, 0, 3],
    ),
    "a while condition is evaluated every round, and range once on entry": (
        (3,),
        """
        @tack.func
        def log(x, k):
            x[7] = x[7] * 10 + k
            return k

        def kernel(x, n):
            for i in range(1):
                k = 0
                while k < log(x, 2):
                    k += 1
                x[0] = x[7]
                x[7] = 0
                for k in range(log(x, 1), log(x, n)):
                    n = 9
                    x[1] += k
                x[2] = x[7]
        """,
        [222, 3, 13],
    ),
    "a local set before a nested loop belongs to its iteration": (
        (),
        """
        def kernel(x):
            for i in range(4):
                total = i
                for k in range(3):
                    total += k
                x[i] = total
        """,
        [3, 4, 5, 6, 0],
    ),
    "continue ends an iteration of the parallel loop": (
        (),
        """
        def kernel(x):
            for i in range(6):
                for k in range(3):
                    if k == i:
                        continue
                    x[i] += 1
                if i % 2:
                    continue
                x[i] += 10
        """,
        [12, 2, 12, 3, 13, 3, 0],
    ),
    "sizes below zero run nothing, and two of them do not multiply to a positive one": (
        (-3,),
        """
        def kernel(x, n):
            for i, j in tack.ndrange(n, n):
                x[0] = 1
        """,
        [0],
    ),
    "an inner ndrange runs its last index fastest, and reads its extents on entry": (
        (3,),
        """
        def kernel(x, n):
            for i in range(1):
                m, s = n, 0
                for a, b in tack.ndrange(m, m - 1):
                    m = 7
                    if b == 0 and a == 1:
                        continue
                    s = s * 10 + a * 2 + b
                    a = 5
                    for k in range(9):
                        if k == b:
                            break
                        x[1] += 1
                x[0] = s
                for a, b, c in tack.ndrange(n, -1, n):
                    x[2] = 1
                for a, b in tack.ndrange(2, 2):
                    x[3] += b
        """,
        [1345, 3, 0, 2],
    ),
    "hazards of integers are defined at every width, and trap at none": (
        (0, -1, 127),
        """
        def kernel(x, zero, minus, many):
            for i in range(1):
                least = tack.i32(-2147483648)
                lowest = tack.i64(-9223372036854775808)
                x[0] = lowest // minus - lowest
                x[1] = lowest % minus + lowest // zero + lowest % zero
                x[2] = least // tack.i32(minus)
                x[3] = least % tack.i32(minus) + tack.u32(least) // tack.u32(zero)
                x[4] = tack.u64(lowest) // tack.u64(zero) + tack.u64(lowest) % tack.u64(zero)
                x[5] = lowest >> many
                x[6] = tack.i32(5) << tack.i32(many)
        """,
        [0, 0, -(2**31), 0, 0, -1, -(2**31)],
    ),
    "a docstring, pass and an assert do nothing": (
        (1,),
        """
        def kernel(x, n):
            'Says something.'
            for i in range(2):
                pass
                assert n == 2, "not checked but in debug mode"
                x[i] = 5
        """,
        [5, 5, 0],
    ),
    "the least integer is a literal": (
        (),
        """
        def kernel(x):
            for i in range(1):
                x[0] = -9223372036854775808
                x[1] = tack.i64(-9223372036854775808) // -1
                x[2] = tack.i8(-128) - tack.i8(1)
                x[3] = abs(tack.i32(-2147483648))
        """,
        [-(2**63), -(2**63), 127, -(2**31)],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_both_give_what_the_language_says(name: str, load: Load, tmp_path: Path) -> None:
    scalars, text, begins = CASES[name]
    kernel = load(text.replace("def kernel", "@tack.kernel\n        def kernel")).kernel
    expected, found, called = (np.zeros(8, np.int64) for _ in range(3))
    oracle.run(kernel, [expected, *scalars])
    assert list(expected[: len(begins)]) == begins
    run_tack(kernel, [found, *scalars], tmp_path / "unit")
    kernel(called, *scalars)
    assert not differences([expected] * 2, [found, called])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_casts_to_an_integer_and_back_forget_the_sign_of_zero(
    dtype: type, load: Load, tmp_path: Path
) -> None:
    """gcc 12 makes a rounding of the two casts, and -0.25 became -0.0."""
    integers = [f"{kind}{bits}" for kind in "iu" for bits in (8, 16, 32, 64)]
    stores = "".join(
        f"\n                y[i, {at}] = tack.{each}(x[i])" for at, each in enumerate(integers)
    )
    kernel = load(
        f"""
        @tack.kernel
        def kernel(x, y):
            for i in range(x.shape[0]):{stores}
        """
    ).kernel
    edges = [-0.0, 0.0, -0.25, -0.99, 0.99, -1.0, -1.5, 1.0, 2.5, np.nan, np.inf, -np.inf, -1e30]
    x = np.array(edges * 5, dtype)
    expected, found = np.ones((x.size, 8), dtype), np.ones((x.size, 8), dtype)
    oracle.run(kernel, [x, expected])
    run_tack(kernel, [x, found], tmp_path / "unit")
    assert not differences([expected], [found])
    assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_less_zero_is_not_negative(dtype: type, load: Load, tmp_path: Path) -> None:
    """gcc 12 takes 0.0 - x for -x where it sees that x is no -0.0, such as a cast integer."""
    texts = [
        "0.0 - n[i]",
        "-tack.f64(n[i]) + 0.0",
        "0.0 + -tack.f32(n[i])",
        "0.0 - abs(x[i])",
        "0.0 - (n[i] if n[i] else abs(x[i]))",
        "tack.floor(0.1) - n[i]",
        "0.0 - tack.sqrt(abs(x[i]))",
        "0.0 - max(x[i], 0.0)",
    ]
    stores = "".join(f"\n                y[i, {at}] = {text}" for at, text in enumerate(texts))
    kernel = load(
        f"""
        @tack.kernel
        def kernel(x, n, y):
            for i in range(x.shape[0]):{stores}
        """
    ).kernel
    x, n = np.array([0.0, -0.0, 1.5, -2.0], dtype), np.array([0, 0, 3, -4], np.int32)
    expected, found = np.ones((4, len(texts)), dtype), np.ones((4, len(texts)), dtype)
    oracle.run(kernel, [x, n, expected])
    run_tack(kernel, [x, n, found], tmp_path / "unit")
    assert not differences([expected], [found])
