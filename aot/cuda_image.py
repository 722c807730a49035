"""What an image of CUDA says of itself: a cubin, or PTX.

The header of a cubin has the number of its architecture. Whether it is for an architecture (`a`) or
a family (`f`) alone is in a bit of the header (CUDA 12), and in the note in which ptxas writes how
it was called (CUDA 12.8 and later). NVIDIA documents neither; LLVM's ``ELF.h`` names the flags of
the header, and tests compare all of it with what nvcc makes for each target. PTX is text: "Parallel
Thread Execution ISA", "PTX Module Directives".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final

from tack.aot.elf import Elf, parse_elf
from tack.aot.image_facts import ImageFacts
from tack.model.bundle import Resources

__all__ = ["read_cubin", "read_ptx"]

_EM_CUDA: Final = 190
_HEADERS: Final = {7: (0, 0x800), 8: (8, 0x8)}
"""Version of the ABI -> where the flags of the header have the architecture, and its `a`."""

_STO_ENTRY: Final = 0x10
_SHT_INFO: Final = 0x70000000
_NOTE_OF_TOOLS: Final = (
    ".note.nv.tkinfo",
    re.compile(rb"(?:^|[\0\s])-arch[ =]sm_(\d+)([af]?)(?=\s)"),
)
_RESERVED: Final = (".nv.shared.reserved.0", 1024)
"""The section of images that leave the first bytes of shared memory to the driver, and how many."""

_FORMAT_SIZED, _REGISTERS, _MAX_THREADS = 4, 0x2F, 0x05


def read_cubin(content: bytes) -> ImageFacts:
    """The facts of a cubin; ``ValueError`` for anything else."""
    elf = parse_elf(content)
    if elf.machine != _EM_CUDA:
        raise ValueError(f"it is for machine {elf.machine}, not for CUDA")
    symbols = elf.symbols(dynamic=False)
    registers = {}
    shared = _shared(elf)
    for attribute, value in _attributes(elf, ".nv.info"):
        if attribute == _REGISTERS:
            index, count = struct.unpack("<II", value)
            registers[symbols[index].name] = count
    entries = [symbol.name for symbol in symbols if symbol.other & _STO_ENTRY and symbol.section]
    facts = (
        Resources(name, _block(elf, name), registers.get(name), shared.get(name, 0))
        for name in entries
    )
    return ImageFacts(_architecture(elf), "", {each.symbol: each for each in facts})


def _architecture(elf: Elf) -> str:
    if elf.abi_version not in _HEADERS:
        raise ValueError(f"its header is of version {elf.abi_version}, which this tack cannot read")
    shift, specific = _HEADERS[elf.abi_version]
    number = elf.flags >> shift & 0xFF
    letter = "a" if elf.flags & specific else ""
    name, pattern = _NOTE_OF_TOOLS
    note = elf.section(name)
    called = pattern.search(note.content) if note is not None else None
    if called is not None:
        if int(called[1]) != number:
            raise ValueError(f"its header says sm_{number}, and its note sm_{called[1].decode()}")
        letter = called[2].decode()
    return f"sm_{number}{letter}"


def _shared(elf: Elf) -> dict[str, int]:
    """The static shared memory of each function that has some."""
    prefix, (reserved, size) = ".nv.shared.", _RESERVED
    own = size if elf.section(reserved) is not None else 0
    return {
        section.name.removeprefix(prefix): section.size - own
        for section in elf.sections
        if section.name.startswith(prefix) and section.name != reserved and section.size >= own
    }


def _block(elf: Elf, name: str) -> int | None:
    """The greatest number of threads of a block that a function promises to be launched with."""
    for attribute, value in _attributes(elf, f".nv.info.{name}"):
        if attribute == _MAX_THREADS:
            x, y, z = struct.unpack("<III", value)
            return int(x * y * z)
    return None


def _attributes(elf: Elf, section: str) -> Iterator[tuple[int, bytes]]:
    """The attributes of a section of ``.nv.info`` that have a value with a size."""
    found = elf.section(section)
    content = found.content if found is not None and found.kind == _SHT_INFO else b""
    place = 0
    while place + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, place)
        place += 4
        if form == _FORMAT_SIZED:
            yield attribute, content[place : place + size]
            place += size


_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VERSION: Final = re.compile(r"^\s*\.version\s+(\d+\.\d+)\s*$", re.MULTILINE)
_TARGET: Final = re.compile(r"^\s*\.target\s+sm_(\d+[af]?)\b", re.MULTILINE)
_ENTRY: Final = re.compile(r"\.visible\s+\.entry\s+([\w$]+)\s*\([^)]*\)([^{]*)\{")
_MAXNTID: Final = re.compile(r"\.maxntid\s+([\d,\s]+)")


def read_ptx(content: bytes) -> ImageFacts:
    """The facts of a module of PTX; ``ValueError`` for anything else."""
    text = _COMMENT.sub(" ", content.decode("ascii"))
    version, target = _VERSION.search(text), _TARGET.search(text)
    if version is None or target is None:
        raise ValueError("it is no PTX: it says neither its version nor its target")
    entries = {}
    for match in _ENTRY.finditer(text):
        bound = _MAXNTID.search(match[2])
        sizes = [int(each) for each in bound[1].split(",")] if bound is not None else []
        block = 1
        for size in sizes:
            block *= size
        entries[match[1]] = Resources(match[1], block if sizes else None)
    return ImageFacts(f"compute_{target[1]}", f"PTX {version[1]}", entries)
