"""What happens when a call finds no variant in the kernel's table: resolve, or say why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tack.lang.definition import KernelDefinition
from tack.model.bundle import VariantEntry
from tack.model.errors import NoVariantError
from tack.runtime.resolver import resolve

if TYPE_CHECKING:
    import numpy as np

    from tack import _core

__all__ = ["on_miss"]


def on_miss(kernel: _core.Kernel, args: tuple[object, ...]) -> _core.Launchable:
    """The variant for ``args``, to be kept in the kernel's table.

    Raises ``TypeError``, ``ValueError`` or ``OverflowError`` for arguments that no variant could
    take, ``ValueError`` for a read-only array that the kernel writes, and `NoVariantError`, in
    the words of `tack.explain`, where no prebuilt variant answers.
    """
    definition: KernelDefinition = kernel.definition
    resolution = resolve(definition, args)
    if resolution.launchable is None or resolution.variant is None:
        raise NoVariantError(str(resolution.explanation), resolution.explanation)
    _check_writeable(definition, resolution.variant, args)
    return resolution.launchable


def _check_writeable(
    definition: KernelDefinition, variant: VariantEntry, args: tuple[object, ...]
) -> None:
    for position in variant.launch.written:
        array: np.ndarray[tuple[int, ...], np.dtype[np.generic]] = args[position]  # type: ignore[assignment]
        if not array.flags.writeable:
            raise ValueError(
                f"{definition.name}: array {definition.parameters[position]!r} is read-only, and "
                "the kernel writes it; pass a writeable copy"
            )
