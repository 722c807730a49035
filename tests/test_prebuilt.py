"""A call picks the prebuilt variant for its arguments, and never a stale or foreign one."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from harness import levels
from packages import Package

import tack
from tack.errors import NoVariantError

pytestmark = pytest.mark.usefixtures("no_jit")

KERNELS = """
    import tack
    from PACKAGE.helpers import scaled

    SHIFT = tack.constant(0.5, tack.f32)

    @tack.kernel
    def kernel(a, x, out):
        for i in range(x.shape[0]):
            out[i] = scaled(a, x[i]) + SHIFT

    @tack.kernel
    def rows(n: tack.i32, x):
        for i, j in tack.ndrange(x.shape[0], x.shape[1]):
            x[i, j] = n

    @tack.kernel
    def counted(n, m, step, x):
        for i in range(n * 0, n + m - m, step):
            x[0] = 1

    @tack.kernel
    def grid(n, m, x):
        for i, j in tack.ndrange(n, m):
            x[0] = 1
"""
HELPERS = """
    import tack

    FACTOR = tack.constant(2.0, tack.f32)

    @tack.func
    def scaled(a, x, times=1.0):
        return a * x * FACTOR * times
"""
ROWS = [
    ("kernel", "f32, f32[:], f32[:]"),
    ("kernel", "i64, f32[:], f32[:]"),
    ("rows", "i32, f32[:, :]"),
    ("rows", "i32, f32[:, 3]"),
    ("counted", "i64, i64, i64, i64[:]"),
    ("grid", "i64, i64, i64[:]"),
]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    package = Package(tmp_path_factory.mktemp("original"), {"kernels": KERNELS, "helpers": HELPERS})
    package.build(ROWS, levels())
    package.forget()
    return package


@pytest.fixture
def package(original, tmp_path):
    """A copy of the package, imported from a folder of its own."""
    copy = original.copy_to(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        yield copy
        copy.forget()


def arguments(n=5):
    return 3.0, np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def check_answers(kernels):
    a, x, out = arguments()
    kernels.kernel(a, x, out)
    np.testing.assert_array_equal(out, np.float32(a) * x * np.float32(2) + np.float32(0.5))
    return tack.explain(kernels.kernel, a, x, out)


def refusal(kernels):
    with pytest.raises(NoVariantError) as caught:
        kernels.kernel(*arguments())
    assert str(tack.explain(kernels.kernel, *arguments())) == str(caught.value)
    return str(caught.value)


def test_the_highest_level_answers_and_the_others_say_why_not(package):
    found = check_answers(package.load())
    assert found.chosen is not None
    assert found.chosen.target == f"cpu:{levels()[-1]}"
    reasons = {(c.signature, c.target): c.reason for c in found.candidates if not c.accepted}
    assert len(found.candidates) == 2 * len(levels()) + 1  # the last would be compiled
    assert all(reason for reason in reasons.values())
    assert f"taken: (f32, f32[:], f32[:]) for cpu:{levels()[-1]}" in str(found)


def test_every_level_gives_the_same_bits(package):
    document = json.loads((package.bundle / "manifest.json").read_text("utf-8"))
    results = []
    for level in levels():
        artifacts = [a for a in document["artifacts"] if a["target"] == f"cpu:{level}"]
        kernels = [
            k | {"variants": [v for v in k["variants"] if list(v["targets"]) == [f"cpu:{level}"]]}
            for k in document["kernels"]
        ]
        package.write_manifest(document | {"artifacts": artifacts, "kernels": kernels})
        copy = package.copy_to(package.root / level)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(copy.root)
            a, x, out = arguments(1000)
            kernels_module = copy.load()
            kernels_module.kernel(a, x, out)
            assert tack.explain(kernels_module.kernel, a, x, out).chosen.target == f"cpu:{level}"
            results.append(out.tobytes())
    assert len(set(results)) == 1


def test_a_pinned_dimension_comes_first(package):
    kernels = package.load()
    for shape, signature in [((4, 3), "i32, f32[:, 3]"), ((3, 4), "i32, f32[:, :]")]:
        x = np.zeros(shape, np.float32)
        kernels.rows(7, x)
        assert (x == 7).all()
        assert tack.explain(kernels.rows, 7, x).chosen.signature == signature


def test_a_signature_that_nobody_built_lists_what_was(package):
    kernels = package.load()
    a, x, _ = arguments()
    with pytest.raises(NoVariantError, match="no variant answers") as caught:
        kernels.kernel(a, x, x.astype(np.float64))
    assert "'a' is f64, and it takes f32" in str(caught.value)
    with pytest.raises(NoVariantError, match=r"'x' is f32\[5, 5\], and it takes f32\[:\]"):
        kernels.kernel(a, np.zeros((5, 5), np.float32), x)
    check_answers(kernels)


def test_a_read_only_output_is_refused_before_anything_runs(package):
    kernels = package.load()
    a, x, out = arguments()
    out.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="'out' is read-only, and the kernel writes it"):
            kernels.kernel(a, x, out)
        assert not out.any()
        check_answers(kernels)  # and again once the variant is in the kernel's table
    x.flags.writeable = False
    kernels.kernel(a, x, np.zeros_like(out))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_one_variant_serves_every_length(package, n):
    kernels = package.load()
    a, x, out = arguments(n)
    kernels.kernel(a, x, out)
    np.testing.assert_array_equal(out, np.float32(a) * x * np.float32(2) + np.float32(0.5))


def test_arguments_may_be_the_same_array_or_overlap(package):
    kernels = package.load()
    x = np.arange(8, dtype=np.float32)
    kernels.kernel(3.0, x, x)
    np.testing.assert_array_equal(x, 6 * np.arange(8, dtype=np.float32) + np.float32(0.5))


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("kernels", "scaled(a, x[i]) + SHIFT", "scaled(a, x[i]) - SHIFT"),
        ("helpers", "a * x * FACTOR * times", "a * FACTOR * x * times"),
    ],
)
def test_an_edited_kernel_or_helper_is_refused(package, module, old, new):
    package.edit(module, old, new)
    assert "the source was edited since the build" in refusal(package.load())


@pytest.mark.parametrize(
    ("module", "old", "new", "words"),
    [
        ("kernels", "0.5, tack.f32", "0.7, tack.f32", "'SHIFT' in kernel is constant f32"),
        ("helpers", "2.0, tack.f32", "4.0, tack.f32", "'FACTOR' in scaled is constant f32"),
        ("helpers", "2.0, tack.f32", "2.0, tack.f64", "'FACTOR' in scaled is constant f64"),
        ("helpers", "times=1.0", "times=1.5", "'times' in scaled is number float"),
    ],
)
def test_an_edited_constant_or_default_is_refused_with_both_values(
    package, module, old, new, words
):
    package.edit(module, old, new)
    reason = refusal(package.load())
    assert words in reason
    assert "and it was built with" in reason


def test_a_constant_set_by_other_code_before_the_first_call_is_refused(package):
    kernels = package.load()
    kernels.SHIFT = tack.constant(9.0, tack.f32)
    assert "'SHIFT' in kernel" in refusal(kernels)


def test_a_helper_replaced_before_the_first_call_is_refused(package):
    kernels = package.load()

    @tack.func
    def other(a, x):
        return a

    kernels.scaled = other
    assert "'scaled' in kernel is func" in refusal(kernels)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("kernels", "SHIFT = ", "# a comment\n\nSHIFT = "),
        ("kernels", "out[i] = ", "out[i]   =   "),
        ("kernels", "def rows(n: tack.i32, x):", "def rows(n: tack.i32, x):\n    'text'"),
        ("helpers", "FACTOR = ", "OTHER = 3\nFACTOR = "),
    ],
)
def test_an_edit_that_does_not_count_is_no_miss(package, module, old, new):
    package.edit(module, old, new)
    check_answers(package.load())


def test_an_edit_of_one_kernel_does_not_refuse_its_neighbour(package):
    package.edit("kernels", "x[i, j] = n", "x[i, j] = n + 1")
    kernels = package.load()
    check_answers(kernels)
    with pytest.raises(NoVariantError, match="edited since the build"):
        kernels.rows(7, np.zeros((2, 2), np.float32))


def test_a_file_edited_after_import_is_refused_until_it_is_reloaded(package):
    kernels = package.load()
    package.edit("kernels", "+ SHIFT", "- SHIFT")
    assert "edited after it was imported" in refusal(kernels)


def test_source_that_cannot_be_read_is_trusted(package):
    """A frozen application has no source; its code and its bundle come from one build."""
    kernels = package.load()
    for path in package.folder.glob("*.py"):
        path.unlink()
    check_answers(kernels)


def test_threads_that_call_first_at_once_all_get_the_answer(package):
    kernels = package.load()
    barrier = threading.Barrier(16)
    results: list[bytes] = []

    def call() -> None:
        a, x, out = arguments(100)
        barrier.wait()
        kernels.kernel(a, x, out)
        results.append(out.tobytes())

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16
    assert len(set(results)) == 1


def test_bounds_that_only_a_call_can_refuse(package):
    kernels = package.load()
    x = np.zeros(4, np.int64)
    with pytest.raises(OverflowError, match="grid"):
        kernels.grid(2**40, 2**40, x)
    for step in (0, -1):
        with pytest.raises(ValueError, match="step"):
            kernels.counted(2, 2, step, x)
    kernels.grid(-(2**40), -(2**40), x)
    kernels.counted(-5, 2, 1, x)
    assert not x.any()
    kernels.counted(2**62, 5, 2**61, x)
    assert x[0] == 1


MODES = """
    import tack

    @tack.kernel
    def strict(x, out):
        for i in range(out.shape[0]):
            out[i] = x[i] * x[i] - x[i + out.shape[0]]

    @tack.kernel(fp="contract")
    def contract(x, out):
        for i in range(out.shape[0]):
            out[i] = x[i] * x[i] - x[i + out.shape[0]]
"""


def test_a_prebuilt_kernel_keeps_its_floating_point_mode_and_no_other(tmp_path):
    package = Package(tmp_path, {"kernels": MODES})
    package.build([(name, "f32[:], f32[:]") for name in ("strict", "contract")], levels())
    package.forget()
    made = package.load()
    half = np.random.default_rng(1).uniform(1, 2, 100).astype(np.float32)
    x = np.concatenate([half, half * half])
    strict, fused = np.ones((2, 100), np.float32)
    made.strict(x, strict)
    made.contract(x, fused)
    assert not strict.any()
    assert fused.any() == (levels()[-1] != "x86-64-v2")
    package.forget()
    package.edit("kernels", 'fp="contract"', 'fp="fast"')
    with pytest.raises(NoVariantError, match=r"it was built with fp=contract.* has fp=fast"):
        package.load().contract(x, fused)
