"""What was built apart works together: layouts, narrow types, vectors, templates, atomics.

Each kernel runs under the oracle, through the C that a build compiles, and at the call.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import oracle
import pytest
from harness import differences, run_tack

Load = Callable[[str], ModuleType]
Arrays = list[np.ndarray[Any, Any]]

TEXT = """
    @tack.device_class
    class Field:
        scale = 2

        def __init__(self, data, offset):
            self.data = data
            self.offset = offset

        @tack.func
        def at(self, v, i):
            return v * self.data[i] * self.scale + tack.f32x3(self.offset, 0.0, 1.0)

    @tack.kernel
    def vectors_and_a_template(v: tack.f32x3, field, out: tack.Array[tack.f32x3]):
        for i in range(out.shape[0]):
            out[i] = field.at(v.zyx, i)

    @tack.kernel
    def narrow_vectors(v: tack.f16x2, w: tack.bf16x2, x, y):
        for i in range(x.shape[0]):
            kept = tack.local_array(tack.f16x2, 2)
            kept[1] = v + tack.f16x2(x[i], 0.1)
            x[i] = kept[1].x / kept[1].y + kept[0].x
            y[i] = (w * tack.bf16x2(y[i], 3.0)).y // tack.bf16(0.7)

    @tack.kernel
    def local_flags(m, out):
        for i, j in tack.ndrange(m.shape[0], m.shape[1]):
            seen = tack.local_array(tack.bool_, 4)
            counts = tack.local_array(tack.i32, 4)
            half = tack.local_array_like(counts, tack.f16)
            seen[j % 4] = m[i, j]
            before = tack.atomic_add(counts, j % 4, i + 3)
            half[i % 4] = counts[j % 4] * 0.1
            out[i, j] = seen[j % 4] and before == 0 and half.flat[i % 4] > 0.3

    @tack.kernel
    def builtins_by_component(a: tack.Array[tack.f32x3], out: tack.Array[tack.f32x3]):
        for i in range(out.shape[0]):
            t = tack.clamp(a[i], -1.0, 1.0)
            out[i] = tack.mix(tack.round(a[i]), tack.sign(t), tack.f32x3(0.25))
            out[i].y += tack.copysign(a[i], tack.f32x3(-1.0)).z
"""


def _strided(base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values with gaps between, backwards in memory."""
    return np.repeat(base[::-1], 2, axis=0)[::-2]


def _layouts(*bases: np.ndarray[Any, Any]) -> list[Arrays]:
    return [[base.copy() for base in bases], [_strided(base) for base in bases]]


RNG = np.random.default_rng(7)
FLOATS = RNG.normal(0, 9, (8, 3)).astype(np.float32)
HALVES = RNG.normal(0, 9, 8).astype(np.float16)
BRAINS = RNG.normal(0, 9, 8).astype(ml_dtypes.bfloat16)
FLAGS = RNG.random((5, 4)) < 0.5

CASES: dict[str, tuple[list[Arrays], Callable[[ModuleType, Arrays], list[Any]]]] = {
    "vectors_and_a_template": (
        _layouts(FLOATS[:, 0], np.zeros((8, 3), np.float32)),
        lambda module, arrays: [(1, 2.5, -3), module.Field(arrays[0], 1.5), arrays[1]],
    ),
    "narrow_vectors": (
        _layouts(HALVES, BRAINS),
        lambda module, arrays: [(1, 2.5), (0.3, -4), *arrays],
    ),
    "local_flags": (_layouts(FLAGS, np.zeros((5, 4), bool)), lambda module, arrays: arrays),
    "builtins_by_component": (
        _layouts(FLOATS, np.zeros((8, 3), np.float32)),
        lambda module, arrays: arrays,
    ),
}


@pytest.mark.parametrize("layout", [0, 1], ids=["contiguous", "strided"])
@pytest.mark.parametrize("name", CASES)
def test_features_work_together(name: str, layout: int, load: Load, tmp_path: Path) -> None:
    module = load(textwrap.dedent(TEXT))
    kernel = getattr(module, name)
    layouts, bind = CASES[name]
    expected, built, called = (
        [_strided(each) if layout else each.copy() for each in layouts[layout]] for _ in range(3)
    )
    oracle.run(kernel, bind(module, expected))
    run_tack(kernel, bind(module, built), tmp_path / "unit")
    kernel(*bind(module, called))
    assert not differences(expected, built)
    assert not differences(expected, called)
