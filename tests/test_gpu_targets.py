"""GPU targets: the table holds what compilers know, and says where code runs as the makers do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import target_table
from generator import load_module
from gpu_twins import (
    compile_image,
    compile_metal,
    compile_nvrtc,
    compiler_of,
    nvcc_targets,
    nvrtc_capabilities,
    zig_processors,
)
from hypothesis import given
from hypothesis import strategies as st

from tack.aot.images import read_image
from tack.compile import assemble, generate
from tack.errors import ToolchainError
from tack.model.gpus import GPUS
from tack.model.launch import FLAVOURS
from tack.model.signature import Signature
from tack.model.targets import CPU_LEVELS, GPU_BACKENDS, Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for

# With each type whose conversions depend on the target.
KERNEL = """
import tack

@tack.kernel
def scaled(a, x, half, brain, three, two, out):
    for i in range(out.shape[0]):
        half[i] = x[i] * half[i]
        brain[i] = x[i] * brain[i]
        three[i] = x[i] * three[i]
        two[i] = x[i] * two[i]
        out[i] = a * x[i] + out[i]
"""
SIGNATURE = "f32, f32[:], f16[:], bf16[:], f8e4m3[:], f8e5m2[:], f32[:]"

TARGETS = [Target(backend, arch) for backend, gpus in GPUS.items() for arch in gpus]
CUDA, HIP = ([t for t in TARGETS if t.backend == backend] for backend in ("cuda", "hip"))


def test_the_backends_of_gpus_are_those_that_have_architectures() -> None:
    assert tuple(GPUS) == GPU_BACKENDS


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Target -> a small unit."""
    kernel = load_module(KERNEL, tmp_path_factory.mktemp("kernel")).scaled
    signature = Signature.parse(SIGNATURE)
    found = {}
    for target in TARGETS:
        renderer = renderer_for(target)
        source = generate(Variant(kernel.definition, signature, target), renderer)
        found[str(target)] = assemble("targets", [source], renderer)
    return found


def written(text: dict[str, str], target: Target, folder: Path) -> Path:
    unit = folder / f"unit{renderer_for(target).suffix}"
    unit.write_text(text[str(target)], encoding="utf-8")
    return unit


@pytest.mark.parametrize("target", CUDA, ids=str)
def test_nvcc_and_nvrtc_make_code_for_each_cuda_target(
    target: Target, text: dict[str, str], tmp_path: Path
) -> None:
    unit, output = written(text, target, tmp_path), tmp_path / "output"
    compile_image(unit, target, output)
    for made in (output.read_bytes(), compile_nvrtc(unit, target.arch)):
        image = read_image(target, "image", made)
        assert {name.rpartition("_")[2] for name in image.entries} == set(FLAVOURS)
        assert {entry.block for entry in image.entries.values()} == {256}


