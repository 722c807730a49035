"""What is built and chosen: options, variants, and candidates with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from tack.model.record import Record
from tack.model.signature import Signature
from tack.model.spelling import advice
from tack.model.targets import Target

__all__ = [
    "DEFAULT_OPTIONS",
    "FP_MODES",
    "MAX_AXES",
    "Candidate",
    "KernelIdentity",
    "Options",
    "Variant",
]

FP_MODES: Final = ("strict", "contract", "fast")
"""Floating-point modes. ``strict`` gives the same bits everywhere; ``contract`` may fuse a product
with the sum that it stands in; ``fast`` may also regroup sums and products, take it that no operand
of ``min`` and ``max`` is NaN, and call the elementary functions that a target has."""


MAX_AXES: Final = 3
"""How many indices a parallel loop can have."""


class KernelIdentity(Protocol):
    """What the vocabulary knows of a kernel: its name, ``package.module:qualified.name``."""

    @property
    def name(self) -> str:
        """``package.module:qualified.name``."""
        ...


class Options(Record):
    """The options of ``@tack.kernel(...)``; all of them are part of the keys.

    ``group`` has the number of iterations of a workgroup along each index of the parallel loop; it
    is empty for a kernel whose iterations have nothing to do with each other.
    """

    fp: str = "strict"
    group: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        group: Any = self.group
        given = group if isinstance(group, tuple | list) else (group,)
        if len(given) > MAX_AXES or not all(type(size) is int and size > 0 for size in given):
            raise ValueError(
                f"group={self.group!r} is not the size of a workgroup; write a number of "
                f"iterations such as 256, or one for each of up to {MAX_AXES} indices"
            )
        self.__dict__["group"] = tuple(given)
        if self.fp not in FP_MODES:
            near = advice(str(self.fp), FP_MODES)
            raise ValueError(f"fp={self.fp!r} is not a floating-point mode; {near}")

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.to_json().items())

    def to_json(self) -> dict[str, Any]:
        """The form that the bundle stores; without a group there is none in it."""
        values = ((name, getattr(self, name)) for name in self.field_names)
        return {name: value for name, value in values if value != ()}

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
