"""The LLVM dialect: textual IR for the CPU, which the JIT compiles without a C compiler.

It is written from the same IR as C, with the same entry points, and means the same bits. llvmlite's
builders write it, and are imported when the first variant is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tack.ir.nodes import IRFunction
from tack.model.errors import ToolchainError
from tack.model.launch import Launch
from tack.render.llvm_dialect import (
    CLEAR,
    DECLARATION_OF_CLEAR,
    DECLARATION_OF_PRINTF,
    FUNCTIONS,
    NATIVE,
    PRINTF,
    declaration,
)
from tack.render.renderer import Renderer
from tack.render.source import Source

__all__ = ["assemble", "render", "renderer"]


def renderer() -> Renderer:
    """The renderer of LLVM IR for the CPU, without a compiler."""
    return Renderer(
        render=render,
        assemble=assemble,
        suffix=".ll",
        needs="llvmlite (pip install 'tack-aot[jit]')",
        native_math=frozenset(NATIVE),
    )


def render(function: IRFunction, launch: Launch, symbol: str) -> str:
    """The functions of one variant; ``function`` is packed, ``symbol`` names the loop."""
    try:
        from tack.render.llvm_functions import functions_of
    except ModuleNotFoundError as error:
        if error.name != "llvmlite":
            raise
        raise ToolchainError(
            "rendering LLVM IR needs llvmlite; install it with: pip install 'tack-aot[jit]'"
        ) from None
    return functions_of(function, launch, symbol)


def assemble(unit: str, sources: Sequence[Source]) -> str:
    """The module of a unit, for any CPU: whoever compiles it says which."""
    return "\n".join(_parts(unit, sources))


def _parts(unit: str, sources: Sequence[Source]) -> Iterator[str]:
    yield f"; Kernels of unit {unit}, written by tack.\n"
    for key, name in FUNCTIONS.items():
        if any(f'@"{name}"(' in source.text for source in sources):
            yield declaration(*key)
    if any(f'@"{CLEAR}"(' in source.text for source in sources):
        yield DECLARATION_OF_CLEAR
    if any(f'@"{PRINTF}"(' in source.text for source in sources):
        yield DECLARATION_OF_PRINTF
    for source in sources:
        yield f"\n; {source.title}\n{source.text}"
    for source in sources:
        yield f"; {source.title}\n; {source.source_key}"
    yield ""
