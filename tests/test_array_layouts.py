"""Arrays of any rank, layout and alignment: the same numbers from whichever variant answers."""

from __future__ import annotations

import ctypes
import logging
import warnings

import numpy as np
import oracle
import pytest
from harness import levels
from packages import Package
from twins import Pair, disagreements, toolchains

import tack
from tack.compile import assemble, generate
from tack.errors import CompileError, JITWarning
from tack.model.launch import MAX_SLOTS
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

KERNELS = """
    import tack

    @tack.kernel
    def scaled(a, x, out):
        for i, j in tack.ndrange(x.shape[0], x.shape[1]):
            out[i, j] += a * x[i, j]

    @tack.kernel
    def flat(x, out):
        for i in range(out.size):
            out.flat[i] += x.flat[i]

    @tack.kernel
    def point(x, out):
        for i in range(1):
            out[()] = x[()] + x.flat[0] + out.ndim + out.size

    @tack.kernel
    def total(x, out):
        for i in range(1):
            for a in range(x.shape[0]):
                for b in range(x.shape[1]):
                    for c in range(x.shape[2]):
                        for d in range(x.shape[3]):
                            for e in range(x.shape[4]):
                                out[0, 0, 0, 0, 0, 0, 0, 0] += x[a, b, c, d, e]

    @tack.kernel
    def passed(x, out):
        for i in range(1):
            for k in range(len(x)):
                out[k] += 1
                out[k] += x[k] * 2
"""


@pytest.fixture
def kernels(load, monkeypatch):
    monkeypatch.setenv("TACK_JIT", "allow")
    return load(KERNELS)


def structured(values):
    """The values as a field behind a byte: strides that are no multiple of an item's size."""
    records = np.zeros(values.shape, [("tag", "u1"), ("value", values.dtype)])
    records["value"] = values
    return records["value"]


def unaligned(values):
    """The values at an address that no multiple of an item's size is."""
    memory = bytearray(values.nbytes + 1)
    view = np.frombuffer(memory, values.dtype, values.size, 1).reshape(values.shape)
    view[...] = values
    return view


def inflated(values):
    """The values with others between them, along both axes, backwards."""
    whole = np.full(tuple(3 * n for n in values.shape), 77, values.dtype)
    view = whole[::-3, ::-3]
    view[...] = values
    return view


VIEWS = {
    "contiguous": np.copy,
    "transposed": lambda values: np.asfortranarray(values.copy()),
    "reversed": lambda values: values[::-1, ::-1].copy()[::-1, ::-1],
    "inflated": inflated,
    "a field": structured,
    "unaligned": unaligned,
}


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("other", VIEWS)
def test_a_view_of_any_layout_is_read_and_written_in_place(kernels, dtype, view, other):
    values = np.arange(12).reshape(3, 4).astype(dtype)
    x, out = VIEWS[view](values), VIEWS[other](values)
    around = out.base.copy() if isinstance(out.base, np.ndarray) else None
    kernels.scaled(3, x, out)
    np.testing.assert_array_equal(out, 4 * values)
    kernels.flat(x, out)
    np.testing.assert_array_equal(out, 5 * values)
    if around is not None and other == "inflated":
        assert np.count_nonzero(out.base != around) == np.count_nonzero(values)


def test_a_repeated_array_is_read_and_not_written(kernels):
    row, out = np.arange(4, dtype=np.float32), np.zeros((3, 4), np.float32)
    kernels.scaled(1.0, np.broadcast_to(row, (3, 4)), out)
    np.testing.assert_array_equal(out, np.broadcast_to(row, (3, 4)))
    with pytest.raises(ValueError, match="'out' is read-only"):
        kernels.scaled(1.0, out, np.broadcast_to(row, (3, 4)))


def test_within_an_iteration_a_load_sees_the_store_to_another_element_of_a_stride_of_zero(kernels):
    one = np.zeros(1, np.int64)
    repeated = np.lib.stride_tricks.as_strided(one, (5,), (0,))
    kernels.passed(repeated, repeated)
    expected = 0
    for _ in range(5):
        expected += 1
        expected += expected * 2
    assert one[0] == expected


