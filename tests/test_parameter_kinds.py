"""Positional-only and keyword-only parameters, of kernels and of device functions."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module

import tack
from tack.lang.lower import lower_kernel
from tack.model.signature import Signature

TEXT = """
import tack

@tack.device_class
class Scale:
    def __init__(self, factor):
        self.factor = factor

@tack.func
def scaled(x, /, by=2, *, offset: tack.f32, sign=1):
    return sign * x * by + offset

@tack.kernel
def kernel(x, /, n, *, out, by: tack.f32x2, offset: tack.f32 = 0.5):
    for i in range(n):
        out[i] = scaled(x[i], offset=by.x) + scaled(x[i], n, sign=-1, offset=offset) * by.y

@tack.kernel
def templated(x, /, *, out, s):
    for i in range(x.shape[0]):
        out[i] = x[i] * s.factor
"""


@pytest.fixture
def module(tmp_path: Any) -> ModuleType:
    return load_module(TEXT, tmp_path)


def test_arguments_bind_as_in_python(module: ModuleType) -> None:
    x = np.arange(5, dtype=np.float32)
    expected, plain = np.zeros(5, np.float32), np.zeros(5, np.float32)
    oracle.run(module.kernel, [x, 5, expected, (1, 3), 0.25])
    module.kernel.py_func(x, 5, out=plain, by=tack.f32x2(1, 3), offset=0.25)
    assert expected.tolist() == plain.tolist()
    for call in (
        lambda out: module.kernel(x, 5, out=out, by=(1, 3), offset=0.25),
        lambda out: module.kernel(x, by=(1, 3), offset=0.25, out=out, n=5),
    ):
        for _ in range(2):
            found = np.zeros(5, np.float32)
            call(found)
            assert found.tolist() == expected.tolist()
    module.kernel(x, 5, out=found, by=(1, 3))
    oracle.run(module.kernel, [x, 5, expected, (1, 3), 0.5])
    assert found.tolist() == expected.tolist()


def test_a_template_may_be_keyword_only(module: ModuleType) -> None:
    x, out = np.arange(3.0), np.zeros(3)
    for _ in range(2):
        module.templated(x, s=module.Scale(2.5), out=out)
        assert out.tolist() == [0, 2.5, 5]
    explanation = tack.explain(module.templated, x, s=module.Scale(2.5), out=out)
    assert ", f64[:], " in explanation.signature


def test_what_does_not_bind_is_refused_in_the_words_of_python(module: ModuleType) -> None:
    x = np.zeros(1, np.float32)
    with pytest.raises(TypeError, match="positional-only arguments passed as keyword"):
        module.kernel(x=x, n=1, out=x, by=(1, 1))
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        module.kernel(x, 1, x, by=(1, 1))
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'out'"):
        module.kernel(x, 1, by=(1, 1))


def test_a_signature_lists_parameters_in_the_order_of_the_source(module: ModuleType) -> None:
    signature = Signature.parse("f32[:], i64, f32[:], f32x2, f32")
    lowered = lower_kernel(module.kernel.definition, signature)
    assert [each.name for each in lowered.params][:3] == ["x", "n", "out"]
