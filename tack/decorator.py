"""``@tack.kernel`` and ``@tack.source_kernel``: make the callable, and parse nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, overload

from tack import _core
from tack.lang.bindings import resolve
from tack.lang.definition import KernelDefinition
from tack.model.vectors import VectorType

__all__ = ["kernel", "source_kernel"]

_VECTORS: Final = ("x2", "x3", "x4")
"""How an annotation in quotes ends that names a vector; others are not looked up here."""


@overload
def kernel(function: Callable[..., Any], /) -> _core.Kernel: ...
@overload
def kernel(
    *, fp: str = ..., group: int | tuple[int, ...] = ...
) -> Callable[[Callable[..., Any]], _core.Kernel]: ...


def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    fp: str = "strict",
    group: int | tuple[int, ...] = (),
) -> _core.Kernel | Callable[[Callable[..., Any]], _core.Kernel]:
    """Makes a kernel of a Python function.

    A call picks the prebuilt variant for its arguments: NumPy arrays of any layout and of native
    byte order (up to 8 dimensions; any integer type, float32 or float64), and scalars. The source
    is read when something first needs it, never here.

    Args:
        function: The function; its one outermost loop is the parallel one.
        fp: Floating-point mode. ``"strict"`` gives the same bits on every target, ``"contract"``
            allows fused multiply-add, ``"fast"`` also regrouped sums and a target's own functions.
        group: How many neighbouring iterations run at the same time as a workgroup, for each index
            of the parallel loop; then they have `tack.shared` arrays and wait for each other at a
            `tack.barrier`. GPUs have workgroups; CPUs refuse such a kernel so far.

    Raises:
        TypeError: ``function`` is not a function written with ``def``.
        ValueError: ``fp`` is not a known mode, or ``group`` no size of a workgroup.

    A call raises ``TypeError``, ``ValueError`` or ``OverflowError`` for arguments that no variant
    could take, and `tack.errors.NoVariantError` where none was built for them.
    """
    options: dict[str, Any] = {} if fp == "strict" else {"fp": fp}
    if group != ():
        options["group"] = group

    def make(target: Callable[..., Any]) -> _core.Kernel:
        definition = KernelDefinition(target, **options)
        if options:
            definition.options  # noqa: B018 - a wrong one is refused here, not at the first call
        return _callable(definition)

    return make if function is None else make(function)


def source_kernel(
    *,
    writes: str | Sequence[str],
    c: str | None = None,
    cuda: str | None = None,
    hip: str | None = None,
    metal: str | None = None,
    noalias: bool = False,
    group: int | tuple[int, ...] = (),
) -> Callable[[Callable[..., Any]], _core.Kernel]:
    """Makes a kernel of what its author wrote in C, CUDA, HIP or Metal.

    The function declares it: its parameters, and one parallel loop with the body ``...``. The
    computation stands in Jinja templates, files beside the module, one for each language. The
    kernel is prebuilt, chosen, explained and called as one of `tack.kernel` is; to compile it at a
    call takes a C compiler. Templates are described in docs/own-sources.md.

    Args:
        writes: The array that the kernel writes, or several.
        c: The template for CPUs, named relative to the module.
        cuda: The template for GPUs of NVIDIA.
        hip: The template for GPUs of AMD.
        metal: The template for GPUs of Apple.
        noalias: Compile a second time for arrays that do not overlap, as restricted pointers.
        group: Threads of a block on GPUs, for each index of the parallel loop; CPUs have no use
            for it. Without it the launcher chooses.

    Raises:
        TypeError: The decorated object is not a function written with ``def``, or no template is
            named.
        ValueError: ``writes`` names no parameter, ``group`` is no size of a block, or a template
            lies outside of the package.
    """
    given = {"c": c, "cuda": cuda, "hip": hip, "metal": metal}
    templates = {language: name for language, name in given.items() if name is not None}
    options: dict[str, Any] = {} if group == () else {"group": group}

    def make(target: Callable[..., Any]) -> _core.Kernel:
        from tack.lang.source_kernel import SourceKernelDefinition

        return _callable(
            SourceKernelDefinition(
                target, templates=templates, writes=writes, noalias=noalias, **options
            )
        )

    return make


def _callable(definition: KernelDefinition) -> _core.Kernel:
    """The kernel of a definition."""
    function, parameters = definition.function, definition.parameters
    annotations = getattr(function, "__annotations__", {})
    counts = tuple(_components(function, annotations.get(name)) for name in parameters)
    annotated = tuple(
        name in annotations
        for name, count in zip(parameters, counts, strict=True)
        for _ in range(count or 1)
    )
    components = counts if any(counts) else ()
    return _core.make_kernel(function, definition, parameters, annotated, _on_miss, components)


def _components(function: Any, hint: object) -> int:
    """Of how many numbers the parameter annotated ``hint`` is a vector; 0 for any other."""
    if isinstance(hint, str):
        hint = resolve(function, hint.strip()) if hint.rstrip().endswith(_VECTORS) else None
    return hint.count if isinstance(hint, VectorType) else 0


def _on_miss(
    called: _core.Kernel, args: tuple[object, ...]
) -> _core.Launchable | tuple[_core.Launchable, _core.Expansion]:
    """What the callable asks for when its table has no variant for the arguments."""
    from tack.runtime.dispatch import on_miss

    return on_miss(called, args)
