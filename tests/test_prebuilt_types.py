"""Bools, floats of 8 and 16 bits, builtins and atomics: prebuilt and compiled at the call alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import differences, levels
from packages import Package

TEXT = """
    import tack

    @tack.kernel
    def masked(mask, x, y, scale: tack.bf16, out):
        for i in range(x.shape[0]):
            if mask[i] and tack.math.isfinite(x[i]):
                out[i] = tack.clamp(round(x[i] * y[i] + 0.1), -100, 100) * scale
                mask[i] = x[i] < y[i]

    @tack.kernel
    def binned(x, counts, most):
        for i in range(x.shape[0]):
            bin = tack.clamp(int(tack.floor(x[i])), 0, counts.shape[0] - 1)
            if tack.atomic_add(counts, bin, 1) == 0:
                tack.atomic_max(most, 0, tack.f32(x[i]))
"""
ROWS = [
    ("masked", "bool[:], f16[:], f16[:], bf16, f32[:]"),
    ("masked", "bool[:], bf16[:], bf16[:], bf16, bf16[:]"),
    ("masked", "bool[:], f8e4m3[:], f8e4m3[:], bf16, f8e5m2[:]"),
    ("binned", "f16[:], u32[:], f32[:]"),
]


def arguments(kernel: str, kind: Any, out: Any) -> list[Any]:
    rng = np.random.default_rng(4)
    x, y = (rng.normal(0, 9, 1001).astype(kind) for _ in range(2))
    if kernel == "binned":
        return [x, np.zeros(8, np.uint32), np.zeros(1, np.float32)]
    return [rng.random(1001) < 0.7, x, y, 0.3, np.zeros(1001, out)]


@pytest.mark.parametrize(
    ("kernel", "kind", "out"),
    [
        ("masked", np.float16, np.float32),
        ("masked", ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        ("masked", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
        ("binned", np.float16, None),
    ],
)
def test_prebuilt_and_compiled_at_the_call(
    kernel: str, kind: Any, out: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Package(tmp_path, {"kernels": TEXT})
    package.build([row for row in ROWS if row[0] == kernel], levels())
    monkeypatch.setenv("TACK_JIT", "forbid")
    prebuilt = arguments(kernel, kind, out)
    getattr(package.load(), kernel)(*prebuilt)
    monkeypatch.setenv("TACK_JIT", "allow")
    unbuilt = Package(tmp_path, {"kernels": TEXT})
    compiled = arguments(kernel, kind, out)
    getattr(unbuilt.load(), kernel)(*compiled)
    arrays = [
        [each for each in given if isinstance(each, np.ndarray)] for given in (prebuilt, compiled)
    ]
    assert not differences(*arrays)
    assert any(np.any(each) for each in arrays[0][-2:])
