"""The middle of every variant's way, at build time and at a call: lowered to decomposed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tack.ir.nodes import IRFunction
from tack.ir.verify import verify_ir
from tack.passes.decompose import decompose
from tack.passes.emulate import EMULATED, emulate
from tack.passes.fragments import NO_WARPS, Warps
from tack.passes.groups import split_groups
from tack.passes.infer import infer
from tack.passes.localize import localize
from tack.passes.narrow_floats import narrow_floats
from tack.passes.optimize import optimize
from tack.passes.resolve import resolve
from tack.passes.storage import store_as_bytes
from tack.passes.type import annotate_types

__all__ = ["PASSES", "prepare"]

Pass = Callable[[IRFunction], IRFunction | None]
"""Changes a function in place, and gives it back; None if there was nothing to change."""

PASSES: Final[tuple[tuple[Pass, str], ...]] = (
    (resolve, "resolved"),
    (infer, "inferred"),
    (annotate_types, "typed"),
    (localize, "localized"),
    (split_groups, "localized"),
    (optimize, "optimized"),
    (decompose, "decomposed"),
    (narrow_floats, "decomposed"),
    (store_as_bytes, "decomposed"),
)
"""The passes, each with the stage that it reaches; for a target that has none of what may lack."""


def prepare(
    function: IRFunction,
    supported: frozenset[str] = frozenset(EMULATED),
    warps: Warps = NO_WARPS,
) -> IRFunction:
    """Takes lowered IR to the decomposed stage, in place, verified before and after each pass.

    A pass that changed nothing and reaches no new stage leaves what was verified.

    Operations of `EMULATED` and `CONVERSIONS` that are not ``supported`` are expanded; ``warps``
    says which tensor cores there are.

    `CompileError` for types that the language refuses, `IRVerificationError` for a bug of ours.
    """
    reached = "lowered"
    verify_ir(function, reached)
    last: Pass = partial(emulate, supported=supported)
    given: dict[Pass, dict[str, Any]] = {
        split_groups: {"warps": warps},
        narrow_floats: {"supported": supported},
    }
    for step, stage in (*PASSES, (last, "decomposed")):
        changed = step(function, **given.get(step, {})) is not None
        if changed or stage != reached:
            verify_ir(function, stage)
        reached = stage
    return function
