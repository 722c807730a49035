"""The text of the GPU dialects compiles for its devices, and has the bits of C.

Nothing here needs a GPU: real compilers make images for the architectures, and the same text runs
on the CPU under ``gpu_headers/``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from corpus import CORPUS
from generator import load_module
from gpu_twins import (
    COMPILED,
    DIALECTS,
    Reference,
    compile_hipcc,
    compile_image,
    compile_metal,
    compile_nvrtc,
    computed,
    emulated_disagreements,
    llvm_of_hip,
)
from twins import Pair, generated_pairs

from tack.compile import assemble, generate
from tack.model.capabilities import capabilities_of
from tack.model.dtypes import NARROW
from tack.model.gpus import GPUS
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.tensor_cores import tensor_cores_of
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

SEED, PROGRAMS = 7, 40


References = Callable[[str], Reference]
Units = Callable[[Target], Path]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> References:
    """What C makes of a part of the corpus, made once for all dialects."""
    folder = tmp_path_factory.mktemp("corpus")

    @cache
    def made(name: str) -> Reference:
        if name == "generated":
            return Reference(list(generated_pairs(PROGRAMS, SEED, folder)))
        text, pairs_of = CORPUS[name]
        return Reference(list(pairs_of(load_module(text, folder))))

    return made


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [*CORPUS, "generated"])
def test_every_kernel_has_the_bits_of_c(
    name: str, dialect: str, reference: References, tmp_path: Path
) -> None:
    found = emulated_disagreements(reference(name), dialect, tmp_path / dialect)
    assert not found, "\n".join(found.values())


def file_of(pairs: list[Pair], target: Target, folder: Path) -> Path:
    """The file of every pair that the target can compute."""
    renderer = renderer_for(target)
    sources = {source.title: source for _, source in computed(pairs, target)}
    path = folder / f"unit{renderer.suffix}"
    path.write_text(assemble("corpus", list(sources.values()), renderer), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def unit(reference: References, tmp_path_factory: pytest.TempPathFactory) -> Units:
    """The file of the whole corpus for a target, once for all that share their text."""
    files: dict[tuple[int, frozenset[str]], Path] = {}

    def written(target: Target) -> Path:
        key = id(renderer_for(target)), frozenset(capabilities_of(target).dtypes)
        if key not in files:
            pairs = [pair for name in (*CORPUS, "generated") for pair in reference(name).pairs]
            files[key] = file_of(pairs, target, tmp_path_factory.mktemp("unit"))
        return files[key]

    return written


@pytest.mark.parametrize("target", COMPILED, ids=str)
def test_compilers_make_images_without_a_warning(
    target: Target, unit: Units, tmp_path: Path
) -> None:
    path, image = unit(target), tmp_path / "image"
    if target.backend == "metal":
        compile_metal(path, image)
        return
    compile_image(path, target, image)
    assert image.read_bytes()[:4] == b"\x7fELF"
    if target.backend == "cuda":
        assert compile_nvrtc(path, target.arch)[:4] == b"\x7fELF"


def test_nvrtc_makes_an_image_without_a_warning(unit: Units) -> None:
    """Behind its own front end is what nvcc has, so that one architecture is enough."""
    target = Target("cuda", "sm_90a")
    assert compile_nvrtc(unit(target), target.arch)[:4] == b"\x7fELF"


def test_hipcc_makes_images_by_its_own_headers(unit: Units, tmp_path: Path) -> None:
    """Debian's has gfx906, gfx908, gfx90a and gfx1030; the zig above stands in for the others."""
    target, image = Target("hip", "gfx90a"), tmp_path / "image"
    compile_hipcc(unit(target), target.arch, image)
    assert b"hipv4-amdgcn-amd-amdhsa--gfx90a" in image.read_bytes()[:4096]


METAL_ATTRIBUTES = {"buffer", "thread_position_in_grid", "threads_per_grid"}


def test_metal_text_has_the_attributes_that_metal_knows(unit: Units) -> None:
    text = unit(DIALECTS["metal"]).read_text(encoding="utf-8")
    found = set(re.findall(r"\[\[(\w+)", text))
    assert found == METAL_ATTRIBUTES
    assert not re.search(r"\bdouble\b|\[[&=\w]*\]\s*\(", text.partition("using namespace metal")[2])


@pytest.mark.parametrize("backend", DIALECTS)
def test_architectures_that_convert_alike_share_their_text(backend: str) -> None:
    """So a plan renders it once for all of them."""
    renderers = {arch: renderer_for(Target(backend, arch)) for arch in GPUS[backend]}
    for arch, renderer in renderers.items():
        cores = tensor_cores_of(Target(backend, arch))
        alike = [
            other
            for other, gpu in GPUS[backend].items()
            if gpu.converts == GPUS[backend][arch].converts
            and tensor_cores_of(Target(backend, other)) == cores
        ]
        assert all(renderers[other] is renderer for other in alike)
    assert len(set(map(id, renderers.values()))) == {"cuda": 3, "hip": 6, "metal": 1}[backend]


def test_no_compiler_of_hip_computes_at_a_narrow_type(tmp_path: Path) -> None:
    """Its division need not be rounded as that of f32 is, rounded again."""
    text = "import tack\n@tack.kernel\ndef k(x, y):\n    for i in range(x.shape[0]):\n"
    kernel = load_module(text + "        y[i] = x[i] / y[i] * x[i] + y[i]\n", tmp_path).k
    target = Target("hip", "gfx942")
    found = llvm_of_hip(file_of([Pair(kernel, "f16[:], f16[:]", list)], target, tmp_path), "gfx942")
    assert "fptrunc float" in found
    assert not re.search(r"\bf(add|mul|div) half\b", found)


CONVERTING = {
    "cuda:sm_75": {"f16"},
    "cuda:sm_80": {"f16", "bf16"},
    "cuda:sm_89": {"f16", "bf16", "f8e4m3", "f8e5m2"},
    "cuda:sm_90a": {"f16", "bf16", "f8e4m3", "f8e5m2"},
    "cuda:compute_120f": {"f16", "bf16", "f8e4m3", "f8e5m2"},
    "hip:gfx942": {"f16"},
    "hip:gfx950": {"f16", "bf16"},
    "hip:gfx9-4-generic": {"f16"},
    "metal:metal3.1": {"f16"},
    "cpu:x86-64-v3": set(),
}


@pytest.mark.parametrize("target", CONVERTING)
def test_what_a_target_converts_by_instructions_is_no_integer_arithmetic(
    target: str, tmp_path: Path
) -> None:
    text, _ = CORPUS["narrow floats"]
    chosen = Target.parse(target)
    assert capabilities_of(chosen).converts == CONVERTING[target]
    kernel = load_module(text, tmp_path).kept
    for name in NARROW:
        variant = Variant(kernel.definition, Signature.parse(f"f32[:], {name}[:]"), chosen)
        source = generate(variant, renderer_for(chosen)).text
        is_native = name in CONVERTING[target]
        assert (f"tack_{name}_of_f32(" in source) == is_native
        assert ("tack_bits_of_f32(" in source) == (not is_native)