def test_an_image_for_another_target_is_told_apart(text: dict[str, str], tmp_path: Path) -> None:
    names = ("sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "compute_90", "compute_90a")
    targets = [*(Target("cuda", arch) for arch in names), *HIP[:3]]
    for made_for in targets:
        compile_image(written(text, made_for, tmp_path), made_for, tmp_path / "image")
        content = (tmp_path / "image").read_bytes()
        for target in targets:
            if target == made_for:
                assert read_image(target, "image", content).arch == target.arch
            else:
                with pytest.raises(
                    ToolchainError, match=r"^image: (declared|the image is damaged)"
                ):
                    read_image(target, "image", content)


SHARED = """
{include}
extern "C" __global__ __launch_bounds__(96) void first(double *x, const double *y)
{{
  __shared__ double kept[24];
  kept[threadIdx.x % 24] = x[threadIdx.x] / y[threadIdx.x];
  {barrier};
  x[threadIdx.x] = kept[(threadIdx.x + 1) % 24];
}}

extern "C" __global__ __launch_bounds__(64) void second(int *x)
{{
  x[threadIdx.x] += 1;
}}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120f"])
def test_what_an_entry_point_takes_is_what_ptxas_says(arch: str, tmp_path: Path) -> None:
    target, unit = Target("cuda", arch), tmp_path / "unit.cu"
    unit.write_text(SHARED.format(include="", barrier="__syncthreads()"))
    said = compile_image(unit, target, tmp_path / "image", "-Xptxas", "-v")
    found = read_image(target, "image", (tmp_path / "image").read_bytes()).entries
    pattern = r"entry function '(\w+)'.*?Used (\d+) registers(?:[^\n]*?(\d+) bytes smem)?"
    expected = {
        name: (int(registers), int(shared or 0))
        for name, registers, shared in re.findall(pattern, said, re.DOTALL)
    }
    assert {n: (e.registers, e.shared) for n, e in found.items()} == expected
    assert (expected["first"][1], expected["second"][1]) == (192, 0)
    assert {n: e.block for n, e in found.items()} == {"first": 96, "second": 64}


@pytest.mark.parametrize("arch", ["gfx906", "gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_what_an_entry_point_takes_is_what_the_assembly_says(arch: str, tmp_path: Path) -> None:
    target, unit = Target("hip", arch), tmp_path / "unit.hip"
    barrier = "__builtin_amdgcn_s_barrier()"
    unit.write_text(SHARED.format(include="#include <hip/hip_runtime.h>", barrier=barrier))
    compile_image(unit, target, tmp_path / "image")
    found = read_image(target, "image", (tmp_path / "image").read_bytes()).entries
    device = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-O3"]
    command = [*compiler_of("hip").version_command[:-1], *device, "-S", "-o", "-"]
    text = subprocess.run(
        [*command, tmp_path / "image.bc"], check=True, capture_output=True, text=True
    ).stdout
    # What the assembler is told to reserve, not the metadata that the image holds.
    directives = r"\.amdhsa_kernel (\w+)\n\s*\.amdhsa_group_segment_fixed_size (\d+)"
    shared = {name: int(size) for name, size in re.findall(directives, text)}
    counts = re.findall(r"; TotalNumVgprs: (\d+)", text) or re.findall(r"; NumVgprs: (\d+)", text)
    assert {n: (e.block, e.shared) for n, e in found.items()} == {
        "first": (96, shared["first"]),
        "second": (64, 0),
    }
    assert shared == {"first": 192, "second": 0}
    assert [e.registers for e in found.values()] == list(map(int, counts))


@pytest.mark.parametrize("target", HIP, ids=str)
def test_clang_makes_code_for_each_hip_target(
    target: Target, text: dict[str, str], tmp_path: Path
) -> None:
    output = tmp_path / "output"
    compile_image(written(text, target, tmp_path), target, output)
    image = read_image(target, "image", output.read_bytes())
    assert {name.rpartition("_")[2] for name in image.entries} == set(FLAVOURS)
    assert {entry.block for entry in image.entries.values()} == {256}


def test_metal_text_compiles(text: dict[str, str], tmp_path: Path) -> None:
    compile_metal(written(text, Target("metal", "metal3.0"), tmp_path), tmp_path / "output")


def number(arch: str) -> int:
    return int(arch.partition("_")[2].rstrip("af"))


def test_every_target_that_nvcc_lists_is_there() -> None:
    assert {arch for arch in nvcc_targets() if number(arch) >= 75} <= set(GPUS["cuda"])


def test_every_capability_that_nvrtc_lists_is_there() -> None:
    assert {c for c in nvrtc_capabilities() if c >= 75} <= set(map(number, GPUS["cuda"]))


def test_every_processor_that_clang_lists_from_gfx906_to_gfx1201_is_there() -> None:
    def version(name: str) -> tuple[int, int]:
        return int(name[3:-2]), int(name[-2:], 16)

    known = zig_processors()
    exact = {name for name in known if "-" not in name}
    inside = {n for n in exact if version("gfx906") <= version(n) <= version("gfx1201")}
    assert inside | (known - exact) == set(GPUS["hip"])


DEVICES = {
    "cuda": "75 80 86 87 88 89 90 100 103 110 120 121",
    "hip": """gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx942 gfx950 gfx1010 gfx1011
        gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101
        gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201""",
    "metal": "metal3.0 metal3.1 metal3.2 metal4.0 metal4.1",
}

# Written from the documents that tack.model.gpus names, not from its code.
RUN = {
    "cuda": {
        "sm_75": "75",
        "sm_80": "80 86 89",  # 8.7 is Tegra, which runs its own images only
        "sm_86": "86 89",
        "sm_87": "87",
        "sm_88": "88",
        "sm_89": "89",
        "sm_90": "90",
        "sm_90a": "90",
        "sm_100": "100 103",
        "sm_100a": "100",
        "sm_100f": "100 103",
        "sm_103": "103",
        "sm_103a": "103",
        "sm_103f": "103",
        "sm_110": "110",
        "sm_110a": "110",
        "sm_110f": "110",
        "sm_120": "120 121",
        "sm_120a": "120",
        "sm_120f": "120 121",
        "sm_121": "121",
        "sm_121a": "121",
        "sm_121f": "121",
        "compute_75": "75 80 86 87 88 89 90 100 103 110 120 121",
        "compute_80": "80 86 87 88 89 90 100 103 110 120 121",
        "compute_86": "86 87 88 89 90 100 103 110 120 121",
        "compute_87": "87 88 89 90 100 103 110 120 121",
        "compute_88": "88 89 90 100 103 110 120 121",
        "compute_89": "89 90 100 103 110 120 121",
        "compute_90": "90 100 103 110 120 121",
        "compute_90a": "90",
        "compute_100": "100 103 110 120 121",
        "compute_100a": "100",
        "compute_100f": "100 103",
        "compute_103": "103 110 120 121",
        "compute_103a": "103",
        "compute_103f": "103",
        "compute_110": "110 120 121",
        "compute_110a": "110",
        "compute_110f": "110",
        "compute_120": "120 121",
        "compute_120a": "120",
        "compute_120f": "120 121",
        "compute_121": "121",
        "compute_121a": "121",
        "compute_121f": "121",
    },
    "hip": {
        "gfx906": "gfx906",
        "gfx908": "gfx908",
        "gfx909": "gfx909",
        "gfx90a": "gfx90a",
        "gfx90c": "gfx90c",
        "gfx942": "gfx942",
        "gfx950": "gfx950",
        "gfx1010": "gfx1010",
        "gfx1011": "gfx1011",
        "gfx1012": "gfx1012",
        "gfx1013": "gfx1013",
        "gfx1030": "gfx1030",
        "gfx1031": "gfx1031",
        "gfx1032": "gfx1032",
        "gfx1033": "gfx1033",
        "gfx1034": "gfx1034",
        "gfx1035": "gfx1035",
        "gfx1036": "gfx1036",
        "gfx1100": "gfx1100",
        "gfx1101": "gfx1101",
        "gfx1102": "gfx1102",
        "gfx1103": "gfx1103",
        "gfx1150": "gfx1150",
        "gfx1151": "gfx1151",
        "gfx1152": "gfx1152",
        "gfx1153": "gfx1153",
        "gfx1200": "gfx1200",
        "gfx1201": "gfx1201",
        "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
        "gfx9-4-generic": "gfx942 gfx950",
        "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
        "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
        "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
        "gfx12-generic": "gfx1200 gfx1201",
    },
    "metal": {
        "metal3.0": "metal3.0 metal3.1 metal3.2 metal4.0 metal4.1",
        "metal3.1": "metal3.1 metal3.2 metal4.0 metal4.1",
        "metal3.2": "metal3.2 metal4.0 metal4.1",
        "metal4.0": "metal4.0 metal4.1",
        "metal4.1": "metal4.1",
    },
}


def named(backend: str, devices: str) -> list[str]:
    prefix = "sm_" if backend == "cuda" else ""
    return [f"{prefix}{device}" for device in devices.split()]


EVERY_DEVICE = {backend: named(backend, devices) for backend, devices in DEVICES.items()}
NOT_DEVICES = [  # of its backend, or of none
    *(f"sm_{n}{suffix}" for n in (90, 100, 120) for suffix in "af"),
    *("compute_90", "gfx11-generic", "gfx", "metal", "metal3.x", "sm_", "sm", "90", "", "sm_90 "),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_code_runs_where_the_documents_say(target: Target) -> None:
    backend, arch = target.backend, target.arch
    runs = [device for device in EVERY_DEVICE[backend] if target.runs_on(device)]
    assert runs == named(backend, RUN[backend][arch])


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_code_runs_on_no_device_of_another_backend_and_on_no_target(target: Target) -> None:
    others = [
        d for backend, found in EVERY_DEVICE.items() for d in found if backend != target.backend
    ]
    for device in (*others, *CPU_LEVELS, *NOT_DEVICES):
        assert not target.runs_on(device)
    assert not any(Target("cpu", level).runs_on(target.arch) for level in CPU_LEVELS)


def test_only_what_is_compiled_where_it_is_called_runs_on_later_devices() -> None:
    later = {"cuda": "sm_130", "hip": "gfx1300", "metal": "metal5.0"}
    ptx = [f"compute_{capability}" for capability in DEVICES["cuda"].split()]
    found = [t.arch for t in TARGETS if t.runs_on(later[t.backend])]
    assert found == [*ptx, *GPUS["metal"]]
    assert not Target("cuda", "sm_120").runs_on("sm_125")
    assert not Target("cuda", "sm_100f").runs_on("sm_109")


def family(device: str) -> str:
    """The device's backend and major version."""
    return device[:-1] if device.startswith("sm_") else device.partition(".")[0][:-2]


@given(st.sampled_from(sorted(EVERY_DEVICE)), st.data())
def test_running_on_is_reflexive_and_transitive(backend: str, data: st.DataObject) -> None:
    exact = [device for device in EVERY_DEVICE[backend] if device in GPUS[backend]]
    one, two, three = (data.draw(st.sampled_from(exact)) for _ in range(3))
    first, second = Target(backend, one), Target(backend, two)
    assert first.runs_on(one)
    if first.runs_on(two) and second.runs_on(three):
        assert first.runs_on(three)
    if first.runs_on(two) and second.runs_on(one):
        assert one == two
    if backend == "cuda" and first.runs_on(two):
        assert family(one) == family(two)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("cuda:sm_91", "cuda:sm_90"),
        ("cuda:SM_90", "cuda:sm_90"),
        ("cuda:sm90", "cuda:sm_90"),
        ("cuda:90", "cuda:sm_90"),
        ("cuda:compute90", "cuda:compute_90"),
        ("cuda:sm_80a", "cuda:sm_80"),
        ("cuda:sm_90f", "cuda:sm_90"),
        ("hip:gfx9a", "hip:gfx90a"),
        ("hip:gfx9generic", "hip:gfx9-generic"),
        ("hip:942", "hip:gfx942"),
        ("metal:3.1", "metal:metal3.1"),
        ("metal:metal3..1", "metal:metal3.1"),
        ("metal:metal5.0", "metal:metal4.0"),
        ("sm_90", "cuda:sm_90"),
        ("gfx942", "hip:gfx942"),
        ("metal3.1", "metal:metal3.1"),
        ("rocm:gfx942", "hip:gfx942"),
        ("cude:sm_90a", "cuda:sm_90a"),
        ("x86-64-v3", "cpu:x86-64-v3"),
    ],
)
def test_an_unknown_target_is_refused_with_the_nearest_known_one(text: str, near: str) -> None:
    with pytest.raises(ValueError, match="target") as error:
        Target.parse(text)
    assert str(error.value).startswith(f"target {text!r}")
    assert str(error.value).endswith(f"did you mean {near!r}?")


@pytest.mark.parametrize(
    "text", ["", ":", "cuda", "cuda:", "cuda:sm_90:", "cuda: sm_90", "Cuda:sm_90"]
)
def test_a_text_that_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^target {text!r}"):
        Target.parse(text)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_target_parses_back(target: Target) -> None:
    assert Target.parse(str(target)) == target


def test_the_table_of_the_docs_is_made_from_the_data() -> None:
    page = target_table.PAGE.read_text(encoding="utf-8")
    assert page == target_table.page(), "run tests/target_table.py"
