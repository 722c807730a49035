"""What a target can do and how its source is written: the `Renderer` record.

A field arrives with its consumer. Capabilities are data; none is guessed from a name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from tack.ir.nodes import IRFunction
from tack.ir.operations import ATOMIC_DTYPES, EMULATED
from tack.ir.traversal import Matcher
from tack.model.capabilities import capabilities_of
from tack.model.dtypes import DTYPES, DType
from tack.model.errors import ToolchainError
from tack.model.launch import Launch
from tack.model.limits import Axes
from tack.model.spelling import advice
from tack.model.targets import Target
from tack.model.tensor_cores import TensorCore, tensor_cores_of
from tack.render.source import Source

if TYPE_CHECKING:
    from tack.render.author_values import AuthorSource

__all__ = [
    "Assemble",
    "Compiler",
    "Render",
    "RenderAuthor",
    "Renderer",
    "renderer_for",
]


class Render(Protocol):
    """Writes the functions of one variant from packed IR."""

    def __call__(self, function: IRFunction, launch: Launch, symbol: str) -> str:
        """``symbol`` names the loop; those of the entry points are in ``launch``."""
        ...


class RenderAuthor(Protocol):
    """Writes the functions of one variant of a source kernel, around its author's text."""

    def __call__(
        self, function: IRFunction, launch: Launch, symbol: str, author: AuthorSource
    ) -> str:
        """As `Render`; ``author`` fills the template."""
        ...


Assemble = Callable[[str, Sequence[Source]], str]
"""Lays out one file that holds a unit: its name, and the sources of its variants."""


class Compiler(Protocol):
    """What compiles the text of a renderer."""

    def compile(self, text: str, target: Target) -> bytes:
        """The machine code of an assembled text. Raises `ToolchainError`."""
        ...


EVERY_OPERATION: Final = frozenset(EMULATED)
_NOT_GIVEN: Final = frozenset({"not given"})

EVERY_DTYPE: Final = frozenset(DTYPES)
EVERY_ATOMIC: Final = frozenset((op, name) for op, names in ATOMIC_DTYPES.items() for name in names)


@dataclass(frozen=True, slots=True)
class Renderer:
    """One way to write source.

    | field | what it says | who asks |
    |---|---|---|
    | ``render`` | writes one variant | `tack.compile.generate` |
    | ``assemble`` | lays out one file | `tack.compile.assemble` |
    | ``suffix`` | how such files are called | `tack.aot.units`, which names them |
    | ``needs`` | what compiles them, in words | `compile`, where there is no compiler |
    | ``compiler`` | what compiles them, None for nothing; `with_compiler` gives it | `compile`, \
      by which `tack.runtime.jit` compiles |
    | ``code_for_op`` | the operations that it has a spelling for; None is all of them, an empty \
      set none | ``supported_ops``, where that is not given |
    | ``supported_ops`` | the operations that it has, exactly, whatever it can spell; those of \
      `CONVERSIONS` are the target's | `tack.passes.emulate`, `tack.passes.narrow_floats` |
    | ``native_math`` | the elementary functions that ``fp="fast"`` leaves to the target, \
      (function, name of a type) | `tack.passes.decompose` |
    | ``dtypes`` | the names of the types that it can write | `supports_dtype`, by which \
      `tack.compile` refuses a kernel that needs another one |
    | ``exact`` | whether + - * / sqrt and fma round correctly and subnormals are kept, so that \
      its results are those of every other exact target | `tack.passes.emulate`, which need not be \
      more exact than the target |
    | ``pre_matcher`` | its own rewriting of nodes before decompositions, None for none | \
      `tack.passes.pipeline` |
    | ``extra_matcher`` | the same after all passes, until nothing changes | \
      `tack.passes.pipeline` |
    | ``atomics`` | the atomics that it has, (operation, name of a type) | `tack.compile`, which \
      refuses the others |
    | ``has_local`` | whether threads find their iterations by their own numbers, where a CPU's \
      are told them | `tack.compile`, which packs the extents that they count to |
    | ``has_shared`` | whether iterations can be workgroups, with memory in common and barriers | \
      `tack.compile`, which refuses kernels that need them |
    | ``global_max`` | how many workgroups a grid may have along x, y and z; None for no limit | \
      `tack.model.limits.grid_of`, for those who launch |
    | ``global_prod_max`` | how many threads a grid may have along each | likewise |
    | ``local_max`` | how many threads a workgroup may have along x, y and z; None for no limit | \
      `tack.compile`, which refuses greater ones |
    | ``local_prod_max`` | how many it may have in all | likewise |
    | ``shared_max`` | how many bytes its arrays may have at most; an architecture may have fewer \
      | likewise |
    | ``shared_static`` | up to how many the text declares them; more the launcher gives | \
      `tack.compile.plan_launch` |
    | ``tensor_cores`` | the products of fragments that the target has, and where their elements \
      are | `tack.passes.fragments` |
    | ``unaligned`` | whether elements may lie at any address; else the launcher refuses arrays \
      that do | `tack.compile.plan_launch` |
    | ``flavours`` | the entry points that a variant may have | `tack.compile.plan_launch` |
    | ``language`` | the language of the templates of source kernels that it takes | \
      `tack.compile` |
    | ``render_author`` | writes one variant of a source kernel; None where no compiler takes the \
      language | `tack.compile.generate` |
    | ``supports_float4`` | whether one access moves up to 16 bytes, so that a thread does better \
      to do several iterations | `tack.compile`, which then makes the wide form of a kernel and \
      its entry point |
    """

    render: Render
    assemble: Assemble
    suffix: str
    needs: str
    compiler: Compiler | None = None
    code_for_op: frozenset[str] | None = None
    supported_ops: frozenset[str] = _NOT_GIVEN
    native_math: frozenset[tuple[str, str]] = frozenset()
    dtypes: frozenset[str] = EVERY_DTYPE
    exact: bool = True
    pre_matcher: Matcher | None = None
    extra_matcher: Matcher | None = None
    atomics: Container[tuple[str, str]] = EVERY_ATOMIC
    has_local: bool = False
    has_shared: bool = False
    global_max: Axes | None = None
    global_prod_max: Axes | None = None
    local_max: Axes | None = None
    local_prod_max: int | None = None
    shared_max: int | None = None
    shared_static: int = 0
    tensor_cores: tuple[TensorCore, ...] = ()
    unaligned: bool = True
    flavours: tuple[str, ...] = ("general", "noalias")
    language: str = ""
    render_author: RenderAuthor | None = None
    supports_float4: bool = False

    def __post_init__(self) -> None:
        if self.supported_ops is _NOT_GIVEN:
            derived = EVERY_OPERATION if self.code_for_op is None else self.code_for_op
            object.__setattr__(self, "supported_ops", derived)

    def supports_dtype(self, dtype: DType) -> bool:
        """Whether values of a type can be written, in that type or in others."""
        return dtype.name in self.dtypes

    def with_compiler(self, compiler: Compiler) -> Renderer:
        """The same renderer, with what compiles its text."""
        return replace(self, compiler=compiler)

    def compile(self, text: str, target: Target) -> bytes:
        """The machine code of an assembled text; `ToolchainError` says what is missing for it."""
        if self.compiler is None:
            raise ToolchainError(
                f"compiling {self.suffix} files for {target} needs {self.needs}, and this "
                "renderer has none: it writes text only"
            )
        return self.compiler.compile(text, target)


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
