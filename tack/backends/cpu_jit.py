"""What compiles kernels on this machine at a call: LLVM if llvmlite is there, else a C compiler.

Both take the same IR to the same bits, but neither runs what the other made: whoever keeps a
compile keeps the toolchain's ``identity`` with it.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Protocol

from tack.backends.cpu import LoadedLibrary
from tack.model.errors import ToolchainError
from tack.model.targets import Target

__all__ = ["Toolchain", "c_toolchain", "toolchain"]


class Toolchain(Protocol):
    """What compiles the text of a renderer, and loads what it made. Any thread may use it.

    ``str()`` of it is a version for people to read.
    """

    @property
    def dialect(self) -> str:
        """What it compiles: ``renderer_for(target, toolchain.dialect)`` writes it."""
        ...

    def identity(self) -> str:
        """What a compile depends on besides its text and target, by content; for build keys."""
        ...

    def compile(self, text: str, target: Target) -> bytes:
        """The machine code of an assembled text for ``target``. Raises `ToolchainError`."""
        ...

    def load(self, image: bytes) -> LoadedLibrary:
        """The functions of a compile of this toolchain. Raises `tack.backends.cpu.LoadError`.

        Whoever kept ``image`` compares its digest first: a damaged one may end the process.
        """
        ...


@functools.cache  # an error is not kept, so that what is installed meanwhile is found
def toolchain() -> Toolchain:
    """The toolchain of this process, the same one at every call.

    `ToolchainError` names both ways out where there is none.
    """
    from tack.backends import cpu_llvm

    llvm = cpu_llvm.find()
    if llvm is not None:
        return llvm
    compiler, way = _c_compiler()
    if compiler is not None:
        return compiler
    raise ToolchainError(
        "a kernel that was not prebuilt is compiled by llvmlite 0.45 or newer, or by a C compiler, "
        f"and there is neither: pip install 'tack-aot[jit]', or {way}"
    )


@functools.cache
def c_toolchain() -> Toolchain:
    """As `toolchain`, of what compiles C: for source kernels.

    `ToolchainError` says what to install where there is none.
    """
    compiler, way = _c_compiler()
    if compiler is not None:
        return compiler
    raise ToolchainError(
        "a source kernel that was not prebuilt is compiled by a C compiler, whatever else there "
        f"is, and there is none: {way}, or ship a prebuilt variant"
    )


def _c_compiler() -> tuple[Toolchain | None, str]:
    """The C compiler, or None and what to do for one."""
    from tack.backends import cpu_cc

    compiler = cpu_cc.find()
    if compiler is None:
        return None, "install gcc or clang"
    if find_spec("jinja2") is None:
        return None, f"install jinja2, with which {compiler} will do"
    return compiler, ""
