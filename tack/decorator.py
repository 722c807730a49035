"""``@tack.kernel``: makes the callable, and parses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, overload

from tack import _core
from tack.lang.bindings import resolve
from tack.lang.definition import KernelDefinition
from tack.model.vectors import VectorType

__all__ = ["kernel"]

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
        parameters = definition.parameters
        annotations = getattr(target, "__annotations__", {})
        counts = tuple(_components(target, annotations.get(name)) for name in parameters)
        annotated = tuple(
            name in annotations
            for name, count in zip(parameters, counts, strict=True)
            for _ in range(count or 1)
        )
        components = counts if any(counts) else ()
        return _core.make_kernel(target, definition, parameters, annotated, _on_miss, components)

    return make if function is None else make(function)


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
