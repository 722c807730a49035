"""What is built and chosen: options, variants, and candidates with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from tack.model.record import Record
from tack.model.signature import Signature
from tack.model.spelling import advice
from tack.model.targets import Target

__all__ = ["DEFAULT_OPTIONS", "FP_MODES", "Candidate", "KernelIdentity", "Options", "Variant"]

FP_MODES: Final = ("strict",)
"""Floating-point modes that exist so far: ``strict`` gives the same bits everywhere."""


class KernelIdentity(Protocol):
    """What the vocabulary knows of a kernel: its name, ``package.module:qualified.name``."""

    @property
    def name(self) -> str:
        """``package.module:qualified.name``."""
        ...


class Options(Record):
    """The options of ``@tack.kernel(...)``; all of them are part of the keys."""

    fp: str = "strict"

    def __post_init__(self) -> None:
        if self.fp not in FP_MODES:
            near = advice(str(self.fp), FP_MODES)
            raise ValueError(f"fp={self.fp!r} is not a floating-point mode built so far; {near}")

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.to_json().items())

    def to_json(self) -> dict[str, Any]:
        """The form that the bundle stores."""
        return {name: getattr(self, name) for name in self.field_names}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """The options that `to_json` wrote; ``TypeError`` or ``ValueError`` otherwise."""
        return cls(**data)


DEFAULT_OPTIONS: Final = Options()
"""What ``@tack.kernel`` without arguments means."""


class Variant(Record):
    """One instantiation of a kernel: kernel, signature, target and options."""

    kernel: KernelIdentity
    signature: Signature
    target: Target
    options: Options = DEFAULT_OPTIONS

    def __str__(self) -> str:
        return f"{self.kernel.name}({self.signature}) for {self.target}"


class Candidate(Record):
    """A variant that was looked at for a call, and why it was taken or refused.

    ``jit`` marks the one that is compiled at the call.
    """

    kernel: str
    signature: str
    target: str
    accepted: bool
    reason: str
    jit: bool = False

    def __str__(self) -> str:
        mark = "taken" if self.accepted else "refused"
        compiled = ", compiled at the call" if self.jit else ""
        return f"{mark}: ({self.signature}) for {self.target}{compiled}: {self.reason}"