@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("shift", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["i8", "f4", "u1"])
def test_overlapping_arguments_compute_what_the_oracle_says(kernels, dtype, shift, step):
    def views(memory):
        first, second = memory[2 : 2 + 20], memory[2 + shift : 2 + shift + 20]
        return first[::step], second[::step]

    memory, expected = np.zeros(30, dtype), np.zeros(30, dtype)
    kernels.passed(*views(memory))
    oracle.run(kernels.passed, views(expected))
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("levels_of_nesting", range(9))
def test_ranks_from_zero_to_eight_have_flat_indices(kernels, levels_of_nesting):
    shape = (2, 1, 3, 2, 1, 2, 1, 2)[:levels_of_nesting]
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype("i4")
    out = np.zeros(shape, "i4")
    kernels.flat(x, out)
    np.testing.assert_array_equal(out, x)
    kernels.flat(np.asfortranarray(x), unaligned(out))
    kernels.flat(structured(x), out)
    np.testing.assert_array_equal(out, 2 * x)


def test_more_than_three_dimensions_are_indexed_by_as_many_indices(kernels):
    x = np.arange(2 * 3 * 1 * 2 * 2).reshape(2, 3, 1, 2, 2).astype(np.int64)
    out = np.zeros((1,) * 8, np.int64)
    kernels.total(x, out)
    kernels.total(x.T, out)
    kernels.total(structured(x), out)
    assert out.item() == 3 * x.sum()


@pytest.mark.parametrize("make", [np.copy, unaligned, structured])
def test_an_array_without_dimensions_is_indexed_by_nothing(kernels, make):
    x, out = make(np.array(2.5, np.float32)), make(np.array(0, np.float32))
    kernels.point(x, out)
    assert out == 6.0


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
@pytest.mark.parametrize("make", [np.copy, np.asfortranarray, lambda x: x[::-1, ::-2], structured])
def test_an_empty_array_of_any_layout_runs_nothing(kernels, shape, make):
    x = make(np.zeros(shape, np.float32))
    kernels.scaled(1.0, x, x)
    kernels.flat(x, x)


# Which variant answers


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    package = Package(tmp_path_factory.mktemp("layouts"), {"kernels": KERNELS})
    rows = [
        ("scaled", "f32, f32[:, :], f32[:, :]"),
        ("scaled", "f32, f32[:, :; strided], f32[:, :; strided]"),
        ("scaled", "f32, f32[:, 4], f32[:, 4; strided]"),
        ("flat", "f32[:; strided], f32[:; strided]"),
        ("point", "f32[()], f32[(); strided]"),
    ]
    package.build(rows, levels()[-1:])
    package.forget()
    return package


