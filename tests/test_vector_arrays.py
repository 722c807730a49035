"""Arrays of vectors in every layout, flat, and local to an iteration: tack against the oracle."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from harness import differences, levels, run_tack
from refusal_cases import refused

import tack

Load = Callable[[str], ModuleType]
View = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def _unaligned(base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    room = np.zeros(base.nbytes + 1, np.uint8)[1:].view(base.dtype).reshape(base.shape)
    room[...] = base
    return room


VIEWS: dict[str, View] = {
    "contiguous": lambda x: x[0],
    "every other vector": lambda x: x[0, ::2],
    "vectors reversed": lambda x: x[0, ::-1, ::-1],
    "components reversed": lambda x: x[0, :, :, ::-1],
    "transposed": lambda x: x[0].transpose(1, 0, 2),
    "components first in memory": lambda x: x.transpose(1, 2, 3, 0)[:, :, 1],
    "unaligned": lambda x: _unaligned(x[0]),
}

KERNEL = """
    @tack.func
    def turned(v):
        return v.zxy

    @tack.func
    def fill(b, v):
        b[0] = v
        b[1].yz += v.xy

    @tack.kernel
    def kernel(x: tack.Array[tack.f32x3], out):
        for i, j in tack.ndrange(x.shape[0], x.shape[1]):
            k = i * x.shape[1] + j
            v = x[i, j]
            b = tack.local_array(tack.f32x3, 2)
            c = tack.local_array_like(b)
            fill(b, v)
            x[i, j] = turned(v) + b[1] + c[i % 2]
            x[i, j].y -= 1
            x[i, j][k % 3] *= 2
            x.flat[k].zx = x.flat[k].xz + b.flat[0].x
            x.flat[k] += v
            out.flat[k] = tack.dot(x.flat[k], v) + x.size + x.ndim + len(x) + len(b) + len(v)
"""


def _arguments(name: str) -> list[np.ndarray[Any, Any]]:
    base = np.random.default_rng(5).random((3, 4, 3, 3), np.float32)
    x = VIEWS[name](base)
    return [x, np.zeros(x.shape[:2], np.float32)]


@pytest.mark.parametrize("name", VIEWS)
def test_vectors_of_an_array_of_any_layout_are_read_and_written(
    name: str, load: Load, tmp_path: Path
) -> None:
    kernel = load(textwrap.dedent(KERNEL)).kernel
    expected, built, called = (_arguments(name) for _ in range(3))
    oracle.run(kernel, expected)
    run_tack(kernel, built, tmp_path / "unit")
    kernel(*called)
    assert not differences(expected, built)
    assert not differences(expected, called)


@pytest.mark.parametrize("level", levels())
def test_an_array_without_dimensions_may_be_a_vector(
    level: str, load: Load, tmp_path: Path
) -> None:
    text = """
        @tack.kernel
        def kernel(x: tack.Array[tack.f32x2]):
            for i in range(1):
                x[()].y += x.flat[0].x + x.ndim + x.size
    """
    kernel = load(textwrap.dedent(text)).kernel
    for step in (1, 2):
        x = np.arange(2 * step, dtype=np.float32)[::step]
        expected = x.copy()
        oracle.run(kernel, [expected])
        run_tack(kernel, [x], tmp_path / f"unit{step}", level)
        assert x.tolist() == expected.tolist() == [0, 2 if step == 1 else 3]


def test_vectors_of_bool_and_matrices_lie_in_local_arrays(load: Load) -> None:
    text = """
        @tack.kernel
        def kernel(out):
            for i in range(out.shape[0]):
                flags = tack.local_array(tack.boolx2, 3)
                flags[i % 3].y = True
                m = tack.local_array(tack.f64x2x3, (2, 2))
                m[1, 0][0, 2] = 4
                m.flat[i % 4][1] = tack.f64x3(1, 2, 3)
                out[i] = m[1, 0][0, 2] + m[i // 2, i % 2][1, 2] + (10 if any(flags[i % 3]) else 0)
    """
    kernel = load(textwrap.dedent(text)).kernel
    out = np.zeros(4)
    kernel(out)
    assert out.tolist() == [17, 17, 17, 17]


def test_plain_python_makes_local_arrays_of_vectors(load: Load) -> None:
    b = tack.local_array(tack.f32x3, 2)
    b[1].y = 4
    assert b[1].yx.tolist() == [4, 0]
    assert tack.local_array_like(b)[0].xyz.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("b = tack.local_array_like(x, tack.f64)", "has their type; write tack.local_array"),
        ("b = tack.local_array_like(x)", r"pin the extents of 'x'.*f32x3\[3\]"),
        ("b = tack.local_array(tack.f32x3x3, (1, 1, 1, 1, 1, 1, 1))", "those of vectors included"),
        ("x.flat[i] = 1.0", "goes into a vector of 3"),
    ],
)
def test_what_is_refused_of_arrays_of_vectors_says_what_to_write(
    line: str, words: str, load: Load
) -> None:
    text = "@tack.kernel\ndef kernel(x: tack.Array[tack.f32x3]):\n    for i in range(2):\n"
    error = refused(load(f"{text}        {line}\n"), "f32x3[:]")

    assert re.search(words, error.message)
