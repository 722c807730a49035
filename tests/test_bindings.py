"""The callable kernel: what it accepts, what it hands to C, and its manners as a Python object."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any

import native
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native import array, make, scalar

from tack import _core


def one(a):
    pass


def two(a, b):
    pass


def three(a, b, c):
    pass


# Arrays and what the kernel is told


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 65535, 65536, 100_000])
def test_a_call_computes_and_returns_none(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random((2, n), dtype=np.float32)
    out = np.zeros(n, np.float32)
    assert native.saxpy_kernel()(0.5, x, y, out) is None
    np.testing.assert_array_equal(out, np.float32(0.5) * x + y)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", native.DTYPES)
def test_pointers_and_extents_reach_their_slots(dtype: str, rank: int) -> None:
    x = np.zeros((2, 3, 5)[:rank], native.numpy_dtype(dtype))
    called = native.kernel(one, make([array(dtype, rank)]))
    spy = native.spied()
    spy.clear(slots=1 + rank)
    called(x)
    assert spy.slots(1 + rank) == [x.ctypes.data, *x.shape]
    assert (spy.seen_begin, spy.seen_end, spy.calls) == (0, 1, 1)
    abi, size = spy.context()
    assert (abi, size) == (_core.ABI, 40)


def test_a_part_may_go_to_several_slots_or_to_none() -> None:
    x, y = np.zeros((2, 3), "f4"), np.zeros(7, "f4")
    slots = [("extent", 0, 1), ("pointer", 0), ("extent", 0, 1), ("loop", 0), ("pointer", 0)]
    host = [("slot", 2, "i64"), ("loop", 0)]
    called = native.kernel(two, make([array(rank=2), array()], slots=slots, host=host))
    spy = native.spied()
    spy.clear(slots=5)
    called(x, y)
    assert spy.slots(5) == [3, x.ctypes.data, 3, 3, x.ctypes.data]
    assert spy.seen_end == 3


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 30, 127])
def test_any_number_of_parameters(count: int) -> None:
    names = [f"p{i}" for i in range(count)]
    scope: dict[str, Any] = {}
    exec(f"def many({', '.join(names)}): pass", scope)
    params = [array() if i % 2 else scalar("i64") for i in range(count)]
    slots = [s for s in native.slots_of(params) if s[0] != "extent"]
    values = [np.zeros(i, "f4") if i % 2 else -i for i in range(count)]
    called = native.kernel(scope["many"], make(params, slots=slots))
    spy = native.spied()
    for _ in range(2):
        spy.clear(slots=count)
        called(*values)
        wanted = [v.ctypes.data if isinstance(v, np.ndarray) else v % 2**64 for v in values]
        assert spy.slots(count) == wanted
        spy.clear(slots=count)
        called(**dict(zip(names, values, strict=True)))
        assert spy.slots(count) == wanted
    if count:
        with pytest.raises(LookupError):
            called(*values[:-1], "wrong")


STRIDED_SLOTS = [
    ("pointer", 0),
    ("extent", 0, 0),
    ("stride", 0, 0),
    ("extent", 0, 1),
    ("stride", 0, 1),
]


@pytest.mark.parametrize("rank", range(9))
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_every_rank_and_layout_reaches_its_slots(rank: int, layout: str) -> None:
    x = np.zeros(tuple(range(2, 2 + rank)), "i2")
    if layout == "strided":
        x = np.frombuffer(bytearray(x.nbytes + 1), "i2", x.size, 1).reshape(x.shape)
    slots = [("pointer", 0)]
    slots += [(what, 0, axis) for axis in range(rank) for what in ("extent", "stride")]
    called = native.kernel(one, make([array("i16", rank, layout=layout)], slots=slots))
    spy = native.spied()
    for _ in range(2):
        spy.clear(slots=len(slots))
        called(x)
        wanted = [each for pair in zip(x.shape, x.strides, strict=True) for each in pair]
        assert spy.slots(len(slots)) == [x.ctypes.data, *wanted]


def test_strides_of_any_sign_and_size_are_taken() -> None:
    buffer = np.zeros((6, 7), "f4")
    fields = np.zeros((3, 2), [("a", "u1"), ("b", "f4")])["b"]
    called = native.kernel(one, make([array(rank=2, layout="strided")], slots=STRIDED_SLOTS))
    spy = native.spied()
    for x in (buffer.T, buffer[::-1, ::-2], np.broadcast_to(buffer[0], (3, 7)), fields):
        spy.clear(slots=5)
        called(x)
        wanted = [x.shape[0], x.strides[0], x.shape[1], x.strides[1]]
        assert spy.slots(5) == [x.ctypes.data, *(each % 2**64 for each in wanted)]


def test_a_record_takes_arrays_of_one_layout_alone() -> None:
    records = [
        make([array(layout=layout), array(layout=other)], label=f"{layout}, {other}")
        for layout in ("contiguous", "strided")
        for other in ("contiguous", "strided")
    ]
    found: list[str] = []

    def on_miss(_: _core.Kernel, arguments: tuple[Any, ...]) -> _core.Launchable:
        plain = [each.flags.c_contiguous for each in arguments]
        found.append(", ".join("contiguous" if each else "strided" for each in plain))
        return next(each for each in records if each.label == found[-1])

    called = native.kernel(two, on_miss=on_miss)
    x = np.zeros(8, "f4")
    for _ in range(2):  # nothing that was found for one layout answers another, in any order
        for a in (x[::2], x):
            for b in (x, x[::2]):
                called(a, b)
    assert sorted(found) == sorted(each.label for each in records)


def refused_arrays() -> dict[str, Any]:
    good = np.zeros(8, "f4")
    read_only = good.copy()
    read_only.flags.writeable = False
    return {
        "another dtype": good.astype("f8"),
        "an integer dtype of the same width": good.astype("i4"),
        "foreign byte order": good.astype(good.dtype.newbyteorder("S")),
        "rank 0": np.zeros((), "f4"),
        "rank 9": good.reshape(2, 2, 2, 1, 1, 1, 1, 1, 1),
        "rank 2": good.reshape(2, 4),
        "rank 4": good.reshape(2, 2, 2, 1),
        "every second element": good[::2],
        "reversed": good[::-1],
        "unaligned": np.zeros(33, "u1")[1:].view("f4"),
        "read-only": read_only,
        "masked": np.ma.masked_array(good),
        "a list": [1.0, 2.0],
        "a scalar": 1.0,
        "None": None,
        "a buffer": memoryview(good),
        "structured": np.zeros(8, [("a", "f4")]),
        "objects": np.zeros(8, object),
    }


@pytest.mark.parametrize("name", refused_arrays())
def test_an_array_that_does_not_fit_is_a_miss(name: str) -> None:
    called = native.kernel(one, make([array()], written=[0]))
    spy = native.spied()
    spy.clear(slots=1)
    for _ in range(2):  # with nothing remembered, and after a call that was right
        with pytest.raises(LookupError, match="one has no variant"):
            called(refused_arrays()[name])
        assert spy.calls == 0
        called(np.zeros(8, "f4"))
        spy.clear(slots=1)


class Sub(np.ndarray):
    pass


def accepted_arrays() -> dict[str, np.ndarray[Any, Any]]:
    good = np.zeros(8, "i8")
    return {
        "plain": good,
        "the other 64-bit C type": good.astype(np.longlong),
        "spelt little-endian": good.view(good.dtype.newbyteorder("<")),
        "with metadata": good.view(np.dtype("i8", metadata={"unit": "m"})),
        "a subclass": good.view(Sub),
        "a view": np.zeros((2, 8), "i8")[1],
        "a strided axis of length 1": np.zeros((1, 8), "i8")[:, ::2].ravel()[:1],
        "empty": good[:0],
    }


@pytest.mark.parametrize("name", accepted_arrays())
def test_an_array_of_another_kind_that_fits_is_taken(name: str) -> None:
    x = accepted_arrays()[name]
    called = native.kernel(one, make([array("i64")], written=[0]))
    spy = native.spied()
    for _ in range(3):
        spy.clear(slots=2)
        called(x)
        assert spy.slots(2) == [x.ctypes.data, len(x)]


# Which variant answers


def test_variants_are_told_apart_by_scalars_dtypes_and_ranks() -> None:
    params = [
        [scalar("f32"), array("f32")],
        [scalar("i64"), array("f32")],
        [scalar("bool"), array("f32")],
        [scalar("f64"), array("f64")],
        [scalar("f32"), array("i8")],
        [scalar("f32"), array("i8", 2)],
        [scalar("f32"), array("i8", 3)],
        [array("f32"), array("f32")],
        *(
            [array(d), array(e)]
            for d in native.DTYPES
            for e in native.DTYPES
            if (d, e) != ("f32", "f32")
        ),
    ]
    kinds: list[Any] = []
    for number, row in enumerate(params):
        host = [("const", number + 1), ("loop", 0)]
        kinds.append(make(row, host=host))
    called = native.kernel(two, *kinds)

    def argument(row: tuple[Any, ...]) -> Any:
        if row[0] == "array":
            return np.zeros((1,) * row[2], native.numpy_dtype(row[1]))
        return {"f32": 0.5, "f64": 0.5, "i64": 7, "bool": True}[row[1]]

    spy = native.spied()
    spy.clear(slots=0)
    order = list(range(len(params))) * 2
    np.random.default_rng(0).shuffle(order)
    for number in order:
        called(*map(argument, params[number]))
        assert spy.seen_end == number + 1


@pytest.mark.parametrize("specific_first", [True, False])
def test_more_pinned_extents_win_whatever_was_called_before(specific_first: bool) -> None:
    pins = {(-1, -1): 1, (-1, 3): 2, (2, 3): 3, (5, -1): 4}
    records = [
        make([array(rank=2, pins=p)], host=[("const", end), ("loop", 0)]) for p, end in pins.items()
    ]
    called = native.kernel(one, *(reversed(records) if specific_first else records))
    shapes = {(1, 1): 1, (1, 3): 2, (2, 3): 3, (5, 1): 4, (2, 2): 1, (0, 3): 2}
    spy = native.spied()
    spy.clear(slots=0)
    for first in shapes:
        for second in shapes:
            for shape in (first, second, second):
                called(np.zeros(shape, "f4"))
                assert spy.seen_end == shapes[shape]


def test_a_variant_installed_later_is_used_at_once_if_it_is_more_specific() -> None:
    spy = native.spied()
    called = native.kernel(one, make([array()]))
    spy.clear(slots=0)
    called(np.zeros(3, "f4"))
    _core.install(called, make([array(pins=[3])], host=[("const", 9), ("loop", 0)]))
    called(np.zeros(3, "f4"))
    assert spy.seen_end == 9


def test_uninstall_empties_the_table() -> None:
    called = native.kernel(one, make([array()]))
    called(np.zeros(3, "f4"))
    _core.uninstall(called)
    with pytest.raises(LookupError):
        called(np.zeros(3, "f4"))
    _core.install(called, make([array()]))
    called(np.zeros(3, "f4"))


# Misses


def test_a_miss_is_asked_once_with_every_argument() -> None:
    asked = []

    def on_miss(called, arguments):
        asked.append((called, arguments))
        return make([scalar("f32"), array()])

    def function(a, x=7):
        pass

    called = native.kernel(function, on_miss=on_miss)
    x = np.zeros(3, "f4")
    half = np.float32(0.5)
    for _ in range(3):
        called(half, x=x)
    assert len(asked) == 1
    assert asked[0][0] is called
    assert type(asked[0][1]) is tuple
    assert asked[0][1][0] is half
    assert asked[0][1][1] is x
    with pytest.raises(RuntimeError, match=r"function: the variant module:name\[test\], found for"):
        called(1.0)
    assert asked[1][1] == (1.0, 7)


def test_what_on_miss_raises_passes_through() -> None:
    def on_miss(called, arguments):
        raise ZeroDivisionError("its own words")

    with pytest.raises(ZeroDivisionError, match="its own words"):
        native.kernel(one, on_miss=on_miss)(1)


def test_on_miss_must_return_a_record_for_the_kernel() -> None:
    with pytest.raises(TypeError, match="a Launchable was expected"):
        native.kernel(one, on_miss=lambda *_: None)(1)
    with pytest.raises(ValueError, match="has 2 parameters, its kernel has 1"):
        native.kernel(one, on_miss=lambda *_: make([array(), array()]))(1)
    with pytest.raises(ValueError, match="converts to the annotation of parameter 0"):
        native.kernel(one, on_miss=lambda *_: make([scalar("i8", True)]))(1)


def test_on_miss_may_call_the_kernel() -> None:
    def on_miss(called, arguments):
        if arguments[0].dtype == "f8":
            called(np.zeros(1, "f4"))
            return make([array("f64")])
        return make([array("f32")])

    called = native.kernel(one, on_miss=on_miss)
    native.spied().clear(slots=0)
    called(np.zeros(1, "f8"))
    assert native.spied().calls == 2


# The loop


def test_an_empty_loop_runs_nothing() -> None:
    spy = native.spied()
    for host in (
        [("const", 0), ("loop", 0)],
        [("const", -5), ("loop", 0)],
        [("const", -5), ("loop", 0), ("const", -5), ("loop", 1)],
        [("const", 2**62), ("loop", 0), ("const", 0), ("loop", 1), ("const", 2**62), ("loop", 2)],
        [("const", 3), ("const", 3), ("const", 1), ("range",), ("loop", 0)],
    ):
        spy.clear(slots=0)
        native.kernel(one, make([array()], host=host))(np.zeros(1, "f4"))
        assert spy.calls == 0


@pytest.mark.parametrize("value", [-3, 0, 5])
def test_the_loop_may_be_as_long_as_a_scalar_says(value: int) -> None:
    spy = native.spied()
    for dtype in ("i64", "i8"):
        host = [("slot", 0, dtype), ("loop", 0)]
        called = native.kernel(one, make([scalar(dtype, True)], host=host), annotated=[True])
        for _ in range(2):
            spy.clear(slots=0)
            called(value)
            assert spy.calls == (value > 0)
            if value > 0:
                assert spy.seen_end == value


def test_extents_reach_the_slots_of_their_loops() -> None:
    slots = [("loop", 2), ("loop", 0), ("extent", 0, 0), ("loop", 1), ("loop", 0)]
    host = [("slot", 2, "i64"), ("loop", 1), ("const", 3), ("loop", 0), ("const", 4), ("loop", 2)]
    spy = native.spied()
    spy.clear(slots=5)
    native.kernel(one, make([array()], slots=slots, host=host))(np.zeros(5, "f4"))
    assert spy.slots(5) == [4, 3, 5, 5, 3]
    assert (spy.seen_begin, spy.seen_end) == (0, 60)


def test_too_many_iterations_are_an_error() -> None:
    host = [("const", 2**40), ("loop", 0), ("const", 2**23), ("loop", 1)]
    with pytest.raises(
        OverflowError,
        match=r"module:name.test.: the parallel loop of 1099511627776 x 8388608 has more than 2",
    ):
        native.kernel(one, make([array()], host=host))(np.zeros(1, "f4"))
    host = [("const", -(2**63)), ("const", 2**63 - 1), ("const", 1), ("range",), ("loop", 0)]
    with pytest.raises(OverflowError, match=r"module:name.test.: the parallel loop has more than"):
        native.kernel(one, make([array()], host=host))(np.zeros(1, "f4"))


@pytest.mark.parametrize("step", [0, -1, -(2**63)])
def test_a_step_that_is_not_positive_is_an_error(step: int) -> None:
    host = [("const", 5), ("const", 0), ("const", step), ("range",), ("loop", 0)]
    with pytest.raises(ValueError, match="the step of the parallel range must be positive"):
        native.kernel(one, make([array()], host=host))(np.zeros(1, "f4"))


# Overlap


def test_without_a_second_entry_the_general_one_runs() -> None:
    spy = native.spied()
    spy.clear(slots=0)
    native.kernel(one, make([array()], written=[0]))(np.zeros(3, "f4"))
    assert (spy.calls, spy.noalias_calls) == (1, 0)


VIEWS = st.tuples(st.integers(0, 24), st.integers(0, 8), st.sampled_from(["u1", "i2", "f4"]))
NAMES = {"u1": "u8", "i2": "i16", "f4": "f32"}


@settings(max_examples=300, deadline=None)
@given(st.lists(VIEWS, min_size=3, max_size=3), st.sets(st.integers(0, 2)), st.booleans())
@example([(0, 4, "f4")] * 3, {2}, False)
@example([(0, 4, "f4"), (4, 4, "f4"), (8, 0, "f4")], {1}, False)
def test_the_noalias_entry_needs_written_arrays_that_share_no_byte(
    views: list[tuple[int, int, str]], written: set[int], other_buffer: bool
) -> None:
    buffer = np.zeros(64, "u1")
    arrays, shared = [], []
    for number, (start, length, dtype) in enumerate(views):
        size = np.dtype(dtype).itemsize
        begin = start // size * size
        base = np.zeros(64, "u1") if other_buffer and number == 0 else buffer
        arrays.append(base[begin : begin + length * size].view(dtype))
        address = arrays[-1].ctypes.data
        shared.append(set(range(address, address + length * size)))
    safe = all(
        not shared[i] & shared[j]
        for i in range(3)
        for j in range(3)
        if i != j and (i in written or j in written)
    )
    params = [array(NAMES[dtype]) for _, _, dtype in views]
    called = native.kernel(three, make(params, written=sorted(written), noalias="spy_noalias"))
    spy = native.spied()
    for _ in range(2):
        spy.clear(slots=0)
        called(*arrays)
        assert (spy.calls, spy.noalias_calls) == (1, int(safe))


RANGES = st.tuples(
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-12, 12)), max_size=3),
    st.sampled_from(["u1", "i2", "f4"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(RANGES, min_size=2, max_size=2), st.sets(st.integers(0, 1)))
@example([(0, [(3, 2)], "u1"), (1, [(3, 2)], "u1")], {0})  # they interlock, and share no byte
def test_the_range_of_a_strided_array_is_from_its_lowest_byte_to_its_highest(
    views: list[tuple[int, list[tuple[int, int]], str]], written: set[int]
) -> None:
    buffer = np.zeros(160, "u1")
    arrays, params, touched = [], [], []
    for start, axes, dtype in views:
        shape, strides = [n for n, _ in axes], [step for _, step in axes]
        # Where axes lie decides alone, so some reach over the ends of the buffer: nothing is read.
        view = np.lib.stride_tricks.as_strided(buffer[start + 60 :][:4].view(dtype), shape, strides)
        arrays.append(view)
        layout = "contiguous" if view.flags.c_contiguous and view.flags.aligned else "strided"
        params.append(array(NAMES[dtype], len(shape), layout=layout))
        places = [
            sum(p)
            for p in itertools.product(*(range(0, n * s, s) if s else [0] * n for n, s in axes))
        ]
        low, high = (min(places), max(places) + view.itemsize) if view.size else (0, 0)
        touched.append(set(range(start + low, start + high)))
    slots = [("pointer", 0), ("pointer", 1)]
    record = make(params, slots=slots, written=sorted(written), noalias="spy_noalias")
    called = native.kernel(two, record)
    spy = native.spied()
    for _ in range(2):
        spy.clear(slots=2)
        called(*arrays)
        assert spy.slots(2) == [each.ctypes.data for each in arrays]
        assert (spy.calls, spy.noalias_calls) == (1, int(not (written and touched[0] & touched[1])))


def test_overlap_is_checked_on_the_warm_path_too() -> None:
    record = make(
        [array(), array()],
        host=[("slot", 1, "i64"), ("loop", 0)],
        written=[1],
        noalias="spy_noalias",
    )
    called = native.kernel(two, record)
    x, y = np.zeros((2, 4), "f4")
    whole = np.zeros(8, "f4")
    spy = native.spied()
    for a, b, alone in [(x, y, 1), (x, x, 0), (whole[:4], whole[4:], 1), (whole[:5], whole[4:], 0)]:
        for _ in range(2):
            spy.clear(slots=0)
            called(a, b)
            assert (spy.calls, spy.noalias_calls) == (1, alone)


# Threads


def test_long_work_lets_other_threads_run() -> None:
    """The kernel waits for what only another Python thread can do."""
    x = np.zeros(65536)
    called = native.kernel(one, make([array("f64")], general="wait"))

    def release() -> None:
        x[1] = 5.0

    timer = threading.Timer(0.05, release)
    timer.start()
    called(x)
    timer.join()
    assert x[0] == 5.0


def test_threads_race_on_one_kernel() -> None:
    """Calls, misses, installs and emptied tables at once, each call with its own arrays."""
    f32 = array()

    def variant(pins: int = -1) -> _core.Launchable:
        return make(
            [scalar("f32"), *(array(pins=[pins]),) * 3],
            slots=[("scalar", 0, "f32"), *(("pointer", k) for k in (1, 2, 3)), ("extent", 1, 0)],
            host=[("slot", 4, "i64"), ("loop", 0)],
            written=[3],
            general="saxpy",
            noalias="saxpy",
        )

    called = native.kernel(native.saxpy, on_miss=lambda *_: variant())
    errors: list[BaseException] = []
    stop = threading.Event()

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for number in range(400):
                n = (1, 100, 70_000)[number % 3] if number % 40 == 0 else 100
                x, y = rng.random((2, n), dtype=np.float32)
                out = np.zeros(n, np.float32)
                a = float(np.float32(rng.random()))
                called(a, x, y=y, out=out) if number % 2 else called(a, x, y, out)
                np.testing.assert_array_equal(out, np.float32(a) * x + y)
        except BaseException as error:  # noqa: BLE001 - raised again by the test
            errors.append(error)

    def disturb() -> None:
        pins = 0
        while not stop.wait(0.0005):
            pins += 1
            _core.uninstall(called) if pins % 7 == 0 else _core.install(called, variant(pins))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
        other = threading.Thread(target=disturb)
        for thread in (*threads, other):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        other.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert f32 == array()
