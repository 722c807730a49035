"""What a code object of AMD says of itself.

LLVM's "User Guide for AMDGPU Backend": "ELF Code Object" (header, ``e_flags``), "Code Object
Metadata" (a note in MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md).
"""

from __future__ import annotations

import struct
from typing import Any, Final

from tack.aot.elf import Elf, parse_elf
from tack.aot.image_facts import ImageFacts
from tack.model.bundle import Resources

__all__ = ["read_code_object", "unpack_message"]

_EM_AMDGPU, _OSABI_HSA = 224, 64
_NOTE_NAME, _NOTE_METADATA = "AMDGPU", 32

_MACHINES: Final = {
    0x2F: "gfx906",
    0x30: "gfx908",
    0x31: "gfx909",
    0x32: "gfx90c",
    0x33: "gfx1010",
    0x34: "gfx1011",
    0x35: "gfx1012",
    0x36: "gfx1030",
    0x37: "gfx1031",
    0x38: "gfx1032",
    0x39: "gfx1033",
    0x3D: "gfx1035",
    0x3E: "gfx1034",
    0x3F: "gfx90a",
    0x41: "gfx1100",
    0x42: "gfx1013",
    0x43: "gfx1150",
    0x44: "gfx1103",
    0x45: "gfx1036",
    0x46: "gfx1101",
    0x47: "gfx1102",
    0x48: "gfx1200",
    0x4A: "gfx1151",
    0x4C: "gfx942",
    0x4E: "gfx1201",
    0x4F: "gfx950",
    0x51: "gfx9-generic",
    0x52: "gfx10-1-generic",
    0x53: "gfx10-3-generic",
    0x54: "gfx11-generic",
    0x55: "gfx1152",
    0x58: "gfx1153",
    0x59: "gfx12-generic",
    0x5F: "gfx9-4-generic",
}
"""``EF_AMDGPU_MACH`` -> processor."""

_FEATURES: Final = {"xnack": 8, "sramecc": 10}
"""Feature -> the bit of ``e_flags`` from which on two say what code asks of it."""

_ASKED: Final = ("", "", "-", "+")
"""What those bits mean: it is not there, either way is good, it is off, it is on."""


def read_code_object(content: bytes) -> ImageFacts:
    """The facts of a linked code object; ``ValueError`` for anything else."""
    elf = parse_elf(content)
    if (elf.machine, elf.abi) != (_EM_AMDGPU, _OSABI_HSA):
        raise ValueError(f"it is for machine {elf.machine}, not a code object for AMD GPUs")
    number = elf.flags & 0xFF
    if number not in _MACHINES:
        raise ValueError(f"it is for a processor with the number {number:#x}, which is not known")
    asked = {name: _ASKED[elf.flags >> bit & 3] for name, bit in _FEATURES.items()}
    features = "".join(f":{name}{sign}" for name, sign in sorted(asked.items()) if sign)
    exported = {symbol.name for symbol in elf.symbols(dynamic=True) if symbol.section}
    entries = {
        name: resources
        for name, resources in _kernels(elf).items()
        if {name, f"{name}.kd"} <= exported
    }
    return ImageFacts(_MACHINES[number] + features, "", entries)


def _kernels(elf: Elf) -> dict[str, Resources]:
    for note in elf.notes():
        if (note.name, note.kind) == (_NOTE_NAME, _NOTE_METADATA):
            document, _ = unpack_message(note.content)
            try:
                rows = [_resources(row) for row in document["amdhsa.kernels"]]
            except (KeyError, TypeError) as error:
                raise ValueError(f"its metadata has no {error}") from None
            return {row.symbol: row for row in rows}
    raise ValueError("it has no metadata")


def _resources(row: dict[str, Any]) -> Resources:
    return Resources(
        row[".name"],
        row[".max_flat_workgroup_size"],
        row[".vgpr_count"],
        row[".group_segment_fixed_size"],
    )


_NUMBERS: Final = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZED: Final = {
    0xC4: (bytes, ">B"),
    0xC5: (bytes, ">H"),
    0xC6: (bytes, ">I"),
    0xD9: (str, ">B"),
    0xDA: (str, ">H"),
    0xDB: (str, ">I"),
    0xDC: (list, ">H"),
    0xDD: (list, ">I"),
    0xDE: (dict, ">H"),
    0xDF: (dict, ">I"),
}
"""First byte -> what follows: a number, nothing, or a size and as much of something."""

_DEEPEST: Final = 32


def unpack_message(content: bytes, place: int = 0, depth: int = 0) -> tuple[Any, int]:
    """The value of MessagePack at ``place``, and where it ends; ``ValueError`` if there is none."""
    try:
        return _unpack(content, place, depth)
    except (struct.error, IndexError, TypeError) as error:
        raise ValueError(f"its metadata is damaged: {error}") from None


def _unpack(content: bytes, place: int, depth: int) -> tuple[Any, int]:
    first = content[place]
    place += 1
    if first < 0x80 or first >= 0xE0:
        return first - 0x100 * (first >= 0xE0), place
    if first in _CONSTANTS:
        return _CONSTANTS[first], place
    if first in _NUMBERS:
        form = _NUMBERS[first]
        return struct.unpack_from(form, content, place)[0], place + struct.calcsize(form)
    if first < 0xC0:
        kind: type = str if first >= 0xA0 else list if first >= 0x90 else dict
        size = first & (0x1F if first >= 0xA0 else 0x0F)
    elif first in _SIZED:
        kind, form = _SIZED[first]
        (size,) = struct.unpack_from(form, content, place)
        place += struct.calcsize(form)
    else:
        raise ValueError(f"its metadata has a value of the unknown kind {first:#x}")
    return _sized(content, place, depth, kind, size)


def _sized(content: bytes, place: int, depth: int, kind: type, size: int) -> tuple[Any, int]:
    if kind in (str, bytes):
        if place + size > len(content):
            raise ValueError("its metadata is cut off")
        taken = content[place : place + size]
        return taken.decode() if kind is str else taken, place + size
    if depth > _DEEPEST:
        raise ValueError("its metadata is nested too deep")
    values = []
    for _ in range(size * (2 if kind is dict else 1)):
        value, place = _unpack(content, place, depth + 1)
        values.append(value)
    if kind is dict:
        return dict(zip(values[::2], values[1::2], strict=True)), place
    return values, place
