"""Kernels with workgroups: what they mean, on every GPU dialect, and what is refused about them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from generator import load_module
from gpu_twins import (
    COMPILED,
    DIALECTS,
    Emulated,
    compile_image,
    compile_metal,
    compile_nvrtc,
    memory_after,
)
from group_corpus import GROUP_KERNELS, GroupKernel
from harness import differences
from lanes import run_lanes
from twins import Pair

import tack
from tack.aot.images import read_image
from tack.aot.plan import _Generator
from tack.compile import assemble, generate, prepared
from tack.errors import UnsupportedError
from tack.ir.nodes import IRActive, IRIf
from tack.ir.traversal import kernel_loop
from tack.model.capabilities import lacking
from tack.model.gpus import GPUS
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

CUDA = Target("cuda", "sm_90")
SIGNATURE = "f32[:], f32[:]"


EXAMPLE = Path(__file__).parents[1] / "examples" / "groups" / "tiles.py"


@cache
def expected(case: GroupKernel) -> list[Any]:
    """The arguments after the kernel ran in plain Python."""
    arguments = case.memory()
    run_lanes(case.text, "k", case.group, case.extents, arguments)
    return arguments


def source(kernel: Any, signature: str, target: Target) -> Source:
    definition = kernel.definition
    variant = Variant(definition, Signature.parse(signature), target, definition.options)
    return generate(variant, renderer_for(target))


def pairs(target: Target, folder: Path) -> list[tuple[GroupKernel, Pair, Source]]:
    """The kernels that a target can compute, generated for it."""
    found = []
    for case in GROUP_KERNELS:
        if lacking(target, Signature.parse(case.signature)):
            continue
        kernel = load_module(case.text, folder).k
        pair = Pair(kernel, case.signature, case.memory)
        found.append((case, pair, source(kernel, case.signature, target)))
    return found


def disagreements_with_python(
    target: Target, folder: Path, load: Callable[[list[Source], Path], Any]
) -> list[str]:
    """The kernels whose runs for a target differ in bits from plain Python, and where."""
    made = pairs(target, folder)
    library = load([text for _, _, text in made], folder / "unit")
    found = []
    for case, pair, text in made:
        for noalias in (False, True):
            memory = memory_after(pair, text, library, noalias=noalias)
            differ = differences(expected(case), memory)
            if differ:
                found.append(f"{case.name}:\n{differ}")
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_group_kernels_have_the_bits_of_plain_python(dialect: str, tmp_path: Path) -> None:
    found = disagreements_with_python(DIALECTS[dialect], tmp_path, Emulated)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("target", COMPILED, ids=str)
def test_compilers_make_images_of_group_kernels_without_a_warning(
    target: Target, tmp_path: Path
) -> None:
    renderer, image = renderer_for(target), tmp_path / "image"
    unit = tmp_path / f"unit{renderer.suffix}"
    made = pairs(target, tmp_path)
    unit.write_text(assemble("groups", [text for _, _, text in made], renderer), encoding="utf-8")
    if target.backend == "metal":
        compile_metal(unit, image)
        assert image.read_bytes()[:4] == b"\x7fELF"
        return
    compile_image(unit, target, image)
    entries = read_image(target, "image", image.read_bytes()).entries
    for case, _, text in made:
        for _, symbol in text.launch.entries:
            assert entries[symbol].block == math.prod(case.group)
    if target.backend == "cuda":
        assert compile_nvrtc(unit, target.arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_example_does_what_it_says(dialect: str, tmp_path: Path) -> None:
    module, random = load_module(EXAMPLE.read_text(encoding="utf-8"), tmp_path), np.random
    numbers = random.default_rng(3).integers
    a, b = (numbers(0, 9, shape).astype(np.float32) for shape in ((37, 21), (21, 50)))
    pixels = numbers(0, 256, 1000).astype(np.uint8)
    x = numbers(0, 9, 1000).astype(np.float32)
    sums = [x[start : start + 256].sum() for start in range(0, 1000, 256)]
    cases = [
        (module.product, "f32[:, :], f32[:, :], f32[:, :]", [a, b, np.zeros((37, 50), np.float32)]),
        (module.histogram, "u8[:], i32[:]", [pixels, np.zeros(256, np.int32)]),
        (module.group_sums, SIGNATURE, [x, np.zeros(4, np.float32)]),
    ]
    results = [a @ b, np.bincount(pixels, minlength=256), sums]
    sources = [source(kernel, signature, DIALECTS[dialect]) for kernel, signature, _ in cases]
    library = Emulated(sources, tmp_path / dialect)
    for (kernel, signature, arguments), text, result in zip(cases, sources, results, strict=True):
        pair = Pair(kernel, signature, lambda given=arguments: [each.copy() for each in given])
        memory = memory_after(pair, text, library, noalias=False)
        np.testing.assert_array_equal(memory[-1], result)


@tack.kernel(group=256)
def total(x: tack.Array, out: tack.Array) -> None:
    for i in range(x.shape[0]):
        all_of_them = tack.block_sum(x[i])
        if tack.thread_id() == 0:
            out[tack.group_id()] = all_of_them


@tack.kernel(group=8)
def ends(x: tack.Array, out: tack.Array) -> None:
    for i in range(x.shape[0]):
        if tack.group_id() == 2:
            continue
        if x[0] > 3:
            out[i] = 0
        if x[i] >= 0:
            continue
        if x[x.shape[0]] > 3:
            continue
        out[i] = x[x.shape[0]]


def test_lanes_beyond_the_end_read_nothing_that_iterations_may_not() -> None:
    variant = Variant(ends.definition, Signature.parse(SIGNATURE), CUDA, ends.definition.options)
    body = kernel_loop(prepared(variant, renderer_for(CUDA))).body
    kept = [statement for statement in body if "[" in str(statement)]
    assert all(isinstance(each, IRIf) and isinstance(each.condition, IRActive) for each in kept)
    assert any("group_id" in str(statement) and statement not in kept for statement in body)


def test_a_cpu_refuses_workgroups_with_that_reason() -> None:
    x = np.ones(8, np.float32)
    with pytest.raises(UnsupportedError, match=r"has no workgroups so far, .*by group=256; call"):
        total(x, x.copy())


def test_plain_python_says_that_iterations_do_not_run_at_the_same_time() -> None:
    x = np.ones(8, np.float32)
    with pytest.raises(RuntimeError, match=r"tack\.block_sum\(\) is about iterations that run at"):
        total.py_func(x, x.copy())


@pytest.mark.parametrize("group", [0, -1, "many", 2.0, True, (1, 2, 3, 4), (8, 0), [None]])
def test_what_is_no_size_of_a_workgroup_is_refused(group: Any) -> None:
    with pytest.raises(ValueError, match="is not the size of a workgroup; write a number"):
        tack.kernel(group=group)(total.py_func)


def test_the_group_is_part_of_the_keys() -> None:
    sources = [
        source(tack.kernel(group=group)(total.py_func), SIGNATURE, CUDA)
        for group in (32, (32,), 64)
    ]
    keys = [each.source_key for each in sources]
    assert keys[0] == keys[1] != keys[2]
    assert [each.launch.group for each in sources] == [(32,), (32,), (64,)]
    assert sources[0].launch.entries != sources[2].launch.entries


@pytest.mark.parametrize("target", [*DIALECTS.values()], ids=str)
def test_a_group_that_is_too_large_is_refused_with_the_limit(target: Target) -> None:
    with pytest.raises(UnsupportedError, match=r"a group of 1025 .* is too large .* 1024"):
        source(tack.kernel(group=1025)(total.py_func), SIGNATURE, target)


@tack.kernel(group=(16, 1, 1))
def boxes(out: tack.Array) -> None:
    for i, j, k in tack.ndrange(out.shape[0], out.shape[1], out.shape[2]):
        out[i, j, k] = tack.thread_id()


def test_limits_hold_along_each_axis_and_in_all() -> None:
    for group, words in (
        ((65, 1, 1), r"a group of 65 along z is too large for cuda:sm_90, which has 64 there"),
        ((64, 16, 2), r"a group of 2048 is too large for cuda:sm_90, which has 1024"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            source(tack.kernel(group=group)(boxes.py_func), "i64[:, :, :]", CUDA)


@tack.kernel(group=8)
def roomy(x: tack.Array, out: tack.Array) -> None:
    for i in range(x.shape[0]):
        first = tack.shared(tack.u8, 3)
        second = tack.shared(tack.f64, 6144)
        first[0] = 1
        second[tack.thread_id() * 800] = x[i]
        tack.barrier()
        out[i] = second[0] + first[0]


ROOMY = "f64[:], f64[:]"


def test_shared_arrays_that_are_too_large_are_refused_with_their_size() -> None:
    words = "its shared arrays have 49160 bytes, too many for cuda:sm_88, which has 49152"
    with pytest.raises(UnsupportedError, match=words):
        source(roomy, ROOMY, Target("cuda", "sm_88"))
    words = "its shared arrays have 102400 bytes, too many for metal:metal3.1, which has 32768"
    with pytest.raises(UnsupportedError, match=words):
        source(vast, SIGNATURE, Target("metal", "metal3.1"))
    for target in GPUS["cuda"].keys() - {"sm_88", "compute_88"}:
        assert source(roomy, ROOMY, Target("cuda", target)).launch.shared == 49168
    assert source(roomy, ROOMY, Target("hip", "gfx942")).launch.shared == 0


def test_the_launcher_gives_what_cuda_does_not_let_code_declare(tmp_path: Path) -> None:
    text = source(roomy, ROOMY, CUDA)
    pair = Pair(roomy, ROOMY, lambda: [np.arange(20.0), np.zeros(20)])
    library = Emulated([text, source(total, SIGNATURE, CUDA)], tmp_path)
    _, out = memory_after(pair, text, library, noalias=False)
    np.testing.assert_array_equal(out, np.repeat([1.0, 9.0, 17.0], 8)[:20])


@tack.kernel(group=64)
def vast(x: tack.Array, out: tack.Array) -> None:
    for i in range(x.shape[0]):
        tile = tack.shared(tack.f32, 100 * 256)
        tile[tack.thread_id()] = x[i]
        tack.barrier()
        out[i] = tile[63 - tack.thread_id()]


@pytest.mark.parametrize("target", ["cuda:sm_90", "cuda:sm_80", "cuda:compute_100", "hip:gfx950"])
def test_compilers_take_what_an_architecture_has_more_than_others(
    target: str, tmp_path: Path
) -> None:
    backend, arch = target.split(":")
    text, image = source(vast, SIGNATURE, Target(backend, arch)), tmp_path / "image"
    assert (text.shared, text.launch.shared) == (102400, 102400 if backend == "cuda" else 0)
    renderer = renderer_for(Target(backend, arch))
    unit = tmp_path / f"unit{renderer.suffix}"
    unit.write_text(assemble("vast", [text], renderer), "utf-8")
    compile_image(unit, Target(backend, arch), image)
    if backend == "cuda":
        assert compile_nvrtc(unit, arch)


def test_what_an_architecture_lacks_is_refused_though_others_share_the_text() -> None:
    signature = Signature.parse(SIGNATURE)
    row: Any = SimpleNamespace(kernel=vast.definition, signature=signature, place=None)
    texts = _Generator(None)
    made = [texts.source(row, Target("cuda", arch)) for arch in ("sm_90", "sm_80")]
    assert made[0].text is made[1].text
    with pytest.raises(
        UnsupportedError, match="102400 bytes, too many for cuda:sm_86, which has 101376"
    ):
        texts.source(row, Target("cuda", "sm_86"))


def test_metal_is_given_the_memory_of_its_groups() -> None:
    assert source(total, SIGNATURE, Target("metal", "metal3.1")).launch.shared == 4 * 256
    assert source(total, SIGNATURE, CUDA).launch.shared == 0
