"""Images for GPUs are built like libraries for CPUs: what changed, the same bytes, and checked."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpu_twins import compiler_of, need
from harness import needs_level
from projects import MANIFEST, Project, build_wheel, only
from trees import GENERATORS, PROJECT, Tree

from tack.aot import compilers
from tack.aot.bundle import make_bundle, read_bundle, write_bundle
from tack.aot.compilers import find_compiler, plan_compilers
from tack.aot.images import read_images
from tack.aot.jobs import image_jobs
from tack.aot.report import inspect
from tack.aot.skeleton import write_package
from tack.errors import ToolchainError
from tack.model.bundle import Bundle
from tack.model.pack import pack_bytes, read_pack
from tack.model.targets import Target

pytestmark = needs_level("x86-64-v3")

LEVELS = 'cpu = ["x86-64-v2", "x86-64-v3"]'
EVERY = """cpu = ["x86-64-v3"]
    cuda = { sass = ["sm_80", "sm_90a"], ptx = "compute_90" }
    hip = ["gfx90a", "gfx942"]
    metal = ["metal3.1"]"""
PACKS = {
    "cuda/compute_90.pack": "compute_90, PTX 9.0",
    "cuda/sm_80.pack": "sm_80",
    "cuda/sm_90a.pack": "sm_90a",
    "hip/gfx90a.pack": "gfx90a",
    "hip/gfx942.pack": "gfx942",
    "metal/metal3.1.pack": "metal3.1, macOS 14",
}
UNITS = {"imaged-kernels--saxpy", "imaged-kernels--scale"}


def project(root: Path, targets: str = EVERY) -> Project:
    return Project(root, name="imaged", manifest=MANIFEST.replace(LEVELS, targets))


def images(tree: Tree) -> dict[str, int]:
    """The time stamp of every image, by architecture and unit."""
    folder = tree.build / "tack" / "kernels" / "images"
    return {
        f"{path.parent.name} {path.name.partition('--')[2]}": path.stat().st_mtime_ns
        for path in folder.rglob("imaged-*")
        if not path.suffix
    }


def packs(tree: Tree) -> dict[str, bytes]:
    return {
        str(path.relative_to(tree.bundle)): path.read_bytes()
        for path in sorted(tree.bundle.rglob("*.pack"))
    }


def built(tree: Tree, *options: str, **environment: str) -> Tree:
    done = tree.configure(*options, **environment)
    assert done.returncode == 0, done.stdout
    tree.make()
    return tree


@pytest.fixture(scope="module", params=GENERATORS)
def tree(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A tree with every backend, configured and built."""
    compiler_of("cuda")
    compiler_of("hip")
    return built(Tree(project(tmp_path_factory.mktemp("tree")), request.param))


def test_each_architecture_has_a_pack_with_an_image_for_each_unit(tree: Tree) -> None:
    assert set(packs(tree)) == set(PACKS)
    bundle = read_bundle(tree.bundle / "manifest.json")
    needs = {a.path: a.needs for a in bundle.artifacts if a.path.endswith(".pack")}
    version = re.compile(r"PTX \d\.\d")
    assert {p: version.sub("PTX 9.0", text) for p, text in needs.items()} == PACKS
    for path, content in packs(tree).items():
        assert set(read_pack(io.BytesIO(content), path).images) == UNITS
    for kernel in bundle.kernels:
        for variant in kernel.variants:
            on_gpu = variant.target.backend in ("cuda", "hip")
            symbols = [symbol for _, symbol in variant.launch.entries]
            assert bool(variant.unit) == (variant.target.backend != "cpu")
            assert [r.symbol for r in variant.resources] == symbols * on_gpu
            for taken in variant.resources:
                assert taken.block == 256
                assert (taken.registers is None) == variant.target.arch.startswith("compute")
                assert taken.shared in (0, None)
    assert Bundle.from_json(bundle.to_json(), "here") == bundle
    assert {skipped.target for skipped in bundle.skipped} == {"metal:metal3.1"}
    (inspection,) = inspect(tree.bundle)
    assert not inspection.problems


