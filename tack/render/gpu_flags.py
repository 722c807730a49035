"""How the text of GPU dialects becomes images: flags and commands, for wheels and for tests.

An image is what a driver loads: a cubin or PTX, a linked code object. Metal has none: what is
shipped is the text. Paths are relative wherever commands run, so that none gets into an image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["CUDA_FLAGS", "HIP_FLAGS", "NVCC_FLAGS", "Compiler"]

Command = tuple[str, ...]

CUDA_FLAGS: Final = ("-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false")
"""What keeps CUDA's floats strict, for nvcc and NVRTC."""

NVCC_FLAGS: Final = ("-std=c++17", *CUDA_FLAGS)

HIP_FLAGS: Final = (
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fwrapv",
    "-fno-strict-aliasing",
)
"""What keeps HIP's arithmetic strict; those of C (`tack.render.c_flags`) for a clang."""

_BARE: Final = ("-nogpulib", "-nogpuinc", "-fms-extensions")
"""For a clang that has no ROCm beside it: the text needs none of its libraries, and a header of
ours stands in for ROCm's."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """What compiles images: the ``kind`` of words that it understands, and its ``program``.

    Kinds are ``nvcc``, ``zig`` (the program that PyPI's ziglang brings), and of ROCm ``hipcc`` and
    ``clang``.
    """

    kind: str
    program: str

    @property
    def version_command(self) -> Command:
        """The command by which it says its version."""
        return (self.program, *_FIRST[self.kind], "--version")

    def commands(
        self, arch: str, source: str, image: str, *, include: str, flags: Sequence[str] = ()
    ) -> tuple[Command, ...]:
        """The commands, one after the other, that make ``image`` from ``source``.

        ``flags`` come before those that keep arithmetic strict. ``include`` is the folder of
        ``hip/hip_runtime.h`` where there is no ROCm. What lies between is beside the image.
        """
        first = (self.program, *_FIRST[self.kind], *flags)
        rest = _LAST[self.kind](arch, source, image, include)
        return ((*first, *rest[0]), *((self.program, *words) for words in rest[1:]))


_FIRST: Final[dict[str, Command]] = {"nvcc": (), "zig": ("clang",), "hipcc": (), "clang": ()}
"""Kind -> how a compile begins."""


def _nvcc(arch: str, source: str, image: str, _include: str) -> tuple[Command, ...]:
    form = "-ptx" if arch.startswith("compute_") else "-cubin"
    return ((form, f"-arch={arch}", *NVCC_FLAGS, "-o", image, source),)


def _zig(arch: str, source: str, image: str, include: str) -> tuple[Command, ...]:
    # Its clang does not find its own linker, so device code is compiled and linked step by step.
    code, object_ = f"{image}.bc", f"{image}.o"
    device = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-O3")
    return (
        (*_DEVICE, *_hip(arch), *_BARE, f"-I{include}", "-c", "-emit-llvm", "-o", code, source),
        ("clang", *device, "-c", "-o", object_, code),
        ("ld.lld", "-shared", "-o", image, object_),
    )


def _hipcc(arch: str, source: str, image: str, _include: str) -> tuple[Command, ...]:
    return (("--genco", *_hip(arch), *_PLAIN, "-o", image, source),)


def _clang(arch: str, source: str, image: str, _include: str) -> tuple[Command, ...]:
    return ((*_DEVICE, *_hip(arch), *_PLAIN, "-o", image, source),)


_DEVICE: Final = ("--offload-device-only",)
_PLAIN: Final = ("--no-gpu-bundle-output",)
"""Without it, code objects come in a container for several architectures."""


def _hip(arch: str) -> Command:
    # Without a CUID: it is a digest of the path, and would be a symbol of the image.
    return ("-x", "hip", f"--offload-arch={arch}", "-fuse-cuid=none", *HIP_FLAGS)


_LAST: Final[dict[str, Callable[[str, str, str, str], tuple[Command, ...]]]] = {
    "nvcc": _nvcc,
    "zig": _zig,
    "hipcc": _hipcc,
    "clang": _clang,
}
"""Kind -> what follows in the first command, and the words of the others."""
