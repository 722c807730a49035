"""Local arrays: zeros, one of its own for each iteration and each round, in both writers."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from harness import levels
from packages import Package
from twins import Pair, disagreements

import tack
from tack.errors import CompileError, JITWarning
from tack.lang.lower_arrays import MAX_LOCAL_BYTES

KERNELS = """
    import tack

    W = tack.constant(3)
    N = tack.constant(2, tack.i32)

    @tack.func
    def fill(buffer, value):
        for k in range(buffer.size):
            buffer.flat[k] += value + k

    @tack.func
    def sum_of(buffer):
        copy = tack.local_array_like(buffer)
        total = buffer[0] - buffer[0]
        for k in range(len(buffer)):
            copy[k] = buffer[k]
        for k in range(len(copy)):
            total += copy[k]
        return total

    @tack.func
    def first_of(buffer, other):
        if buffer[0] > other[0]:
            return buffer[0]
        other[0] += 1
        return other[0]

    @tack.kernel
    def rounds(out):
        for i in range(out.shape[0]):
            for r in range(3):
                seen = tack.local_array(tack.i32, 2)
                seen[r % 2] += 1
                out[i] = out[i] * 10 + seen[0] + seen[1]

    @tack.kernel
    def shapes(x, out):
        for i in range(x.shape[0]):
            one = tack.local_array(tack.f32, W * N - 1)
            two = tack.local_array(tack.f64, (N, W))
            fill(one, x[i])
            fill(two, 1)
            two[1, 2] += one[4] + two.ndim
            out[i] = sum_of(one) + tack.f32(two[1, 2] + two.flat[5] + len(two) + two.size)

    @tack.kernel
    def flags(x, out):
        for i in range(x.shape[0]):
            seen = tack.local_array(tack.bool_, 8)
            for k in range(5):
                at = int(x[(i + k) % x.shape[0]]) % 8
                if seen[at]:
                    out[i] += 1
                seen[at] = True

    @tack.kernel
    def through(x, out):
        for i in range(x.shape[0]):
            a = tack.local_array(tack.f32, 2)
            b = tack.local_array(tack.f32, 2)
            a[0] = x[i]
            out[i] = first_of(a, b) + first_of(b, b) * 10 + b[0] * 100

    @tack.kernel
    def later(x, out):
        for i in range(x.shape[0]):
            while True:
                kept = tack.local_array(tack.f32, 4)
                kept[i % 4] = x[i]
                if x[i] > 0:
                    kept[3] += 2
                break
            out[i] = kept[0] + kept[3] + kept[i % 4]

    @tack.kernel
    def like(x, out):
        for i in range(out.shape[0]):
            row = tack.local_array_like(x, tack.f32)
            for k in range(x.size):
                row.flat[k] = x.flat[k]
            for k in range(row.size):
                out[i] += row.flat[k] * (k + 1)

    @tack.kernel
    def unused(out):
        for i in range(out.shape[0]):
            stored = tack.local_array(tack.f32, 16384)
            stored[i] = i
            out[i] = i
