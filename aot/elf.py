"""Reading ELF: a shared library with its machine code, the symbols that it exports, what it needs.

ELF for 64-bit little-endian machines (System V ABI, "Object Files"), which is what the CPU levels
of this tack run on, and what images of CUDA and HIP are.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tack.model.errors import ToolchainError

__all__ = [
    "Code",
    "Elf",
    "Library",
    "Note",
    "Section",
    "Symbol",
    "parse_elf",
    "parse_library",
    "read_library",
]

_FAMILIES: Final[dict[int, str]] = {62: "x86-64", 183: "aarch64"}
"""``e_machine`` -> family of CPU levels."""

_MAGIC: Final = b"\x7fELF\x02\x01\x01"
_HEADER: Final = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_NOTE: Final = struct.Struct("<III")

_SHT_SYMTAB, _SHT_DYNAMIC, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 6, 7, 8, 11
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
    if content[: len(_MAGIC)] != _MAGIC:
        raise ToolchainError(
            f"{path}: this is not an ELF library for a 64-bit little-endian machine, the only kind "
            "that this tack can check and ship"
        )
    try:
        return _library(path, parse_elf(content))
    except ValueError as error:
        raise ToolchainError(f"{path}: the library is damaged or truncated ({error})") from None


@dataclass(frozen=True, slots=True)
class Section:
    """One section; ``size`` is that in memory, ``content`` is empty where the file has none."""

    name: str
    kind: int
    flags: int
    address: int
    size: int
    content: bytes
    link: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of a table: ``other`` holds what the machine says of it."""

    name: str
    kind: int
    other: int
    section: int
    value: int


@dataclass(frozen=True, slots=True)
class Note:
    """One note: who wrote it, of what kind, what it says."""

    name: str
    kind: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Elf:
    """An ELF file: what its header says of the machine, and its sections."""

    abi: int
    abi_version: int
    machine: int
    flags: int
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section | None:
        """The section called ``name``, or None."""
        return next((each for each in self.sections if each.name == name), None)

    def symbols(self, *, dynamic: bool) -> list[Symbol]:
        """The symbols that loaders see, or those of the whole file, in their order."""
        wanted = _SHT_DYNSYM if dynamic else _SHT_SYMTAB
        return [
            Symbol(_text(self.sections[table.link].content, name), info & 15, other, section, value)
            for table in self.sections
            if table.kind == wanted
            for name, info, other, section, value, _ in _SYMBOL.iter_unpack(table.content)
        ]

    def notes(self) -> Iterator[Note]:
        """Every note."""
        for section in self.sections:
            if section.kind == _SHT_NOTE:
                yield from _notes(section.content)


def parse_elf(content: bytes) -> Elf:
    """The file whose bytes are ``content``.

    ``ValueError`` for one that is no ELF for a 64-bit little-endian machine, or is damaged;
    reading symbols and notes may raise it too.
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is no ELF for a 64-bit little-endian machine")
    try:
        header = _HEADER.unpack_from(content)
        sections = _sections(content, header[5], *header[10:13])
    except (struct.error, IndexError) as error:
        raise ValueError(str(error)) from None
    return Elf(content[7], content[8], header[1], header[6], tuple(sections))


def _library(path: Path, elf: Elf) -> Library:
    if elf.machine not in _FAMILIES:
        raise ValueError(f"machine {elf.machine} is not one of a CPU level")
    if not elf.sections:
        raise ValueError("it has no sections")
    needed: list[str] = []
    initializers = False
    try:
        functions = {
            symbol.name: symbol.value
            for symbol in elf.symbols(dynamic=True)
            if symbol.kind == _STT_FUNC and symbol.section != _SHN_UNDEF
        }
        for section in elf.sections:
            if section.kind == _SHT_DYNAMIC:
                strings = elf.sections[section.link].content
                for tag, value in _DYNAMIC.iter_unpack(section.content):
                    if tag == _DT_NEEDED:
                        needed.append(_text(strings, value))
                    initializers |= tag in _DT_INITIALIZERS
    except (struct.error, IndexError) as error:
        raise ValueError(str(error)) from None
    code = tuple(
        Code(section.name, section.address, section.content)
        for section in elf.sections
        if section.flags & _SHF_EXECINSTR and section.kind != _SHT_NOBITS
    )
    return Library(path, _FAMILIES[elf.machine], code, functions, tuple(needed), initializers)


def _sections(
    content: bytes, offset: int, entry_size: int, count: int, names_index: int
) -> list[Section]:
    if offset + count * entry_size > len(content):
        raise ValueError("the table of its sections is missing")
    rows = [_SECTION.unpack_from(content, offset + k * entry_size) for k in range(count)]
    names = _slice(content, rows[names_index][4], rows[names_index][5]) if rows else b""
    return [
        Section(
            name=_text(names, name),
            kind=kind,
            flags=flags,
            address=address,
            size=size,
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


def _notes(content: bytes) -> Iterator[Note]:
    """The notes of a section: names and contents begin at multiples of 4."""
    place = 0
    while place + _NOTE.size <= len(content):
        name_size, size, kind = _NOTE.unpack_from(content, place)
        place += _NOTE.size
        name = _slice(content, place, name_size).rstrip(b"\0").decode()
        place += -(-name_size // 4) * 4
        yield Note(name, kind, _slice(content, place, size))
        place += -(-size // 4) * 4
