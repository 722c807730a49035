"""Compiles the text of GPU dialects for the CPU, and calls it as a prebuilt CPU kernel is called.

The very text that ships is compiled, under small headers of ours (``gpu_headers/``) that run the
threads of a block as fibers. A driver beside it has the entry points of the CPU's ABI, so that the
launcher, its host program and its checks of arguments are the ones that users have.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import pytest
from harness import differences, levels, run_kernel
from twins import Pair, toolchains

from tack import _core
from tack.aot.compilers import find_compiler
from tack.compile import assemble, generate
from tack.errors import UnsupportedError
from tack.model.capabilities import lacking
from tack.model.targets import Target
from tack.render.gpu_flags import CUDA_FLAGS, Compiler
from tack.render.renderer import renderer_for
from tack.render.source import Source

__all__ = [
    "COMPILED",
    "DIALECTS",
    "Emulated",
    "compile_image",
    "compile_metal",
    "compile_nvrtc",
    "compiler_of",
    "disagreements",
    "emulated_disagreements",
    "llvm_of_hip",
    "memory_after",
    "nvcc_targets",
    "nvrtc_capabilities",
    "zig_processors",
]

HEADERS: Final = Path(__file__).parent / "gpu_headers"

DIALECTS: Final = {
    "cuda": Target("cuda", "sm_90"),
    "hip": Target("hip", "gfx942"),
    "metal": Target("metal", "metal3.1"),
}
"""Dialect -> a target that is rendered in it."""

COMPILED: Final = tuple(
    Target(backend, arch)
    for backend, archs in {
        "cuda": ("sm_80", "sm_90a", "sm_100"),
        "hip": ("gfx90a", "gfx942", "gfx1100", "gfx1201"),
        "metal": ("metal3.1",),
    }.items()
    for arch in archs
)
"""The targets that images are made for."""

_STRICT: Final = ("-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-Wall", "-Werror")
_QUIET: Final = tuple(
    f"-Wno-{warning}"
    for warning in (
        "unused-parameter",
        "unused-function",
        "unused-but-set-variable",
        "tautological-compare",
        "bool-compare",
        "bool-operation",
        "type-limits",
        "sign-compare",
    )
)
"""Warnings about what the author of a kernel wrote."""

_CLANG: Final = (*_QUIET, "-Wno-self-assign", "-Wno-unknown-warning-option")


def missing(backend: str, reason: str) -> NoReturn:
    """Skips the test by name; fails it where ``TACK_TEST_REQUIRE`` lists the backend."""
    if backend in os.environ.get("TACK_TEST_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)


def need(tool: str, *, of: str) -> str:
    """The path of a program that checks of a backend need."""
    found = shutil.which(tool)
    return found or missing(of, f"{tool} is not installed, which checks of {of} need")


def _run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]} fails:\n{done.stderr[:6000]}{done.stdout[:2000]}"
    return done.stdout + done.stderr


class Emulated:
    """A unit of a GPU dialect as a library for the CPU."""

    def __init__(self, sources: Sequence[Source], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        target = sources[0].variant.target
        renderer = renderer_for(target)
        unit = folder / f"unit{renderer.suffix}"
        unit.write_text(assemble("test", sources, renderer), encoding="utf-8")
        driver = folder / "driver.cpp"
        driver.write_text(_driver(target.backend, sources, unit), encoding="utf-8")
        library = folder / f"{target.backend}.so"
        with as_file(files("tack.templates") / "c") as abi:
            include = [f"-I{HEADERS / 'host'}", f"-I{abi}"]
            common = ["-std=c++20", "-O1", "-fPIC", *_STRICT, *_QUIET, *include]
            if target.backend == "metal":
                clang = need("clang-16", of="metal")
                compile_metal(unit, folder / "unit.o")
                _run(
                    clang,
                    *common,
                    *_CLANG,
                    "-shared",
                    "-o",
                    library,
                    driver,
                    folder / "unit.o",
                    "-lstdc++",
                    "-lm",
                )
            else:
                # CUDA has no -fwrapv: an overflow would be undefined, and here ends the process.
                trap = [
                    "-fsanitize=signed-integer-overflow,shift",
                    "-fsanitize-undefined-trap-on-error",
                ]
                wrap = ["-fwrapv"] if target.backend == "hip" else ["-fno-wrapv", *trap]
                _run("g++", *common, *wrap, "-shared", "-o", library, driver)
        self._library = _core.Library(library)

    def symbol(self, name: str) -> int:
        """The address of the CPU's entry point for an entry point of the unit."""
        return self._library.symbol(f"drive_{name}")


