"""Tensor cores: which targets have which, where elements are, and what is made of `tack.mma`.

The product itself runs on a device only (`test_gpu_device`): it is one instruction, of which the
CPU's headers have no likeness. Architectures without a device here are compiled for.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generator import load_module
from gpu_twins import compile_image, compile_nvrtc

import tack
from tack.compile import assemble, generate
from tack.errors import UnsupportedError
from tack.model.gpus import GPUS
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.tensor_cores import SIDE, TensorCore, tensor_cores_of
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

EXAMPLE = Path(__file__).parents[1] / "examples" / "groups" / "tiles.py"
PRODUCT = "{0}[:, :], {0}[:, :], f32[:, :]"

HAVE = {
    "cuda": {
        "sm_75": "f16",
        "compute_75": "f16",
        **dict.fromkeys(("sm_80", "sm_89", "sm_90a", "sm_100f", "compute_90"), "f16 bf16"),
    },
    "hip": {
        **dict.fromkeys(("gfx906", "gfx90c", "gfx1030", "gfx9-generic", "gfx10-3-generic"), ""),
        "gfx908": "f16",
        **dict.fromkeys(("gfx90a", "gfx942", "gfx950", "gfx9-4-generic"), "f16 bf16"),
        **dict.fromkeys(("gfx1100", "gfx1151", "gfx11-generic"), "f16 bf16"),
        **dict.fromkeys(("gfx1200", "gfx1201", "gfx12-generic"), "f16 bf16"),
    },
    "metal": {"metal3.1": ""},
    "cpu": {"x86-64-v3": ""},
}
"""Target -> the operands of its tensor cores, by hand from what their makers publish."""

TARGETS = [Target(backend, arch) for backend, archs in HAVE.items() for arch in archs]
CORES = [core for target in TARGETS for core in tensor_cores_of(target)]
DISTINCT = [core for k, core in enumerate(CORES) if core not in CORES[:k]]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_targets_have_the_operands_that_their_makers_list(target: Target) -> None:
    found = [core.operand for core in tensor_cores_of(target)]
    assert found == HAVE[target.backend][target.arch].split()
    assert {core.result for core in tensor_cores_of(target)} <= {"f32"}


def named(core: TensorCore) -> str:
    return f"{core.name}, {core.lanes} lanes, {core.a.elements} elements"


@pytest.mark.parametrize("core", DISTINCT, ids=named)
def test_every_element_of_a_fragment_is_held(core: TensorCore) -> None:
    whole = set(itertools.product(range(SIDE), range(SIDE)))
    for layout in (core.a, core.b, core.c):
        lanes, elements = range(core.lanes), range(layout.elements)
        held = Counter(layout.place(*each) for each in itertools.product(lanes, elements))
        assert set(held) == whole
        copies = core.lanes * layout.elements // SIDE**2
        assert set(held.values()) == {copies}
        assert copies == 1 or layout is not core.c


def test_nvidia_fragments_are_those_of_the_manual() -> None:
    """ "PTX ISA", "Matrix Fragments for mma.m16n8k16 with floating point type", in its words."""
    (core, _) = tensor_cores_of(Target("cuda", "sm_90"))
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
            column = thread * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert core.a.place(lane, i) == (row, column)
        for half, i in itertools.product(range(2), range(4)):
            row = thread * 2 + (i & 1) + (8 if i >= 2 else 0)
            assert core.b.place(lane, 4 * half + i) == (row, group + 8 * half)
            row = group if i < 2 else group + 8
            column = thread * 2 + (i & 1) + 8 * half
            assert core.c.place(lane, 4 * half + i) == (row, column)


def test_amd_fragments_are_those_of_the_manuals() -> None:
    """The examples of AMD's instruction calculator: one element of each fragment."""
    for arch, places in {
        "gfx942": {"a": ((17, 3), (1, 7)), "b": ((35, 2), (10, 3)), "c": ((50, 1), (13, 2))},
        "gfx1100": {"a": ((17, 3), (1, 3)), "b": ((5, 12), (12, 5)), "c": ((20, 3), (7, 4))},
        "gfx1201": {"a": ((17, 3), (1, 11)), "b": ((5, 6), (6, 5)), "c": ((20, 3), (11, 4))},
    }.items():
        (core, _) = tensor_cores_of(Target("hip", arch))
        for role, ((lane, element), place) in places.items():
            assert getattr(core, role).place(lane, element) == place


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_module(EXAMPLE.read_text(encoding="utf-8"), tmp_path_factory.mktemp("example"))


