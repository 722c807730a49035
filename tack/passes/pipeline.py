"""The middle of every variant's way, at build time and at a call: lowered to decomposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Protocol

from tack.ir.nodes import IRFunction
from tack.ir.operations import ELEMENTARY
from tack.ir.traversal import Matcher
from tack.ir.verify import verify_ir
from tack.model.dtypes import DType, f64
from tack.passes.decompose import decompose
from tack.passes.emulate import emulate
from tack.passes.fragments import NO_WARPS, Warps
from tack.passes.groups import split_groups
from tack.passes.infer import infer
from tack.passes.localize import localize
from tack.passes.match import match, match_until_settled
from tack.passes.narrow_floats import narrow_floats
from tack.passes.optimize import optimize
from tack.passes.relax import relax
from tack.passes.resolve import resolve
from tack.passes.storage import store_as_bytes
from tack.passes.type import annotate_types

__all__ = ["PASSES", "Abilities", "prepare"]

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


class Abilities(Protocol):
    """What the passes ask of a target; a `tack.render.renderer.Renderer` answers."""

    @property
    def supported_ops(self) -> frozenset[str]:
        """The operations of `EMULATED` and `CONVERSIONS` that it has."""
        ...

    @property
    def native_math(self) -> frozenset[tuple[str, str]]:
        """The elementary functions, (function, name of a type), that ``fast`` leaves to it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether it rounds as IEEE 754 does, and keeps subnormals."""
        ...

    def supports_dtype(self, dtype: DType) -> bool:
        """Whether it has a type."""
        ...

    @property
    def pre_matcher(self) -> Matcher | None:
        """Its own rewriting before decompositions."""
        ...

    @property
    def extra_matcher(self) -> Matcher | None:
        """Its own rewriting after all passes, until nothing changes."""
        ...


def prepare(
    function: IRFunction,
    target: Abilities | None = None,
    *,
    fp: str = "strict",
    warps: Warps = NO_WARPS,
) -> IRFunction:
    """Takes lowered IR to the decomposed stage, in place, verified before and after each pass.

    A pass that changed nothing and reaches no new stage leaves what was verified.

    What the ``target`` lacks is expanded; without one nothing is lacking. What the floating-point
    mode ``fp`` allows is done where the target gains by it. ``warps`` says which
    tensor cores there are.

    `CompileError` for types that the language refuses, `IRVerificationError` for a bug of ours.
    """
    reached = "lowered"
    verify_ir(function, reached)
    for step, stage in PASSES if target is None else _for_target(target, fp, warps):
        changed = step(function) is not None
        if changed or stage != reached:
            verify_ir(function, stage)
        reached = stage
    return function


def _for_target(target: Abilities, fp: str, warps: Warps) -> Iterator[tuple[Pass, str]]:
    """The passes, as a target and a floating-point mode have them."""
    operations, fast = target.supported_ops, fp == "fast"
    doubles = target.supports_dtype(f64)
    native = (target.native_math if fast else frozenset()) | _native(operations)
    passes: dict[Pass, Pass] = {
        decompose: partial(decompose, native=native, finite=fast),
        narrow_floats: partial(narrow_floats, supported=operations, doubles=doubles),
        split_groups: partial(split_groups, warps=warps),
    }
    for step, stage in PASSES:
        if step is decompose:
            if fp != "strict":
                yield partial(relax, fp=fp, regroups="regroup" in operations), "optimized"
            if target.pre_matcher is not None:
                yield partial(match, matcher=target.pre_matcher), "optimized"
        yield passes.get(step, step), stage
    yield partial(emulate, supported=operations, exact=target.exact, doubles=doubles), "decomposed"
    if target.extra_matcher is not None:
        yield partial(match_until_settled, matcher=target.extra_matcher), "decomposed"


def _native(operations: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The elementary functions that are among the operations of a target, in any mode."""
    named = operations & ELEMENTARY.keys()
    return frozenset((name, dtype) for name in named for dtype in ("f32", "f64"))
