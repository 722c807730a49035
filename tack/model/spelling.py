"""Advice for a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["advice"]


def advice(word: str, known: Iterable[str]) -> str:
    """The nearest known spelling as a question, or the list of what is known.

    >>> advice("f23", ["f32", "f64"])
    "did you mean 'f32'?"
    """
    import difflib  # needed only where something is wrong

    words = list(known)
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(words)}"