def source(kernel: Any, signature: str, target: Target) -> Source:
    definition = kernel.definition
    variant = Variant(definition, Signature.parse(signature), target, definition.options)
    return generate(variant, renderer_for(target))


@pytest.mark.parametrize(
    "target",
    [
        Target(backend, arch)
        for backend, archs in {
            "cuda": ("sm_75", "sm_80", "sm_90a", "sm_100"),
            "hip": ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"),
        }.items()
        for arch in archs
    ],
    ids=str,
)
def test_the_example_is_compiled_for_every_generation(
    example: Any, target: Target, tmp_path: Path
) -> None:
    cores, renderer = tensor_cores_of(target), renderer_for(target)
    signatures = [PRODUCT.format(core.operand) for core in cores]
    sources = [source(example.tensor_product, each, target) for each in signatures]
    unit, image = tmp_path / f"unit{renderer.suffix}", tmp_path / "image"
    unit.write_text(assemble("products", sources, renderer), encoding="utf-8")
    compile_image(unit, target, image)
    if target.backend == "cuda":
        assert compile_nvrtc(unit, target.arch)[:4] == b"\x7fELF"
    assert image.read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_the_product_is_an_instruction(example: Any, arch: str, tmp_path: Path) -> None:
    target = Target("cuda", arch)
    unit, ptx = tmp_path / "unit.cu", tmp_path / "unit.ptx"
    made = source(example.tensor_product, PRODUCT.format("f16"), target)
    unit.write_text(assemble("product", [made], renderer_for(target)), encoding="utf-8")
    compile_image(unit, Target("cuda", arch.replace("sm", "compute")), ptx)
    shape = "m16n8k8" if arch == "sm_75" else "m16n8k16"
    text = ptx.read_text(encoding="utf-8")
    assert f"mma.sync.aligned.{shape}.row.col.f32.f16.f16.f32" in text


def test_a_warp_has_the_size_of_the_target(example: Any) -> None:
    hosts = {
        lanes: source(example.tensor_product, PRODUCT.format("f16"), Target(*target)).launch.host
        for lanes, target in ((32, ("cuda", "sm_90")), (64, ("hip", "gfx942")))
    }
    for lanes, host in hosts.items():
        assert ("const", lanes) in host
    swapped = [("const", 64) if op == ("const", 32) else op for op in hosts[32]]
    assert [("const", 64) if op == ("const", 32) else op for op in hosts[64]] == swapped


@pytest.mark.parametrize("name", ["metal:metal3.1", "hip:gfx1030", "cpu:x86-64-v3"])
def test_targets_without_tensor_cores_refuse_them(example: Any, name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^{name} has no tensor cores, which .*_product"):
        source(example.tensor_product, PRODUCT.format("f16"), Target(*name.split(":")))


def test_operands_that_a_target_has_not_are_refused_with_those_that_it_has(example: Any) -> None:
    words = r"sm_75 has no tensor cores for bf16 into f32, which .*; it has f16 into f32"
    with pytest.raises(UnsupportedError, match=words):
        source(example.tensor_product, PRODUCT.format("bf16"), Target("cuda", "sm_75"))


def test_a_group_is_a_multiple_of_the_warp(example: Any) -> None:
    kernel = tack.kernel(group=96)(example.tensor_product.py_func)
    assert source(kernel, PRODUCT.format("f16"), Target("cuda", "sm_90"))
    words = r"group=96 is no multiple of the 64 iterations that a warp of hip:gfx942 has"
    with pytest.raises(UnsupportedError, match=words):
        source(kernel, PRODUCT.format("f16"), Target("hip", "gfx942"))


def test_plain_python_says_that_it_has_no_warps(example: Any) -> None:
    a = np.ones((32, 32), np.float16)
    with pytest.raises(RuntimeError, match=r"tack\.warp_size\(\) is about iterations that run at"):
        example.tensor_product.py_func(a, a, np.zeros((32, 32), np.float32))


def test_every_target_with_gpus_says_which_it_has() -> None:
    for backend, archs in GPUS.items():
        for arch in archs:
            assert len({core.lanes for core in tensor_cores_of(Target(backend, arch))}) <= 1
