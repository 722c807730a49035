"""Extents that a variant compiled at a call must know: those of arrays that local arrays copy."""

from __future__ import annotations

from typing import Final

from tack.lang.definition import KernelDefinition
from tack.model.errors import CompileError, UnpinnedError
from tack.model.record import replace
from tack.model.signature import Signature

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
            position = definition.parameters.index(error.parameter)
            specs = list(signature.specs)
            specs[position] = given.specs[position]
            signature = replace(signature, specs=tuple(specs))
        else:
            return signature