def _driver(backend: str, sources: Sequence[Source], unit: Path) -> str:
    write = _metal_entry if backend == "metal" else _cuda_entry
    entries = [write(symbol, source) for source in sources for _, symbol in source.launch.entries]
    head = {
        "cuda": f'#include "cuda.h"\n#include "drive.h"\n#include "{unit}"\n',
        "hip": f'#include "drive.h"\n#include "{unit}"\n',
        "metal": (
            '#include "drive.h"\ntypedef unsigned int uint3 __attribute__((ext_vector_type(3)));\n'
        ),
    }[backend]
    return head + "".join(entries)


_ENTRY: Final = """
extern "C" __attribute__((visibility("default")))
void drive_{symbol}(const tack_context *, const tack_slot *args, int64_t, int64_t)
{{
  [[maybe_unused]] tack_slot values[{size}] = {{{values}}}, pointers[{size}] = {{{pointers}}};
{body}
}}
"""


def _entry(symbol: str, source: Source, body: str) -> str:
    slots = list(enumerate(source.launch.slots))
    pointers = [number for number, slot in slots if slot[0] == "pointer"]
    values = [number for number, slot in slots if slot[0] != "pointer"]
    return _ENTRY.format(
        symbol=symbol,
        size=len(slots) + 1,
        values=", ".join(f"args[{number}]" for number in values),
        pointers=", ".join(f"args[{number}]" for number in pointers),
        body=body,
    )


def _cuda_entry(symbol: str, source: Source) -> str:
    count = sum(slot[0] == "pointer" for slot in source.launch.slots)
    parameters = ", ".join([*(f"&pointers[{k}]" for k in range(count)), "values"])
    body = (
        f"  void *parameters[] = {{{parameters}}};\n"
        f"  tack_emulation::launch({source.launch.loops}, {_block(source)}, {symbol}, parameters);"
    )
    return _entry(symbol, source, body)


def _block(source: Source) -> str:
    """The threads of a block, as C++: those of a workgroup, or few of them."""
    sizes = source.launch.group[::-1] or (8, 2, 1)[: source.launch.loops]
    return f"tack_index{{{', '.join(map(str, (*sizes, 1, 1)[:3]))}}}"


_LANES: Final = """    const uint3 thread = {threadIdx.x, threadIdx.y, threadIdx.z};
    const uint3 group = {blockIdx.x, blockIdx.y, blockIdx.z};
    const uint3 groups = {gridDim.x, gridDim.y, gridDim.z};
"""
_THREADS: Final = """    const uint3 thread = {blockIdx.x * blockDim.x + threadIdx.x,
                          blockIdx.y * blockDim.y + threadIdx.y,
                          blockIdx.z * blockDim.z + threadIdx.z};
    const uint3 threads = {gridDim.x * blockDim.x, gridDim.y * blockDim.y,
                           gridDim.z * blockDim.z};
"""


def _metal_entry(symbol: str, source: Source) -> str:
    """Metal's numbers of threads, by the attributes of its parameters, from CUDA's."""
    launch = source.launch
    has_arrays = any(slot[0] == "pointer" for slot in launch.slots)
    given = ["pointers"] * has_arrays + ["values"] + ["memory"] * (launch.shared > 0)
    numbers = ["thread", "group", "groups"] if launch.group else ["thread", "threads"]
    kinds = ", ".join(["void *"] * len(given) + ["uint3"] * len(numbers))
    declaration = f'extern "C" void {symbol}({kinds});'
    body = (
        f"  [[maybe_unused]] alignas(16) static char memory[{launch.shared or 1}];\n"
        f"  constexpr int axes = {launch.loops};\n"
        "  using namespace tack_emulation;\n"
        f"  run_grid(grid_of(axes), {_block(source)}, [&] {{\n"
        + (_LANES if launch.group else _THREADS)
        + f"    {symbol}({', '.join([*given, *numbers])});\n"
        "  });"
    )
    return declaration + _entry(symbol, source, body)


def compile_metal(unit: Path, output: Path) -> None:
    """An object for the CPU: Metal is compiled as C++ for OpenCL, which has its address spaces."""
    mode = ("-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", f"-I{HEADERS / 'metal'}")
    flags = ("-O1", "-fPIC", "-fno-wrapv", *_STRICT, *_CLANG)
    _run(need("clang-16", of="metal"), *mode, *flags, "-c", unit, "-o", output)


def compiler_of(backend: str) -> Compiler:
    """The compiler that builds images of a backend."""
    return find_compiler(backend) or missing(backend, f"{backend} has no compiler here")


def nvcc_targets() -> set[str]:
    """Every target that nvcc knows, such as ``sm_90a`` and ``compute_90a``."""
    said = _run(compiler_of("cuda").program, "--help")
    return set(re.findall(r"'((?:sm|compute)_\d+[a-z]?)'", said))


