"""Calls with templates, again and again: what is learned once, and when it is learned anew."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import tack
from tack import _core

TEXT = """
    @tack.device_class
    class Holder:
        k = 2

        def __init__(self, data, n):
            self.data, self.n = data, n

        @tack.func
        def at(self, i):
            return self.data[i] * self.k + self.n

    @tack.kernel
    def kernel(obj, out):
        for i in range(out.shape[0]):
            out[i] = obj.at(i)

    @tack.kernel
    def either(obj, out):
        for i in range(out.shape[0]):
            out[i] = 1

    @tack.kernel
    def slow(obj, out, times):
        for i in range(out.shape[0]):
            for t in range(times):
                out[i] = out[i] + obj.data[i]
"""


@pytest.fixture
def module(load):
    return load(TEXT)


def plans(module) -> int:
    return _core.templated_count(module.kernel)


def call(module, holder) -> list[float]:
    out = np.zeros(3)
    module.kernel(holder, out)
    return list(out)


def ready(module, n=1):
    """A Holder whose plan is learned."""
    holder = module.Holder(np.arange(3.0), n)
    assert call(module, holder) == [n, 2 + n, 4 + n]
    assert plans(module) == 1
    return holder


def test_a_warm_call_runs_no_python(module) -> None:
    holder, out = ready(module), np.zeros(3)
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append((event, arg, frame.f_code.co_name)))
    try:
        module.kernel(holder, out)
    finally:
        sys.setprofile(None)
    assert [name for event, _, name in seen if event == "call"] == []


def test_values_are_read_at_each_call(module) -> None:
    holder = ready(module)
    for n in (5, -3, 2**40):
        holder.n = n
        assert call(module, holder)[0] == n
    holder.data = np.full(3, 7.0)
    assert call(module, holder) == [14 + 2**40] * 3
    assert call(module, module.Holder(np.zeros(3), 9)) == [9, 9, 9]
    assert plans(module) == 1


def test_the_order_in_which_attributes_were_set_does_not_matter(module) -> None:
    ready(module)
    holder = object.__new__(module.Holder)
    holder.n, holder.data = 4, np.zeros(3)
    assert call(module, holder) == [4, 4, 4]
    assert plans(module) == 1


def test_invisible_attributes_come_and_go(module) -> None:
    holder = ready(module)
    holder._cache = {}
    assert call(module, holder)[0] == 1
    del holder._cache
    first = object.__new__(module.Holder)
    first._early, first.data, first.n = 1, np.zeros(3), 8
    assert call(module, first)[0] == 8
    assert plans(module) == 1


def test_names_that_are_no_interned_text_are_found_too(module) -> None:
    ready(module)
    holder = object.__new__(module.Holder)
    holder.__dict__ = {"".join(reversed("atad")): np.zeros(3), "n": 6}
    assert call(module, holder)[0] == 6


def test_a_dictionary_that_was_replaced_is_read(module) -> None:
    holder = ready(module)
    holder.__dict__ = {"data": np.zeros(3), "n": 3}
    assert call(module, holder)[0] == 3
    holder.__dict__ = {"data": np.zeros(3)}
    with pytest.raises(tack.errors.TemplateError, match="no attribute 'n'"):
        call(module, holder)


def test_attributes_are_those_that_the_object_has_whatever_its_class_says(load) -> None:
    module = load(
        """
        @tack.device_class
        class Liar:
            __slots__ = ("__dict__", "m")

            def __getattribute__(self, name):
                if name in ("m", "n"):
                    return 100
                return object.__getattribute__(self, name)

        @tack.kernel
        def kernel(obj, out):
            for i in range(1):
                out[0] = obj.m + obj.n
        """
    )
    liar, out = module.Liar(), np.zeros(1)
    liar.m, liar.n = 1, 2
    for _ in range(2):
        module.kernel(liar, out)
        assert out[0] == 3


def test_a_missing_attribute_is_told_at_every_call(module) -> None:
    holder = ready(module)
    del holder.n
    for _ in range(2):
        with pytest.raises(tack.errors.TemplateError, match="no attribute 'n'; it has data, k"):
            call(module, holder)
    holder.n = 1
    assert call(module, holder)[0] == 1


def test_numpy_scalars_and_subclasses_of_numbers_are_numbers(module) -> None:
    class Int(int):
        pass

    holder = ready(module)
    for value in (np.int64(4), np.uint8(5), Int(6), True):
        holder.n = value
        assert call(module, holder)[0] == int(value)


def test_an_array_of_a_template_may_have_any_layout(module) -> None:
    holder = ready(module)
    for data in (np.arange(6.0)[::2], np.arange(6.0)[::-2], np.broadcast_to(np.float64(3), 3)):
        holder.data = data
        strided = call(module, holder)
        holder.data = data.copy()
        assert strided == call(module, holder)


def test_bad_arrays_of_a_template_are_refused_by_name(module) -> None:
    holder = ready(module)
    holder.data = np.zeros(3, ">f8")
    with pytest.raises(
        tack.errors.TemplateError, match=r"obj\.data is an array that has dtype >f8"
    ):
        call(module, holder)


def test_an_integer_that_does_not_fit_is_an_overflow_error(module) -> None:
    holder = ready(module)
    holder.n = 2**63
    with pytest.raises(OverflowError, match=r"scalar 'obj\.n' is i64"):
        call(module, holder)


def test_a_parameter_may_be_a_template_in_one_call_and_an_array_in_the_next(module) -> None:
    holder, out = ready(module), np.zeros(3)
    for _ in range(3):
        for given in (holder, np.zeros(2), 3, np.zeros((2, 2), np.int32), holder):
            out[:] = 0
            module.either(given, out)
            assert out[0] == 1
    assert _core.templated_count(module.either) == 1


def test_keywords_name_templates_too(module) -> None:
    holder, out = ready(module), np.zeros(3)
    module.kernel(out=out, obj=holder)
    assert out[1] == 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'out'"):
        module.kernel(holder)


def test_an_undecorated_class_is_no_template(module) -> None:
    ready(module)

    class Plain:
        n = 1

    with pytest.raises(
        TypeError, match=r"a kernel takes arrays and numbers, and objects of a @tack"
    ):
        call(module, Plain())


def test_a_subclass_has_its_own_plan_and_the_class_of_an_object_may_change(module) -> None:
    holder = ready(module)
    lower = type("Lower", (module.Holder,), {"k": 3})
    assert call(module, lower(np.ones(3), 1)) == [4, 4, 4]
    holder.__class__ = lower
    assert call(module, holder) == [1, 4, 7]
    holder.__class__ = module.Holder
    assert call(module, holder) == [1, 3, 5]
    assert plans(module) == 2


def test_no_reference_is_lost_or_kept(module) -> None:
    holder, out = ready(module), np.zeros(3)
    objects = [holder, holder.data, out, module.Holder]
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(1000):
        module.kernel(holder, out)
    assert [sys.getrefcount(each) for each in objects] == before


def test_a_kernel_and_its_templates_are_collected_together(load) -> None:
    module = load(TEXT)
    call(module, module.Holder(np.zeros(3), 1))
    gone = weakref.ref(module.kernel)
    module.kernel.holder = module.Holder(np.zeros(3), 1)
    module.kernel.me = module.kernel
    del module.kernel
    gc.collect()
    assert gone() is None


def test_an_array_that_is_replaced_while_a_kernel_reads_it_lives_on(module) -> None:
    count = 1 << 16
    out = np.zeros(count)
    holder = module.Holder(np.ones(count), 0)
    module.slow(holder, out, 1)
    out[:] = 0
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            holder.data = np.ones(count)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(20):
            module.slow(holder, out, 20)
    finally:
        stop.set()
        thread.join()
    assert (out == 400).all()


def test_threads_share_what_was_learned(module) -> None:
    errors = []

    def work(number: int) -> None:
        for _ in range(200):
            found = call(module, module.Holder(np.full(3, float(number)), number))
            if found != [number * 3] * 3:
                errors.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert plans(module) >= 1


def test_objects_of_ever_new_attributes_do_not_fill_the_memory(load) -> None:
    module = load(TEXT)
    holder = module.Holder(np.zeros(3), 1)
    array = ("array", "f64", 1, (-1,), "contiguous")
    record = _core.Launchable(
        params=[array, ("scalar", "i64", False), array],
        slots=[],
        host=[("const", 0), ("loop", 0)],
        written=[],
        general=1,
        noalias=0,
        label="never run",
        keepalive=None,
    )
    for number in range(600):
        rows = [("data", "value", 0, True), ("n", "value", 1, True)]
        rows.append((f"a{number}", "skip", None, True))
        node = (weakref.ref(module.Holder), (), True, rows, ())
        _core.install(module.kernel, record, [node, 2])
    assert plans(module) <= 256
    assert call(module, holder) == [1, 1, 1]


@pytest.mark.parametrize(
    ("expansion", "said"),
    [
        ([0], "no value, or two"),
        ([0, 0], "no value, or two"),
        ([0, 9], "expansion"),
        ([0, 1, 2], "expansion"),
        (["x", 1], "expansion"),
        (3, "expansion"),
        ([(1, 2), 1], "expansion"),
        ([(None, (), True, (), ()), 1], "no weak reference"),
    ],
)
def test_a_damaged_plan_is_refused(module, expansion, said) -> None:
    record = _core.Launchable(
        params=[("scalar", "i64", False), ("scalar", "i64", False)],
        slots=[],
        host=[("const", 0), ("loop", 0)],
        written=[],
        general=1,
        noalias=0,
        label="never run",
        keepalive=None,
    )
    with pytest.raises(ValueError, match=said):
        _core.install(module.kernel, record, expansion)


def test_a_scope_looks_at_each_object_once(module) -> None:
    holder = ready(module)
    with tack.template_scope():
        first = tack.classify_template_attrs(holder)
        holder.late = 1
        assert tack.classify_template_attrs(holder) == first
        with tack.template_scope():
            assert tack.classify_template_attrs(holder) == first
    assert tack.classify_template_attrs(holder).runtime_scalars == {"n": 1, "late": 1}
