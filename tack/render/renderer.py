"""What a target can do and how its source is written: the `Renderer` record.

A field arrives with its consumer. Capabilities are data; none is guessed from a name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Final, Protocol

from tack.ir.nodes import ATOMIC_DTYPES, IRFunction
from tack.model.capabilities import capabilities_of
from tack.model.launch import Launch
from tack.model.spelling import advice
from tack.model.targets import Target
from tack.model.tensor_cores import TensorCore, tensor_cores_of
from tack.render.source import Source

__all__ = ["Assemble", "Render", "Renderer", "renderer_for"]


class Render(Protocol):
    """Writes the functions of one variant from packed IR."""

    def __call__(self, function: IRFunction, launch: Launch, symbol: str) -> str:
        """``symbol`` names the loop; those of the entry points are in ``launch``."""
        ...


Assemble = Callable[[str, Sequence[Source]], str]
"""Lays out one file that holds a unit: its name, and the sources of its variants."""


EVERY_ATOMIC: Final = frozenset((op, name) for op, names in ATOMIC_DTYPES.items() for name in names)


@dataclass(frozen=True, slots=True)
class Renderer:
    """One way to write source.

    | field | what it says | who asks |
    |---|---|---|
    | ``render`` | writes one variant | `tack.compile.generate` |
    | ``assemble`` | lays out one file | `tack.compile.assemble` |
    | ``suffix`` | how such files are called | `tack.aot.units`, which names them |
    | ``supported_ops`` | which of the operations that can be expanded it has, exactly; those of \
      `CONVERSIONS` are the target's | `tack.passes.emulate`, `tack.passes.narrow_floats` |
    | ``atomics`` | the atomics that it has, (operation, name of a type) | `tack.compile`, which \
      refuses the others |
    | ``has_local`` | whether threads find their iterations by their own numbers, where a CPU's \
      are told them | `tack.compile`, which packs the extents that they count to |
    | ``has_shared`` | whether iterations can be workgroups, with memory in common and barriers | \
      `tack.compile`, which refuses kernels that need them |
    | ``local_max`` | how many threads a workgroup may have along x, y and z; None for no limit | \
      `tack.compile`, which refuses greater ones |
    | ``local_prod_max`` | how many it may have in all | likewise |
    | ``shared_max`` | how many bytes its arrays may have | likewise |
    | ``shared_static`` | up to how many the text declares them; more the launcher gives | \
      `tack.compile.plan_launch` |
    | ``tensor_cores`` | the products of fragments that the target has, and where their elements \
      are | `tack.passes.fragments` |
    | ``unaligned`` | whether elements may lie at any address; else the launcher refuses arrays \
      that do | `tack.compile.plan_launch` |
    | ``flavours`` | the entry points that a variant may have | `tack.compile.plan_launch` |
    | ``supports_float4`` | whether one access moves up to 16 bytes, so that a thread does better \
      to do several iterations | `tack.compile`, which then makes the wide form of a kernel and \
      its entry point |
    """

    render: Render
    assemble: Assemble
    suffix: str
    supported_ops: frozenset[str] = frozenset(
        {"constant division", "fmod", "print", "private atomics", "wide integers", "wrap"}
    )
    atomics: Container[tuple[str, str]] = EVERY_ATOMIC
    has_local: bool = False
    has_shared: bool = False
    local_max: tuple[int, int, int] | None = None
    local_prod_max: int | None = None
    shared_max: int | None = None
    shared_static: int = 0
    tensor_cores: tuple[TensorCore, ...] = ()
    unaligned: bool = True
    flavours: tuple[str, ...] = ("general", "noalias")
    supports_float4: bool = False


_FACTORIES: Final[dict[str, dict[str, str]]] = {
    "cpu": {"c": "tack.render.c:renderer", "llvm": "tack.render.llvm:renderer"},
    "cuda": {"cuda": "tack.render.gpu_dialects:cuda"},
    "hip": {"hip": "tack.render.gpu_dialects:hip"},
    "metal": {"metal": "tack.render.gpu_dialects:metal"},
}
"""Backend -> dialect -> the function that gives the renderer; what is shipped is in the first."""


@cache
def renderer_for(target: Target, dialect: str | None = None) -> Renderer:
    """The renderer for ``target``: in ``dialect``, or in the one that its libraries are built from.

    ``ValueError`` for a dialect that the target does not have.
    """
    dialects = _FACTORIES[target.backend]
    if dialect is not None and dialect not in dialects:
        raise ValueError(f"{target} is not rendered as {dialect!r}; {advice(dialect, dialects)}")
    module, _, function = dialects[dialect or next(iter(dialects))].partition(":")
    found = _converting(
        getattr(import_module(module), function)(), capabilities_of(target).converts
    )
    return _multiplying(found, tensor_cores_of(target))


@cache
def _converting(renderer: Renderer, converts: frozenset[str]) -> Renderer:
    """``renderer`` with conversions that the target has; one for all targets that have the same."""
    return replace(renderer, supported_ops=renderer.supported_ops | converts)


@cache
def _multiplying(renderer: Renderer, cores: tuple[TensorCore, ...]) -> Renderer:
    """``renderer`` with these tensor cores; one for all targets that have the same."""
    return replace(renderer, tensor_cores=cores)