def compile_image(unit: Path, target: Target, output: Path, *flags: str) -> str:
    """An image as builds make it; what its compiler said. Every warning is an error."""
    compiler = compiler_of(target.backend)
    strict = {"cuda": ("-Werror", "all-warnings"), "hip": ("-Wall", "-Werror", *_CLANG)}
    said = ""
    with as_file(files("tack.templates") / "hip" / "include") as include:
        for command in compiler.commands(
            target.arch,
            str(unit),
            str(output),
            include=str(include),
            flags=[*strict[target.backend], *flags],
        ):
            said += _run(*command)
    return said


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        missing("cuda", "cuda-bindings is not installed, which checks of cuda need")
    return nvrtc


def nvrtc_capabilities() -> set[int]:
    """The compute capabilities that NVRTC knows, such as 90."""
    _, found = _nvrtc().nvrtcGetSupportedArchs()
    return set(found)


def compile_nvrtc(unit: Path, arch: str) -> bytes:
    """What NVRTC, which needs no driver, makes for a CUDA target: an image, or PTX."""
    nvrtc = _nvrtc()
    text = unit.read_bytes()
    _, program = nvrtc.nvrtcCreateProgram(text, unit.name.encode(), 0, [], [])
    options = [f"-arch={arch}".encode(), *(flag.encode() for flag in CUDA_FLAGS)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * (size + 1)  # never the one byte that all of Python shares, for it is written to
    nvrtc.nvrtcGetProgramLog(program, log)
    assert int(status) == 0, log.decode()
    assert not log.strip(b" \0\n"), log.decode()
    form = "PTX" if arch.startswith("compute_") else "CUBIN"
    _, size = getattr(nvrtc, f"nvrtcGet{form}Size")(program)
    made = b" " * size
    getattr(nvrtc, f"nvrtcGet{form}")(program, made)
    nvrtc.nvrtcDestroyProgram(program)
    return made


def zig_processors() -> set[str]:
    """The processors of AMD that the clang in PyPI's ziglang knows by their numbers."""
    clang = compiler_of("hip").version_command[:-1]
    listed = _run(*clang, "-target", "amdgcn-amd-amdhsa", "--print-supported-cpus")
    return set(re.findall(r"^\s+(gfx\S+)$", listed, re.MULTILINE))


def llvm_of_hip(unit: Path, arch: str) -> str:
    """The LLVM IR of HIP text after optimization, by the clang in PyPI's ziglang."""
    with as_file(files("tack.templates") / "hip" / "include") as include:
        first, *_ = compiler_of("hip").commands(arch, str(unit), "", include=str(include))
        words = ["-S" if word == "-c" else word for word in first]
        words[words.index("-o") + 1] = "-"
        return _run(*words)


def emulated_disagreements(pairs: Sequence[Pair], dialect: str, folder: Path) -> dict[int, str]:
    """The pairs whose runs in a dialect, on the CPU, differ in bits from C, and where."""
    return disagreements(pairs, DIALECTS[dialect], lambda sources: Emulated(sources, folder))


def disagreements(
    pairs: Sequence[Pair], target: Target, load: Callable[[Sequence[Source]], Any]
) -> dict[int, str]:
    """The pairs whose runs for a target differ in bits from C, and where.

    Those that the target cannot compute are left out.
    """
    sources: dict[int, tuple[Source, Source]] = {}
    for number, pair in enumerate(pairs):
        variant = pair.variant(target)
        if lacking(target, variant.signature):
            continue
        with contextlib.suppress(UnsupportedError):
            sources[number] = pair.source("c"), generate(variant, renderer_for(target))
    assert sources, "the target computes some of them"
    toolchain, _ = toolchains()
    unique = {source.title: (source, other) for source, other in sources.values()}
    cpu = Target("cpu", levels()[-1])
    text = assemble("reference", [source for source, _ in unique.values()], renderer_for(cpu))
    reference = toolchain.load(toolchain.compile(text, cpu))
    library = load([other for _, other in unique.values()])
    found: dict[int, str] = {}
    for number, (source, other) in sources.items():
        pair = pairs[number]
        if any(not each.flags.aligned for each in _arrays(pair)):
            continue  # the launcher refuses it
        expected = memory_after(pair, source, reference, noalias=False)
        for noalias in (False, True):
            memory = memory_after(pair, other, library, noalias=noalias)
            differ = differences(expected, memory)
            if differ:
                found[number] = f"{pair.signature}: c, and {target}:\n{differ}"
    return found


def _arrays(pair: Pair) -> list[np.ndarray[Any, Any]]:
    return [each for each in pair.bind(pair.memory()) if isinstance(each, np.ndarray)]


def memory_after(pair: Pair, source: Source, library: Any, *, noalias: bool) -> list[Any]:
    """The buffers of a pair after its kernel has run, called through the launcher."""
    memory = pair.memory()
    if hasattr(library, "memory"):
        library.memory = [each for each in memory if isinstance(each, np.ndarray)]
    run_kernel(pair.kernel, source, library, pair.bind(memory), noalias=noalias)
    return memory