def test_the_toolchain_says_which_compilers(tree: Tree) -> None:
    toolchain = read_bundle(tree.bundle / "manifest.json").toolchain
    assert {key.partition(" ")[0] for key in toolchain} == {"cpu", "cuda", "hip"}
    assert "release" in toolchain["cuda version"] or "cuda_" in toolchain["cuda version"]
    assert "-fmad=false" in toolchain["cuda flags"]
    assert "clang version" in toolchain["hip version"]
    assert "/" not in toolchain["hip flags"]


def test_exactly_what_changed_is_compiled_again(tree: Tree) -> None:
    def compiled(old: str = "", new: str = "") -> tuple[set[str], list[str]]:
        before = images(tree)
        if old:
            tree.project.edit("kernels", old, new)
        tree.make()
        after = images(tree)
        return {image for image in after if after[image] != before.get(image)}, tree.starts()

    architectures = ("sm_80", "sm_90a", "compute_90", "gfx90a", "gfx942")
    tree.starts()
    assert compiled() == (set(), [])
    shipped = packs(tree)
    expected = {f"{arch} saxpy" for arch in architectures}
    everything = ["plan", "render", "bundle"]
    assert compiled("a * x[i] + y[i]", "a * x[i] - y[i]") == (expected, everything)
    assert all(packs(tree)[path] != content for path, content in shipped.items())
    expected = {f"{arch} scale" for arch in architectures}
    assert compiled("return x * HALF", "return HALF * x + x") == (expected, everything)
    assert compiled("@tack.kernel", "# A comment.\n@tack.kernel") == (set(), everything)
    assert tree.configure().returncode == 0
    assert tree.starts() == []
    assert compiled() == (set(), [])


def test_the_bytes_depend_on_no_folder(tmp_path: Path) -> None:
    compiler_of("cuda")
    compiler_of("hip")
    one = built(Tree(project(tmp_path / "one"), "Ninja"), PYTHONHASHSEED="1")
    other = Tree(project(tmp_path / "another folder (with) $igns"), "Unix Makefiles")
    built(other, PYTHONHASHSEED="2", LC_ALL="C")
    assert packs(one) == packs(other)
    documents = [(t.bundle / "manifest.json").read_bytes() for t in (one, other)]
    assert documents[0] == documents[1]
    for content in (*packs(one).values(), documents[0]):
        assert str(tmp_path).encode() not in content


