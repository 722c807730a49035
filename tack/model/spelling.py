"""Words of messages: advice for one that is not known, and articles."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["advice", "article", "counted", "nearest"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known spelling that ``word`` may have meant, or None."""
    import difflib  # needed only where something is wrong

    return next(iter(difflib.get_close_matches(word, list(known), n=1)), None)


def advice(word: str, known: Iterable[str]) -> str:
    """The nearest known spelling as a question, or the list of what is known.

    >>> advice("f23", ["f32", "f64"])
    "did you mean 'f32'?"
    """
    words = list(known)
    near = nearest(word, words)
    return f"did you mean {near!r}?" if near else f"known are {', '.join(words)}"


def article(word: str) -> str:
    """``word`` with the article that it is spoken with.

    >>> [article(each) for each in ("i64", "f32", "u8", "str", "ndarray")]
    ['an i64', 'an f32', 'a u8', 'a str', 'an ndarray']
    """
    spelled = word[1:2].isdigit() or word == "ndarray"  # its first letter is spoken by its name
    return f"a{'n' * (word[:1].lower() in ('aefhilmnorsx' if spelled else 'aeio'))} {word}"


def counted(number: int, noun: str) -> str:
    """So many of what ``noun`` names.

    >>> counted(1, "dimension"), counted(2, "positional argument"), counted(0, "index")
    ('1 dimension', '2 positional arguments', '0 indices')
    """
    several = "indices" if noun == "index" else f"{noun}s"
    return f"{number} {noun if number == 1 else several}"
