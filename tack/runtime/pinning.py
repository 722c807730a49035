"""Extents that a variant compiled at a call must know: those of arrays that local arrays copy."""

from __future__ import annotations

from typing import Final

from tack.lang.definition import KernelDefinition
from tack.model.errors import CompileError, UnpinnedError
from tack.model.record import replace
from tack.model.signature import Signature, Spec, TemplateSpec

__all__ = ["pinned"]

_PINS: Final = "tack local_array_like"
"""How a captured `tack.local_array_like` is described: only kernels that reach it pin anything."""


def pinned(definition: KernelDefinition, signature: Signature, given: Signature) -> Signature:
    """``signature`` with those arrays pinned to ``given`` whose extents the kernel must know.

    What cannot be compiled for another reason is given back as it is.
    """
    try:
        if all(each.value != _PINS for each in definition.fingerprint().captured):
            return signature
        return _pinned(definition, signature, given)
    except (CompileError, RecursionError):
        return signature


def _pinned(definition: KernelDefinition, signature: Signature, given: Signature) -> Signature:
    from tack.lang.lower import lower_kernel

    while True:
        try:
            lower_kernel(definition, signature)
        except UnpinnedError as error:
            signature = _with_extents(definition, signature, given, error.parameter)
        else:
            return signature


def _with_extents(
    definition: KernelDefinition, signature: Signature, given: Signature, parameter: str
) -> Signature:
    """``signature`` with the extents of one array, a parameter's own or one of a template."""
    place = next(each for each in signature.flat() if each.name(definition.parameters) == parameter)
    specs = list(signature.specs)
    position = place.argument
    specs[position] = _taken(specs[position], given.specs[position], place.path)
    return replace(signature, specs=tuple(specs))


def _taken(spec: Spec, given: Spec, path: tuple[str, ...]) -> Spec:
    """``spec`` with what ``given`` has at ``path``."""
    if not isinstance(spec, TemplateSpec):
        return given
    assert isinstance(given, TemplateSpec)
    (name, *rest), group = path, "children" if path[1:] else "arrays"
    others = dict(getattr(given, group))
    return replace(
        spec,
        **{
            group: tuple(
                (key, _taken(own, others[key], tuple(rest)) if key == name else own)
                for key, own in getattr(spec, group)
            )
        },
    )
