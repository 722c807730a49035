"""What a target can hold and compute, as data; nothing is guessed from a target's name."""

from __future__ import annotations

from typing import Final

from tack.model.dtypes import DTYPES
from tack.model.record import Record
from tack.model.signature import Signature
from tack.model.targets import Target

__all__ = ["Capabilities", "capabilities_of", "lacking"]


class Capabilities(Record):
    """The capabilities of a target.

    ``dtypes`` are the scalar types that it has, ``converts`` the narrow floats that it converts f32
    to, and back, by instructions.
    """

    dtypes: frozenset[str]
    converts: frozenset[str] = frozenset()


_EVERYTHING: Final = frozenset(DTYPES)


def capabilities_of(target: Target) -> Capabilities:
    """What ``target`` can do."""
    gpu = target.gpu
    if gpu is None:
        return Capabilities(dtypes=_EVERYTHING)
    return Capabilities(dtypes=_EVERYTHING - gpu.lacks, converts=gpu.converts)


def lacking(target: Target, signature: Signature) -> str | None:
    """Why no variant of ``signature`` can exist for ``target``, or None."""
    have = capabilities_of(target).dtypes
    missing = sorted({flat.spec.dtype.name for flat in signature.flat()} - have)
    return f"{target} has no {', '.join(missing)}" if missing else None
