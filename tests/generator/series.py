"""Programs by the hundred from one seed."""

from __future__ import annotations

from collections.abc import Iterator

from .kernels import draw
from .pairs import Pair, expected, pairs_of
from .program import Program

__all__ = ["collect", "complete"]

_MOST = 40
"""How many times as many programs may be looked through for pairs that have not occurred."""


def collect(count: int, start: int) -> list[Program]:
    """The first `count` programs from seed `start`, the same ones every time."""
    return [draw(f"{start}/{number}") for number in range(count)]


def complete(count: int, start: int) -> Iterator[tuple[int, list[Program]]]:
    """Programs from `start` by seed, and from later seeds those that bring pairs still missing."""
    first = collect(count, start)
    yield start, first
    missing = set(expected())
    for program in first:
        missing -= set(pairs_of(program.source))
    for further in range(start + 1, start + _MOST):
        if not missing:
            return
        kept: list[Program] = []
        for program in collect(count, further):
            brought: set[Pair] = missing & set(pairs_of(program.source))
            if brought:
                missing -= brought
                kept.append(program)
        yield further, kept