"""
NAMES = ("rounds", "shapes", "flags", "through", "later", "unused")


@pytest.fixture
def kernels(load, monkeypatch):
    monkeypatch.setenv("TACK_JIT", "allow")
    return load(KERNELS)


def arguments(name):
    x, out = np.array([3.0, -1.5, 0.0, 7.0, 3.0], "f4"), np.zeros(5, "f4")
    return [out.astype("i8")] if name == "rounds" else [out] if name == "unused" else [x, out]


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_with_local_arrays_computes_what_plain_python_does(kernels, name):
    kernel = getattr(kernels, name)
    found, expected, under_oracle = arguments(name), arguments(name), arguments(name)
    kernel(*found)
    kernel.py_func(*expected)
    oracle.run(kernel, under_oracle)
    np.testing.assert_array_equal(found[-1], under_oracle[-1])
    np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-6)


def test_both_writers_give_the_same_bits(kernels):
    pairs = [
        Pair(
            getattr(kernels, name),
            oracle.signature(getattr(kernels, name), arguments(name)),
            lambda name=name: arguments(name),
        )
        for name in NAMES
    ]
    assert not disagreements(pairs, levels())


def test_every_round_makes_the_array_anew(kernels):
    out = np.zeros(1, np.int64)
    kernels.rounds(out)
    assert out[0] == 111


def test_an_array_is_declared_where_it_is_made_or_cleared_where_it_is_needed_later(kernels):
    text = kernels.rounds.source("c", "i64[:]")
    assert "for (int64_t r = 0; r < 3; ++r) {\n      int32_t seen[2] = {0};" in text
    text = kernels.later.source("c", "f32[:], f32[:]")
    assert "++i) {\n    float kept[4];" in text
    assert "__builtin_memset(kept, 0, sizeof kept);" in text


def test_an_array_that_nothing_reads_is_dropped(kernels):
    assert "stored" not in kernels.unused.source("c", "f32[:]")


# Sizes that a signature pins


def test_an_array_like_a_parameter_pins_its_extents_at_the_call(kernels):
    for x in (np.arange(4, dtype="i4"), np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T):
        out, expected = np.zeros(2, "f4"), np.zeros(2, "f4")
        kernels.like(x, out)
        kernels.like.py_func(x, expected)
        np.testing.assert_array_equal(out, expected)
    chosen = tack.explain(kernels.like, x, out).chosen
    assert chosen is not None
    assert chosen.signature == "i64[3, 2; strided], f32[:]"


def test_an_array_like_one_of_a_template_pins_its_extents_at_the_call(load):
    module = load(
        """
        @tack.device_class
        class Holder:
            def __init__(self, data, inner=None):
                self.data, self.count = data, 2
                if inner is not None:
                    self.inner = inner

        @tack.kernel
        def kernel(a, h, out):
            for i in range(out.shape[0]):
                own = tack.local_array_like(h.data)
                deep = tack.local_array_like(h.inner.data, tack.f16)
                for j in range(own.size):
                    own.flat[j] = h.data.flat[j] + i
                for j in range(deep.size):
                    deep.flat[j] = h.inner.data.flat[j] * a
                out[i] = own.flat[own.size - 1] + deep.flat[deep.size - 1]
        """
    )
    for shape in ((4,), (2, 3), (3, 2), (2, 3)):
        data, other = np.arange(np.prod(shape)).reshape(shape), np.arange(5, dtype="f4")[::-1]
        holder = module.Holder(data, module.Holder(other))
        out, expected = np.zeros(3), np.zeros(3)
        module.kernel(3, holder, out)
        module.kernel.py_func(3, holder, expected)
        np.testing.assert_array_equal(out, expected)
    chosen = tack.explain(module.kernel, 3, holder, out).chosen
    assert chosen is not None
    assert "data: i64[2, 3]" in chosen.signature
    assert "data: f32[5; strided]" in chosen.signature


def test_the_row_of_a_warning_has_the_pins_and_answers_from_a_wheel(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = Package(tmp_path, {"kernels": KERNELS})
    package.build([("rounds", "i64[:]")], levels()[-1:])
    x, out = np.arange(3, dtype="f8"), np.zeros(2, "f4")
    with pytest.warns(JITWarning) as caught:
        package.load().like(x, out)
    row = str(caught[0].message).partition('add "')[2].partition('"')[0]
    assert row == "f64[3], f32[:]"
    package.build([("like", row)], levels()[-1:])
    monkeypatch.setenv("TACK_JIT", "forbid")
    from tack.runtime import index

    monkeypatch.setattr(index, "_read", {})
    kernels = package.load()
    kernels.like(x, out)
    np.testing.assert_array_equal(out, np.full(2, 2 * 8, "f4"))
    package.forget()


def test_an_open_extent_says_what_to_pin(kernels):
    with pytest.raises(CompileError, match="pin the extents of 'x' in the signature") as error:
        kernels.like.source("c", "f32[:, 4], f32[:]")
    assert "as in f32[3, 4]" in str(error.value)


# What is built


def test_a_number_set_before_the_loop_is_known_while_compiling(load, monkeypatch):
    monkeypatch.setenv("TACK_JIT", "allow")
    module = load(
        """
        @tack.kernel
        def kernel(x):
            n, extra = x.ndim + 3, 0
            for i in range(x.shape[0]):
                b = tack.local_array(tack.f32, n * 2 + extra)
                b[n] = 2.0
                x[i] = b[n] + b.size
        """
    )
    x = np.zeros(2, "f4")
    module.kernel(x)
    np.testing.assert_array_equal(x, [10, 10])


def test_the_limit_is_what_the_docs_say():
    assert MAX_LOCAL_BYTES == 65536
