"""Arrays of bool: a byte for each element, of which any but 0 counts as true."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module
from harness import levels
from twins import Pair, Twins

from tack.compile import generate
from tack.errors import CompileError
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

TEXT = """
import tack

@tack.kernel
def select(mask, x, out):
    for i in range(mask.shape[0]):
        out[i] = x[i] if mask[i] else -x[i]

@tack.kernel
def logic(a, b, out):
    for i in range(a.shape[0]):
        out[0, i] = a[i] and b[i]
        out[1, i] = a[i] or b[i]
        out[2, i] = not a[i]
        out[3, i] = a[i] == b[i]
        out[4, i] = a[i] < b[i]
        out[5, i] = a[i] & b[i]
        out[6, i] = a[i] | b[i]
        out[7, i] = a[i] ^ b[i]
        out[8, i] = a[i]
        out[8, i] ^= b[i]
        out[9, i] = tack.bool_(a[i] + b[i])

@tack.kernel
def count(a, b, out):
    for i in range(a.shape[0]):
        out[i] = a[i] + b[i] + a[i] * 10
"""

BYTES = np.arange(256, dtype=np.uint8)
"""Every byte, most of which NumPy never writes into a bool array."""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return load_module(TEXT, tmp_path_factory.mktemp("bools"))


def any_bytes() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Bools of every byte beside every other kind of byte."""
    return BYTES.view(np.bool_), np.roll(BYTES * 3, 5).view(np.bool_)


@pytest.mark.parametrize(
    ("name", "signature", "out"),
    [
        ("select", "bool[:], f32[:], f32[:]", np.zeros(256, np.float32)),
        ("logic", "bool[:], bool[:], bool[:, :]", np.zeros((10, 256), np.bool_)),
        ("count", "bool[:], bool[:], i64[:]", np.zeros(256, np.int64)),
    ],
)
def test_any_byte_but_zero_is_true_in_c_and_in_llvm(
    module: ModuleType, name: str, signature: str, out: np.ndarray[Any, Any]
) -> None:
    kernel, (first, second) = getattr(module, name), any_bytes()
    inputs = [first, np.arange(256, dtype=np.float32) if name == "select" else second]
    expected = out.copy()
    oracle.run(kernel, [*inputs, expected])
    pair = Pair(kernel, signature, lambda: [out.copy()], lambda memory: [*inputs, *memory])
    for way, (found,) in Twins([pair], levels()).runs(0):
        assert found.tobytes() == expected.tobytes(), way


def test_what_is_stored_is_0_or_1(module: ModuleType) -> None:
    first, second = any_bytes()
    out = np.full((10, 256), 7, np.uint8)
    module.logic(first, second, out.view(np.bool_))
    assert set(np.unique(out)) <= {0, 1}


@pytest.mark.parametrize("value", ["1", "i", "x[i]", "1.0", "0"])
def test_a_number_is_no_bool(value: str, tmp_path: Path) -> None:
    text = f"""
        import tack

        @tack.kernel
        def kernel(x, out):
            for i in range(x.shape[0]):
                out[i] = {value}
        """
    kernel = load_module(dedent(text), tmp_path).kernel
    target = Target("cpu", "x86-64-v2")
    variant = Variant(kernel.definition, Signature.parse("f32[:], bool[:]"), target)
    with pytest.raises(CompileError, match=r"an element of out is bool and .* cast it: bool\("):
        generate(variant, renderer_for(target))
    with pytest.raises(oracle.OracleRefused):
        oracle.run(kernel, [np.zeros(2, np.float32), np.zeros(2, np.bool_)])


def test_numpy_masks_come_and_go(module: ModuleType) -> None:
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    out = np.zeros_like(x)
    module.select(x > 0, x, out)
    assert np.array_equal(out, np.abs(x))
