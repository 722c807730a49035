"""Names of generated code: any Python identifier becomes a unique name of the target language.

One `Names` per function hands them out, so that two spellings never meet: what is free is taken
as it is, what is not gets a number. The order of the requests decides, nothing else does.

>>> names = Names(frozenset({"float"}))
>>> names.local("float"), names.local("clamp.i.1"), names.local("größe"), names.fresh("float")
('float_', 'clamp_i_1', 'gr_u00f6_u00dfe', 'float__1')
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from itertools import count

__all__ = ["Names", "Words", "ascii_identifier"]

_ASCII_LETTER = re.compile(r"[A-Za-z0-9_]")

# C reserves these beginnings for the implementation, whose macros would change the name.
_RESERVED_START = re.compile(r"__|_[A-Z]|[0-9]|\Z")


class Words(Container[str]):
    """Words that are reserved, and every word in capitals: headers define macros like that.

    One that ends with an underscore, or has two of them, is a name that `Names` made.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)

    def __contains__(self, word: object) -> bool:
        is_macro = isinstance(word, str) and len(word) > 1 and word.isupper()
        return word in self._words or (
            is_macro and not str(word).endswith("_") and "__" not in str(word)
        )


def ascii_identifier(name: str) -> str:
    """``name`` in letters, digits and underscores, legible where it was; not unique.

    Dots become underscores, other characters ``_u`` and their code point. What begins with a digit
    or with the underscores that C keeps for itself is put behind ``v``.
    """
    encoded = "".join(map(_encode, name))
    return f"v{encoded}" if _RESERVED_START.match(encoded) else encoded


def _encode(character: str) -> str:
    if _ASCII_LETTER.match(character):
        return character
    return "_" if character == "." else f"_u{ord(character):04x}"


class Names:
    """The names of one function: none is reserved, none is given twice."""

    def __init__(self, reserved: Container[str]) -> None:
        self._reserved = reserved
        self._taken: set[str] = set()
        self._locals: dict[str, str] = {}

    def local(self, name: str) -> str:
        """The name that stands for the Python name ``name``, the same at every request."""
        known = self._locals.get(name)
        if known is None:
            known = self._locals[name] = self.fresh(name)
        return known

    def fresh(self, wish: str) -> str:
        """A name that is given to nobody else, as near to ``wish`` as can be."""
        spelling = ascii_identifier(wish)
        if spelling in self._reserved:
            spelling += "_"
        name = next(filter(self._free, _numbered(spelling)))
        self._taken.add(name)
        return name

    def _free(self, name: str) -> bool:
        return name not in self._reserved and name not in self._taken


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(1))