@pytest.fixture
def prebuilt(original, tmp_path, monkeypatch):
    copy = original.copy_to(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield copy.load()
    copy.forget()


def answers(caplog, kernel, *args):
    """The signatures of the variants that calls looked for anew."""
    with caplog.at_level(logging.DEBUG, logger="tack"):
        caplog.clear()
        kernel(*args)
        return [each.message for each in caplog.records if "prebuilt" in each.message]


@pytest.mark.usefixtures("no_jit")
def test_a_contiguous_array_prefers_the_plain_variant_whatever_was_called_before(prebuilt, caplog):
    x, out = np.ones((2, 3), "f4"), np.zeros((2, 3), "f4")
    strided = "scaled(f32, f32[:, :; strided], f32[:, :; strided])"
    plain = "scaled(f32, f32[:, :], f32[:, :])"
    (first,) = answers(caplog, prebuilt.scaled, 1.0, x.T, np.zeros((3, 2), "f4"))
    (second,) = answers(caplog, prebuilt.scaled, 1.0, x, out)
    (mixed,) = answers(caplog, prebuilt.scaled, 1.0, x, inflated(out))
    assert strided in first
    assert plain in second
    assert strided in mixed
    for args in ((1.0, x, out), (1.0, x.T, out.T), (1.0, x.T, np.zeros((3, 2), "f4"))):
        assert not [m for m in answers(caplog, prebuilt.scaled, *args) if plain in m]
    np.testing.assert_array_equal(out, 3 * x)


@pytest.mark.usefixtures("no_jit")
def test_a_contiguous_array_is_taken_by_a_strided_variant_where_there_is_no_other(prebuilt):
    x, out = np.arange(4, dtype="f4"), np.zeros(4, "f4")
    prebuilt.flat(x, out)
    prebuilt.flat(x[::2], out[::2])
    np.testing.assert_array_equal(out, [0, 1, 4, 3])
    chosen = tack.explain(prebuilt.flat, x, out).chosen
    assert chosen is not None
    assert chosen.signature == "f32[:; strided], f32[:; strided]"
    one = np.zeros((), "f4")
    prebuilt.point(one, unaligned(one))
    prebuilt.point(one, one)
    assert one == 1


@pytest.mark.usefixtures("no_jit")
def test_explain_says_which_layout_a_variant_takes(prebuilt):
    x = np.zeros((2, 3), "f4")
    found = tack.explain(prebuilt.scaled, 1.0, x, x.reshape(3, 2).T)
    assert found.signature == "f32, f32[:, :], f32[:, :; strided]"
    reasons = {c.signature: c.reason for c in found.candidates if not c.accepted}
    assert reasons["f32, f32[:, :], f32[:, :]"] == (
        "'out' is f32[2, 3; strided], and it takes f32[:, :]"
    )
    assert found.chosen is not None
    assert found.chosen.signature == "f32, f32[:, :; strided], f32[:, :; strided]"


@pytest.mark.usefixtures("no_jit")
def test_pinned_extents_go_before_layouts(prebuilt):
    x = np.zeros((2, 4), "f4")
    chosen = tack.explain(prebuilt.scaled, 1.0, x, x).chosen
    assert chosen is not None
    assert chosen.signature == "f32, f32[:, 4], f32[:, 4; strided]"


def test_the_manifest_line_of_a_warning_is_the_row_that_is_missing(prebuilt, tmp_path, monkeypatch):
    x, out = np.arange(6, dtype="f8")[::2], np.zeros(3, "f8")
    with pytest.warns(JITWarning) as caught:
        prebuilt.flat(x, out)
    line = str(caught[0].message).partition('add "')[2].partition('"')[0]
    assert line == "f64[:; strided], f64[:]"
    built = Package(tmp_path, {"kernels": KERNELS})
    built.build([("flat", line)], levels()[-1:])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TACK_JIT", "forbid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built.load().flat(x, out)
    np.testing.assert_array_equal(out, 2 * x)
    built.forget()


def test_more_values_than_a_launch_passes_are_refused(load):
    names = [f"a{k}" for k in range(103)]
    reads = " + ".join(f"{name}[i, i, i, i]" for name in names)
    module = load(
        f"@tack.kernel\ndef kernel({', '.join(names)}):\n"
        f"  for i in range(a0.shape[0]):\n    a0[i, 0, 0, 0] = {reads}\n"
    )
    plain = ", ".join(["f32[:, :, :, :]"] * len(names))
    assert module.kernel.source("c", plain)
    with pytest.raises(CompileError, match=f"a launch passes {MAX_SLOTS} values at most"):
        module.kernel.source("c", plain.replace("]", "; strided]"))


# Both writers, and every level


def test_both_writers_give_the_same_bits_for_every_layout(kernels):
    pairs = []
    for name, view in VIEWS.items():
        values = np.linspace(-3, 3, 12, dtype="f4").reshape(3, 4)
        arrays = [view(values), view(values)]
        signature = oracle.signature(kernels.flat, arrays)

        def memory(view=view, values=values):
            return [view(values), view(values)]

        assert ("strided" in signature) == (name != "contiguous")
        pairs += [
            Pair(kernels.flat, signature, memory),
            Pair(kernels.scaled, f"f32, {signature}", memory, lambda m: [0.1, *m]),
        ]
    assert not disagreements(pairs, levels())


# More iterations than 32 bits count

LONG = """
    import tack

    @tack.kernel
    def line(n, x):
        for i in range(n):
            if i % 4294967296 < 3:
                x[i // 4294967296, i % 4294967296] = i

    @tack.kernel
    def plane(n, m, x):
        for i, j in tack.ndrange(n, m):
            if j == 7:
                x[i % 4, 0] = i * m + j

    @tack.kernel
    def steps(start, end, x):
        for i in range(start, end, 3):
            x[i % 5, 0] = i
"""


def entry_of(kernel, signature, tool):
    """What runs a span of the iterations of a kernel, given its slots."""
    target = Target("cpu", levels()[-1])
    renderer = renderer_for(target, tool.dialect)
    source = generate(Variant(kernel.definition, Signature.parse(signature), target), renderer)
    library = tool.load(tool.compile(assemble("long", [source], renderer), target))
    address = library.symbol(dict(source.launch.entries)["general"])
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
    return source.launch, kind(address), library


@pytest.mark.parametrize("tool", toolchains(), ids=lambda tool: tool.dialect)
@pytest.mark.parametrize("layout", ["", "; strided"])
def test_iterations_beyond_two_to_the_32_have_their_own_numbers(load, tool, layout):
    kernels = load(LONG)
    x = np.full((6, 3), -1, np.int64)
    slots = {
        "line": {"scalar": [2**35], "pointer": x.ctypes.data},
        "plane": {"scalar": [2**20, 2**20], "pointer": x.ctypes.data},
        "steps": {"scalar": [5, 2**40], "pointer": x.ctypes.data},
    }

    def run(name, signature, begin, end):
        launch, entry, library = entry_of(getattr(kernels, name), signature, tool)
        scalars = slots[name]["scalar"]
        values = {
            "pointer": lambda p: x.ctypes.data,
            "extent": lambda p, axis: x.shape[axis],
            "stride": lambda p, axis: x.strides[axis],
            "scalar": lambda p, dtype: scalars[p],
            "loop": lambda loop: scalars[loop],
        }
        args = (ctypes.c_int64 * 16)(*(values[kind](*rest) for kind, *rest in launch.slots))
        x[...] = -1
        entry(None, ctypes.addressof(args), begin, end)
        del library

    run("line", f"i64, i64[:, :{layout}]", 2**33 - 100, 2**33 + 100)
    assert x.tolist()[2] == [2**33, 2**33 + 1, 2**33 + 2]
    assert (np.delete(x, 2, 0) == -1).all()
    first = 2**33 + 1000
    run("plane", f"i64, i64, i64[:, :{layout}]", first, first + 2**21)
    rows = [i for i in range(2**13, 2**13 + 4) if first <= i * 2**20 + 7 < first + 2**21]
    assert {int(v) for v in x[:, 0] if v >= 0} == {i * 2**20 + 7 for i in rows}
    run("steps", f"i64, i64, i64[:, :{layout}]", 2**34, 2**34 + 5)
    assert {int(v) for v in x[:5, 0]} == {5 + 3 * k for k in range(2**34, 2**34 + 5)}


def test_a_call_counts_more_iterations_than_32_bits_hold(load, monkeypatch):
    """A loop whose body ends at once: 2^32 + 2 iterations that the compiler cannot leave out."""
    monkeypatch.setenv("TACK_JIT", "allow")
    kernels = load(
        """
        @tack.kernel
        def last(x):
            for i in range(x.size):
                if i > 4294967296:
                    x[i % 2, 0] = i
        """
    )
    one = np.zeros(1, np.int64)
    many = np.lib.stride_tricks.as_strided(one, (2, 2**31 + 1), (0, 0))
    kernels.last(many)
    assert one[0] == 2**32 + 1
