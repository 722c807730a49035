"""Attributes that a class gives its objects: arrays, templates, vectors and annotated numbers."""

from __future__ import annotations

import gc
import weakref
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import load_module

import tack
from tack import _core
from tack.runtime.arguments import call_signature

TEXT = """
import numpy as np
import tack

GRAVITY = tack.constant((0, -9.75, 0), tack.f32x3)
TURN = tack.constant(tack.f64x2x2(0, -1, 1, 0))

@tack.device_class
class Inner:
    def __init__(self, n):
        self.n = n
        self.a = np.arange(4, dtype=np.int32) * n

@tack.device_class
class Base:
    scale: tack.f64
    width: "tack.u8"
    rays: tack.Array[tack.f32x2]
    table = np.array([10, 20, 30], np.float32)
    inner = Inner(5)
    up = tack.constant((7, 8, 9), tack.f32x3)
    hidden = np.zeros(3)

    def __init__(self):
        self.scale = 0.1
        self.width = 200
        self.v = tack.f64x3(1, 2, 3)
        self.hidden = 4
        self.rays = np.arange(6, dtype=np.float32).reshape(3, 2)

    @tack.func
    def turned(self, k):
        return self.v.zxy[k] + self.inner.a[k]

class Derived(Base):
    pass

@tack.kernel
def kernel(t, out):
    for i in range(3):
        out[i, 0] = t.table[i] + t.inner.n + t.inner.a[i]
        out[i, 1] = t.scale + t.turned(i)
        out[i, 2] = t.width + tack.u8(100)
        out[i, 3] = t.up.y + t.up[i] + t.hidden

@tack.kernel
def rays(t, out):
    for i in range(3):
        out[i] = tack.dot(t.rays[i], t.rays[0])

@tack.kernel
def captured(x, out):
    for i in range(3):
        v = GRAVITY * x[i] + GRAVITY.zyx
        w = TURN @ tack.f64x2(x[i], 1)
        out[i, 0] = v.y
        out[i, 1] = GRAVITY[1]
        out[i, 2] = w.x
        out[i, 3] = TURN[1, 0] + tack.dot(GRAVITY, v)
"""


@pytest.fixture
def module(tmp_path: Any) -> ModuleType:
    return load_module(TEXT, tmp_path)


def check(kernel: Any, given: Any) -> np.ndarray[Any, Any]:
    expected, found = np.zeros((3, 4)), np.zeros((3, 4))
    oracle.run(kernel, [given, expected])
    kernel(given, found)
    assert expected.tolist() == found.tolist()
    return found


def test_what_a_class_holds_its_objects_have(module: ModuleType) -> None:
    for cls in (module.Base, module.Derived):
        found = check(module.kernel, cls())
    assert found[0].tolist() == [15, 3.1, 44, 19]
    signature = call_signature(module.kernel.definition, (module.Derived(), np.zeros((3, 4))))
    text = str(signature)
    for part in ("table: f32[3]", "inner: ", "scale: f64", "width: u8", "v: f64x3[()]"):
        assert part in text
    assert "up=f32x3(7.0, 8.0, 9.0)" in text
    assert type(signature).parse(text).content() == signature.content()


def test_it_is_looked_up_at_every_call_without_another_plan(module: ModuleType) -> None:
    given = module.Derived()
    check(module.kernel, given)
    plans = _core.templated_count(module.kernel)
    module.Base.table = np.array([1, 2, 3], np.float32)
    module.Base.inner = module.Inner(7)
    given.v = tack.f64x3(0, 0, 1)
    check(module.kernel, given)
    module.Base.table[:] = 5
    given.v.x = 3
    check(module.kernel, given)
    assert _core.templated_count(module.kernel) == plans
    module.Base.table = np.array([1, 2, 3], np.int16)
    check(module.kernel, given)
    module.Derived.table = np.array([4, 5, 6], np.float32)
    check(module.kernel, given)
    given.table = np.array([7, 8, 9], np.float32)
    check(module.kernel, given)
    module.Base.up = tack.constant((1, 2, 3), tack.f32x3)
    check(module.kernel, given)


def test_a_class_is_not_kept_by_what_it_holds(module: ModuleType) -> None:
    check(module.kernel, module.Derived())
    gone = weakref.ref(module.Derived)
    del module.Derived
    gc.collect()
    assert gone() is None


def test_an_annotation_of_a_class_decides_and_is_checked(module: ModuleType) -> None:
    given, out = module.Base(), np.zeros((3, 4), np.float32)
    found = np.zeros(3, np.float32)
    module.rays(given, found)
    assert found.tolist() == [1, 3, 5]
    assert "scale: f64" in str(call_signature(module.kernel.definition, (given, out)))
    given.width = 300
    with pytest.raises(OverflowError, match=r"scalar 't\.width' is u8, which holds 0 to 255"):
        module.kernel(given, out)
    given.width = 1.5
    with pytest.raises(TypeError, match=r"'t\.width' is annotated u8"):
        module.kernel(given, out)
    given.width, given.scale = 1, np.zeros(3)
    with pytest.raises(TypeError, match=r"'t\.scale' is annotated f64 .* array \(f64\[3\]\); give"):
        module.kernel(given, out)
    given.scale, given.rays = 1.0, np.zeros((3, 3), np.float32)
    with pytest.raises(TypeError, match=r"'t\.rays' is annotated .*whose last ax.* 2"):
        module.kernel(given, out)


def test_an_object_of_the_class_itself_is_not_one_that_it_holds(module: ModuleType) -> None:
    module.Base.first = module.Base()
    check(module.kernel, module.Derived())


def test_vectors_from_outside_are_constants(module: ModuleType) -> None:
    found = check(module.captured, np.arange(3, dtype=np.float32))
    assert found[1].tolist()[:3] == [-19.5, -9.75, -1]
    with pytest.raises(ValueError, match="read-only"):
        module.GRAVITY.x = 1.0
    assert tack.constant((1, 2), tack.i16x2).tolist() == [1, 2]
    with pytest.raises(TypeError, match="has 3 components"):
        tack.constant((1, 2), tack.f32x3)


def test_a_vector_that_hides_a_constant_is_one_too(module: ModuleType) -> None:
    """It is compiled in, and each value has a variant of its own."""
    objects = [module.Base() for _ in range(3)]
    out = np.zeros((3, 4))
    for number, given in enumerate(objects[1:]):
        given.up = tack.constant((number, 8, 9), tack.f32x3)
        signature = call_signature(module.kernel.definition, (given, out))
        assert f"up=f32x3({number}.0, 8.0, 9.0)" in str(signature)
    for given in (*objects, *objects):
        check(module.kernel, given)
    del objects[1].up
    check(module.kernel, objects[1])