# --- which compiler ------------------------------------------------------------------------------


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def logging(path: Path, program: str = "") -> tuple[Path, Callable[[], list[str]]]:
    """A program that notes how it was called before another one, or its arguments, runs."""
    log = path.with_suffix(".log")
    command = f'exec "{program}" "$@"' if program else 'exec "$@"'
    script(path, f'echo "$@" >>"{log}"\n{command}\n')

    def calls() -> list[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    return path, calls


def test_a_compiler_and_a_launcher_can_be_named(tmp_path: Path) -> None:
    nvcc, compiles = logging(tmp_path / "my-nvcc", compiler_of("cuda").program)
    launcher, launches = logging(tmp_path / "launcher")
    tree = Tree(project(tmp_path / "p"), lists=PROJECT.replace("toml)", "toml TARGETS cuda)"))
    option = f"-DCMAKE_CUDA_COMPILER_LAUNCHER={launcher}"
    built(tree, option, CUDACXX=str(nvcc), CUDAFLAGS="-lineinfo")
    assert set(packs(tree)) == {path for path in PACKS if path.startswith("cuda")}
    lines = [line for line in compiles() if "--version" not in line]
    assert len(lines) == 6
    assert launches() == [f"{nvcc} {line}" for line in lines]
    for line in lines:
        words = line.split()
        assert words[0] == "-lineinfo"
        assert not any(word.startswith("/") for word in words)
    toolchain = read_bundle(tree.bundle / "manifest.json").toolchain
    assert toolchain["cuda compiler"] == "my-nvcc"
    assert "cpu compiler" not in toolchain
    # Another compiler compiles everything anew; the launcher stays, since CMake keeps entries.
    other, others = logging(tmp_path / "other-nvcc", compiler_of("cuda").program)
    built(tree, f"-DCMAKE_CUDA_COMPILER={other}")
    assert len([line for line in others() if "--version" not in line]) == 6
    assert compiles() == []


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_hipcc_can_be_named(generator: str, tmp_path: Path) -> None:
    hipcc = need("hipcc", of="hip")
    targets = 'hip = ["gfx90a"]'
    tree = built(Tree(project(tmp_path, targets), generator), HIPCXX=hipcc)
    assert set(packs(tree)) == {"hip/gfx90a.pack"}
    toolchain = read_bundle(tree.bundle / "manifest.json").toolchain
    assert toolchain["hip compiler"] == "hipcc"
    assert "HIP version" in toolchain["hip version"]
    assert "clang version" in toolchain["hip version"]


def test_a_name_that_is_no_program_is_refused(tmp_path: Path) -> None:
    tree = Tree(project(tmp_path))
    done = tree.configure(CUDACXX="/nowhere/nvcc")
    assert done.returncode != 0
    assert (
        "CUDACXX names /nowhere/nvcc, which is no program that can be started; correct it, or "
        "leave it out and tack looks for nvcc by itself" in " ".join(done.stdout.split())
    )
    assert "Traceback" not in done.stdout
    done = tree.configure("-DTACK_JOBS=all", "-DCMAKE_CUDA_COMPILER=true")
    assert "TACK_JOBS is all, and has to be a number of compilers, such as 4" in done.stdout


@pytest.mark.parametrize(
    ("backend", "sentence"),
    [
        (
            "cuda",
            (
                "targets.cuda: 9 variants for sm_80, sm_90a, compute_90 need nvcc, and there is "
                'none: python -m pip install "tack-aot[build-cuda]", or install a CUDA toolkit, or '
                "name an nvcc in the environment variable CUDACXX, or leave cuda out with TARGETS "
                "cpu hip metal"
            ),
        ),
        (
            "hip",
            (
                "targets.hip: 6 variants for gfx90a, gfx942 need a clang for AMD GPUs, and there "
                'is none: python -m pip install "tack-aot[build-hip]", or name the hipcc or clang '
                "of a ROCm in the environment variable HIPCXX, or leave hip out with TARGETS cpu "
                "cuda metal"
            ),
        ),
    ],
)
def test_a_missing_compiler_says_what_wants_it_and_how_to_get_it(
    backend: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = compilers.find_compiler

    def found(asked: str, named: str = "") -> Any:
        return None if asked == backend else real(asked, sys.executable)

    monkeypatch.setattr(compilers, "find_compiler", found)
    with pytest.raises(ToolchainError) as error:
        plan_compilers(project(tmp_path).plan(), {})
    assert str(error.value) == f"{tmp_path}/tack-aot.toml: {sentence}"


def test_a_build_for_metal_needs_no_compiler(tmp_path: Path) -> None:
    assert plan_compilers(project(tmp_path).plan(backends=["cpu", "metal"]), {}) == {}


def test_compilers_of_python_packages_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for folder in ("toolkit/bin", "bin", "nvidia/cu13/bin"):
        (tmp_path / folder).mkdir(parents=True)
    packages = {"nvidia": [tmp_path / "nvidia"], "ziglang": []}
    monkeypatch.setattr(compilers, "_packages", packages.__getitem__)
    places = ["nvidia/cu13/bin/nvcc", "toolkit/bin/nvcc", "bin/nvcc"]
    for place in reversed(places):
        script(tmp_path / place, "")
        found = find_compiler("cuda")
        assert found is not None
        assert (found.kind, found.program) == ("nvcc", str(tmp_path / place))
    script(tmp_path / "bin" / "hipcc", "")
    assert find_compiler("hip") is None
    for name, kind in (("hipcc", "hipcc"), ("zig-0.14", "zig"), ("amdclang++", "clang")):
        found = find_compiler("hip", str(script(tmp_path / name, "")))
        assert found is not None
        assert found.kind == kind


def test_the_number_of_jobs_follows_memory_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    from tack.aot import jobs

    for memory, cores, expected in ((64 << 30, 2, 2), (2 << 30, 64, 4), (1 << 20, 8, 1)):
        monkeypatch.setattr(jobs, "_memory", lambda memory=memory: memory)
        monkeypatch.setattr(jobs, "_cores", lambda cores=cores: cores)
        assert image_jobs() == expected


def test_ninja_runs_as_many_compilers_as_it_is_told(tmp_path: Path) -> None:
    tree = Tree(project(tmp_path))
    compiler_of("cuda")
    compiler_of("hip")
    assert tree.configure("-DTACK_JOBS=3", "-DCMAKE_JOB_POOLS=mine=7").returncode == 0
    rules = (tree.build / "CMakeFiles" / "rules.ninja").read_text()
    rules += (tree.build / "build.ninja").read_text()
    for pool, depth in (("tack_images", 3), ("mine", 7)):
        assert re.search(rf"pool {pool}\n  depth = {depth}\n", rules)
    assert rules.count("pool = tack_images") == 10


# --- what an image says --------------------------------------------------------------------------


@pytest.fixture
def work(tree: Tree, tmp_path: Path) -> Path:
    """A copy of the build folder, to be damaged."""
    return Path(shutil.copytree(tree.build / "tack" / "kernels", tmp_path / "work"))


def rebuild(work: Path) -> None:
    write_bundle(work / "variants.json", {}, work / "_tack" / "manifest.json")


def other_architecture(work: Path) -> None:
    shutil.copy(work / f"images/cuda/sm_90a/{SCALE}", work / f"images/cuda/sm_80/{SCALE}")


def other_processor(work: Path) -> None:
    shutil.copy(work / f"images/hip/gfx942/{SCALE}", work / f"images/hip/gfx90a/{SCALE}")


def other_backend(work: Path) -> None:
    shutil.copy(work / f"images/hip/gfx942/{SCALE}", work / f"images/cuda/sm_80/{SCALE}")


def ptx_as_image(work: Path) -> None:
    shutil.copy(work / f"images/cuda/compute_90/{SCALE}", work / f"images/cuda/sm_90a/{SCALE}")


def image_as_ptx(work: Path) -> None:
    shutil.copy(work / f"images/cuda/sm_90a/{SCALE}", work / f"images/cuda/compute_90/{SCALE}")


def other_kernel(work: Path) -> None:
    folder = work / "images/cuda/sm_80"
    shutil.copy(folder / "imaged-kernels--saxpy", folder / SCALE)


def other_text(work: Path) -> None:
    path = work / f"units/metal/metal3.1/{SCALE}.metal"
    path.write_text(path.read_text().replace("kernel void", "void"))


def no_image(work: Path) -> None:
    (work / f"images/hip/gfx90a/{SCALE}").unlink()


def half_an_image(work: Path) -> None:
    path = work / f"images/cuda/sm_80/{SCALE}"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


SCALE = "imaged-kernels--scale"
HARM = {
    other_architecture: rf"sm_80\.pack: {SCALE}: declared sm_80, and the image is for sm_90a; look",
    other_processor: rf"gfx90a\.pack: {SCALE}: declared gfx90a, and the image is for gfx942; look",
    other_backend: rf"sm_80\.pack: {SCALE}: the image is damaged, or is none: it is for machine",
    ptx_as_image: rf"sm_90a\.pack: {SCALE}: the image is damaged, or is none: it is no ELF",
    image_as_ptx: rf"compute_90\.pack: {SCALE}: the image is damaged, or is none: ",
    other_kernel: rf"sm_80\.pack: {SCALE}: the image has no tack_\w+_scale_aligned, an entry point",
    other_text: rf"metal3\.1\.pack: {SCALE}: the image has no tack_\w+_scale_aligned, an entry",
    no_image: rf"gfx90a/{SCALE}: the image cannot be read: No such file",
    half_an_image: rf"sm_80\.pack: {SCALE}: the image is damaged, or is none: ",
}


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_an_image_that_is_not_what_was_declared_fails_the_build(
    harm: Callable[[Path], None], work: Path
) -> None:
    rebuild(work)
    harm(work)
    with pytest.raises(ToolchainError, match=HARM[harm]):
        rebuild(work)


def test_a_pack_with_another_unit_fails_the_build(work: Path) -> None:
    rebuild(work)
    path = work / "_tack" / "cuda" / "sm_80.pack"
    with path.open("rb") as file:
        pack = read_pack(file, "pack")
        found = {name: pack.read(file, "pack", name) for name in pack.images}
    path.write_bytes(pack_bytes(found | {"stranger": found[SCALE]}))
    with pytest.raises(ToolchainError, match="not the units that were rendered, but for stranger"):
        make_bundle(read_bundle(work / "variants.json"), {}, work / "_tack")


def test_images_that_are_cut_or_changed_are_read_or_refused(tree: Tree) -> None:
    """Reading trusts nothing: any bytes give facts or a sentence."""
    bundle = read_bundle(tree.bundle / "manifest.json")
    for artifact in bundle.artifacts:
        if not artifact.path.endswith(".pack"):
            continue
        with (tree.bundle / artifact.path).open("rb") as file:
            content = read_pack(file, "pack").read(file, "pack", SCALE)
        for damaged in _damaged(content):
            said = refusal(artifact.target, pack_bytes({SCALE: damaged}))
            assert re.match(rf"$|pack: {SCALE}: (declared|the image is)", said)


def refusal(target: Target, pack: bytes) -> str:
    """Why a pack is refused; empty if it is not."""
    try:
        read_images(target, "pack", pack)
    except ToolchainError as error:
        return str(error)
    return ""


def _damaged(content: bytes) -> Iterator[bytes]:
    step = max(1, len(content) // 150)
    for place in range(0, len(content), step):
        yield content[:place]
        changed = bytearray(content)
        changed[place] ^= 0xFF
        yield bytes(changed)
    for place in range(min(64, len(content))):
        changed = bytearray(content)
        changed[place] = 0xFF
        yield bytes(changed)


# --- in a wheel ----------------------------------------------------------------------------------

CALL = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import numpy as np, tack, imagedwheel
x = np.arange(10, dtype=np.float32)
out = np.zeros_like(x)
imagedwheel.saxpy(2.0, x, np.ones_like(x), out)
assert (out == 2 * x + 1).all()
print(json.dumps({
    "explain": str(tack.explain(imagedwheel.saxpy, 2.0, x, x, out)),
    "opened": [name for name in opened if "_tack" in name],
}))
"""


def test_a_wheel_with_packs_answers_calls_on_a_cpu_and_opens_none(tmp_path: Path) -> None:
    compiler_of("cuda")
    compiler_of("hip")
    package = tmp_path / "package"
    write_package("imagedwheel", package)
    manifest = package / "tack-aot.toml"
    targets = EVERY.replace(' "x86-64-v3"', ' "x86-64-v2", "x86-64-v3"')
    text = re.sub(r"cpu = .*", targets, manifest.read_text())
    manifest.write_text(text)
    done = build_wheel(package, tmp_path / "out")
    assert done.returncode == 0, done.stdout
    wheel = only(tmp_path / "out")
    (inspection,) = inspect(wheel)
    assert not inspection.problems
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.endswith(".pack")}
        archive.extractall(tmp_path / "site")
    assert names == {f"imagedwheel/_tack/{path}" for path in PACKS}
    said = json.loads(
        subprocess.run(
            [sys.executable, "-c", CALL],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "TACK_JIT": "forbid"},
        ).stdout
    )
    assert {Path(name).name for name in said["opened"]} == {"manifest.json", "x86-64-v3.so"}
    head, note, *candidates = said["explain"].splitlines()
    assert head.endswith("answered by (f32, f32[:], f32[:], f32[:]) for cpu:x86-64-v3")
    assert "cuda:sm_80, cuda:sm_90a, cuda:compute_90, hip:gfx90a, hip:gfx942, metal:" in note
    assert not any("sm_80" in line for line in candidates)

    pack = tmp_path / "site" / "imagedwheel" / "_tack" / "hip" / "gfx942.pack"
    pack.write_bytes(pack.read_bytes()[:-1] + b"?")
    (inspection,) = inspect(tmp_path / "site")
    assert [problem.path for problem in inspection.problems] == ["hip/gfx942.pack"]


PROVIDER_CALL = """
import numpy as np, tack
from imaged.kernels import scale
try:
    scale(1, np.zeros(3, np.float32))
except tack.errors.NoVariantError as error:
    print(error)
"""


def test_a_provider_without_libraries_for_cpus_is_a_miss_with_a_reason(tmp_path: Path) -> None:
    provider = project(tmp_path, 'metal = ["metal3.0", "metal3.2"]')
    tree = built(Tree(provider))
    assert sorted(packs(tree)) == ["metal/metal3.0.pack", "metal/metal3.2.pack"]
    shutil.copytree(tree.bundle, provider.source / "_tack")
    said = subprocess.run(
        [sys.executable, "-c", PROVIDER_CALL],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "TACK_JIT": "forbid"},
    ).stdout
    assert "metal:metal3.0, metal:metal3.2" in said
