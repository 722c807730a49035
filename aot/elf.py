"""Reading a shared library: its machine code, the symbols that it exports, what it needs.

ELF for 64-bit little-endian machines (System V ABI, "Object Files"), which is what the CPU levels
of this tack run on.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tack.model.errors import ToolchainError

__all__ = ["Code", "Library", "parse_library", "read_library"]

_FAMILIES: Final[dict[int, str]] = {62: "x86-64", 183: "aarch64"}
"""``e_machine`` -> family of CPU levels."""

_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_DYNAMIC: Final = struct.Struct("<qQ")

_SHT_DYNAMIC, _SHT_NOBITS, _SHT_DYNSYM = 6, 8, 11
_SHF_EXECINSTR = 4
_DT_NEEDED = 1
_DT_INITIALIZERS = (12, 25)  # DT_INIT, DT_INIT_ARRAY
_SHN_UNDEF = 0
_STT_FUNC = 2


@dataclass(frozen=True, slots=True)
class Code:
    """One executable section: its name, its address and its bytes."""

    name: str
    address: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Library:
    """What a shared library says of itself.

    ``functions`` maps each exported function to its address; ``needed`` are the shared libraries
    that loading it loads, and ``initializers`` whether loading it runs code of its own.
    """

    path: Path
    family: str
    code: tuple[Code, ...]
    functions: dict[str, int]
    needed: tuple[str, ...]
    initializers: bool = False

    def symbol_at(self, address: int) -> str:
        """The exported function at ``address``, or the nearest one before it."""
        by_address = sorted((start, name) for name, start in self.functions.items())
        index = bisect.bisect_right(by_address, (address, "\U0010ffff"))
        return by_address[index - 1][1] if index else "no exported function"


def read_library(path: Path) -> Library:
    """The library at ``path``; `ToolchainError` for anything that is none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ToolchainError(f"{path}: the library cannot be read: {error.strerror}") from None
    return parse_library(path, content)


def parse_library(path: Path, content: bytes) -> Library:
    """The library whose bytes are ``content``; ``path`` is how errors call it."""
    if content[:7] != b"\x7fELF\x02\x01\x01":
        raise ToolchainError(
            f"{path}: this is not an ELF library for a 64-bit little-endian machine, the only kind "
            "that this tack can check and ship"
        )
    try:
        return _read(path, content)
    except (struct.error, IndexError, ValueError) as error:
        raise ToolchainError(f"{path}: the library is damaged or truncated ({error})") from None


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    address: int
    content: bytes
    link: int


def _read(path: Path, content: bytes) -> Library:
    header = _HEADER.unpack_from(content)
    machine = header[1]
    if machine not in _FAMILIES:
        raise ValueError(f"machine {machine} is not one of a CPU level")
    sections = _sections(content, *header[5:6], *header[10:13])
    if not sections:
        raise ValueError("it has no sections")
    functions: dict[str, int] = {}
    needed: list[str] = []
    initializers = False
    for section in sections:
        if section.kind == _SHT_DYNSYM:
            strings = sections[section.link].content
            functions.update(_functions(section.content, strings))
        elif section.kind == _SHT_DYNAMIC:
            strings = sections[section.link].content
            for tag, value in _DYNAMIC.iter_unpack(section.content):
                if tag == _DT_NEEDED:
                    needed.append(_text(strings, value))
                initializers |= tag in _DT_INITIALIZERS
    code = tuple(
        Code(section.name, section.address, section.content)
        for section in sections
        if section.flags & _SHF_EXECINSTR and section.kind != _SHT_NOBITS
    )
    return Library(path, _FAMILIES[machine], code, functions, tuple(needed), initializers)


def _sections(
    content: bytes, offset: int, entry_size: int, count: int, names_index: int
) -> list[_Section]:
    rows = [_SECTION.unpack_from(content, offset + k * entry_size) for k in range(count)]
    names = _slice(content, rows[names_index][4], rows[names_index][5]) if rows else b""
    return [
        _Section(
            name=_text(names, name),
            kind=kind,
            flags=flags,
            address=address,
            content=b"" if kind == _SHT_NOBITS else _slice(content, start, size),
            link=link,
        )
        for name, kind, flags, address, start, size, link, *_ in rows
    ]


def _slice(content: bytes, start: int, size: int) -> bytes:
    if start + size > len(content):
        raise ValueError(f"bytes {start} to {start + size} are missing")
    return content[start : start + size]


def _text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode()


def _functions(symbols: bytes, strings: bytes) -> Iterator[tuple[str, int]]:
    for name, info, _other, section, value, _size in _SYMBOL.iter_unpack(symbols):
        if info & 15 == _STT_FUNC and section != _SHN_UNDEF:
            yield _text(strings, name), value
