"""match: a target's own rewriting of nodes, before decompositions and after them."""

from __future__ import annotations

from typing import Final

from tack.ir.nodes import IRFunction, IRNode
from tack.ir.traversal import Matcher, transform_body
from tack.model.errors import IRVerificationError
from tack.passes.localize import localize

__all__ = ["match", "match_until_settled"]

_ROUNDS: Final = 100


def match(function: IRFunction, matcher: Matcher) -> IRFunction | None:
    """Offers every node of the body to ``matcher`` once, children first; None if all stay."""
    changed = False

    def rewrite(node: IRNode) -> IRNode | None:
        nonlocal changed
        new = matcher(node)
        changed = changed or new is not None
        return new

    transform_body(function, rewrite)
    return localize(function) if changed else None


def match_until_settled(function: IRFunction, matcher: Matcher) -> IRFunction | None:
    """Does so until all stay; None if they do at once.

    `IRVerificationError` for a matcher that never settles.
    """
    for number in range(_ROUNDS):
        if match(function, matcher) is None:
            return function if number else None
    raise IRVerificationError(
        function.name, "decomposed", "IRParallelFor", "the body", "extra_matcher never settles"
    )
