"""The CPU level that a library needs, found by disassembling it.

A note of our own would say what was asked of the compiler; the instructions say what it did, and
whether a flag from the environment or an object from elsewhere slipped in. Sources: Intel SDM vol.
2 chapter 2 (encodings and opcode maps), the System V psABI for x86-64 ("micro-architecture
levels"), the Arm ARM for A64.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tack.aot.elf import Code, Library
from tack.model.errors import ToolchainError
from tack.model.targets import CPU_LEVELS

if TYPE_CHECKING:
    import capstone

__all__ = ["LevelFound", "check_level", "find_level"]

_BY_ENCODING: Final[dict[str, str]] = {
    "evex": "x86-64-v4",
    "opmask": "x86-64-v4",
    "vex": "x86-64-v3",
    "0f38": "x86-64-v2",
    "0f3a": "x86-64-v2",
    "xop": "",
    "legacy": "x86-64",
}
"""Encoding or opcode map -> the least level that has instructions in it; none has XOP.

Capstone puts many instructions into no group at all (vfmadd132ps, pmaddubsw, kaddw), so the groups
alone would let them pass; the encoding cannot be missing."""

_BY_MNEMONIC: Final[dict[str, str]] = {
    "popcnt": "x86-64-v2",
    "cmpxchg16b": "x86-64-v2",
    "lahf": "x86-64-v2",
    "sahf": "x86-64-v2",
    "crc32": "x86-64-v2",
    "lzcnt": "x86-64-v3",
    "movbe": "x86-64-v3",
    # A processor without BMI runs tzcnt as bsf, and compilers write it where the two agree.
    "tzcnt": "x86-64",
}
"""Instructions whose level neither encoding nor group tells."""

_BEYOND: Final[tuple[tuple[str, str], ...]] = (
    ("AES", r"v?aes\w+"),
    ("PCLMULQDQ", r"v?pclmul\w*"),
    ("GFNI", r"v?gf2p8\w+"),
    ("SHA", r"v?sha(1|256|512)\w+|vsm[34]\w+"),
    ("ADX", r"adcx|adox"),
    ("AVX-VNNI or AVX512-VNNI", r"vpdp(bu|bs|ws|wu)\w+"),
    ("AVX512-IFMA", r"vpmadd52\w+"),
    ("AVX512-VBMI", r"vperm[it]?2?b|vpmultishiftqb"),
    ("AVX512-VBMI2", r"vp(compress|expand)[bw]|vpsh[lr]d\w+"),
    ("AVX512-BITALG", r"vpopcnt[bw]|vpshufbitqmb"),
    ("AVX512-VPOPCNTDQ", r"vpopcnt[dq]"),
    ("AVX512-VP2INTERSECT", r"vp2intersect\w+"),
    ("AVX512-4FMAPS or 4VNNIW", r"v4fn?m\w+|vp4dp\w+"),
    ("AVX512-ER or PF", r"v(exp2|rcp28|rsqrt28)[ps]\w|v(gather|scatter)pf\w+"),
    ("AVX512-BF16", r"vcvtne\w+|vdpbf16ps"),
    ("AVX512-FP16", r"v(?!cvtps2ph|cvtph2ps)\w+(ph|sh)|vcvt\w+(ph|sh)2\w*"),
    ("FMA4", r"vf(n?m(add|sub)|m(addsub|subadd))(?!\w*(132|213|231))\w+"),
    ("RDRAND or RDSEED", r"rd(rand|seed)"),
    ("TSX", r"x(begin|end|abort|test)"),
    ("AMX", r"tile\w+|tdp\w+|(ld|st)tilecfg"),
    ("XSAVE", r"x(save|rstor)\w*|xgetbv"),
)
"""Extension -> its instructions, as a pattern of mnemonics; no level has any of them.

``vcvtps2ph`` and ``vcvtph2ps`` are F16C's, not FP16's."""

_OPMASK: Final = re.compile(r"k(add|andn?|mov|not|or|ortest|shift[lr]|test|unpck|xn?or)[bwdq]+")

_A64_BEYOND: Final[tuple[tuple[str, str], ...]] = (
    ("LSE", r"(cas|swp|(ld|st)(add|clr|eor|set|[su]max|[su]min))p?(a?l?)[bh]?"),
    ("RDM", r"sqrdml[as]h"),
    ("DotProd or I8MM", r"[su]dot|usdot|sudot|[su]mmla|usmmla"),
    ("JSCVT or FCMA", r"fjcvtzs|fcmla|fcadd"),
    ("BF16", r"bf\w*(dot|mmla|cvt\w*|mlal\w)"),
    ("Crypto", r"aes\w+|sha\d+\w*|sm[34]\w+|pmull2?"),
    ("CRC", r"crc32\w+"),
)
"""The same for A64, beside its groups."""

_GENERIC_GROUPS: Final = 128
"""Capstone's groups below this number say what an instruction does, not which extension it is."""


@dataclass(frozen=True, slots=True)
class LevelFound:
    """The least level that runs a library, and an instruction that needs it.

    ``level`` is empty where no level runs it; ``reason`` then names the extension.
    """

    level: str
    instruction: str
    symbol: str
    reason: str = ""


def find_level(library: Library) -> LevelFound:
    """The least CPU level that runs every instruction of ``library``."""
    found = LevelFound(_least(library.family), "", "")
    rank = CPU_LEVELS[found.level].rank
    for section in library.code:
        for address, text, level, reason in _instructions(library, section):
            if not level:
                return LevelFound("", text, library.symbol_at(address), reason)
            if CPU_LEVELS[level].rank > rank:
                rank = CPU_LEVELS[level].rank
                found = LevelFound(level, text, library.symbol_at(address))
    return found


def check_level(library: Library, declared: str) -> str:
    """The least level that runs ``library``; `ToolchainError` if ``declared`` does not.

    The error names the instruction and the symbol that it is in.
    """
    wanted = CPU_LEVELS[declared]
    if wanted.family != library.family:
        raise ToolchainError(
            f"{library.path}: it was compiled for {library.family} and declared {declared}; the "
            "compiler and the manifest's targets are of different machines"
        )
    found = find_level(library)
    if not found.level:
        raise ToolchainError(
            f"{library.path}: declared {declared}, but the instruction {found.instruction!r} in "
            f"{found.symbol} needs {found.reason}, which no CPU level has; look for -m flags in "
            "CFLAGS and in the toolchain file"
        )
    if CPU_LEVELS[found.level].rank > wanted.rank:
        raise ToolchainError(
            f"{library.path}: declared {declared}, but the instruction {found.instruction!r} in "
            f"{found.symbol} needs {found.level}; look for -m flags in CFLAGS and in the "
            "toolchain file"
        )
    return found.level


def _least(family: str) -> str:
    levels = {name: level for name, level in CPU_LEVELS.items() if level.family == family}
    return min(levels, key=lambda name: levels[name].rank)


def _instructions(library: Library, section: Code) -> Iterator[tuple[int, str, str, str]]:
    """Address, text, level and reason of each instruction of a section."""
    plain, detailed = _disassembler(library.family, False), _disassembler(library.family, True)
    classify = _classify_x86 if library.family == "x86-64" else _classify_a64
    known: dict[tuple[str, str], tuple[str, str]] = {}
    end = section.address
    for address, size, mnemonic, operands in plain.disasm_lite(section.content, section.address):
        start = address - section.address
        code = section.content[start : start + size]
        word = mnemonic.split()[-1]  # "lock cmpxchg16b" is the instruction after its prefix
        key = (word, _encoding(word, code) if library.family == "x86-64" else operands)
        if key not in known:
            known[key] = classify(*key, _groups(detailed, code))
        yield address, f"{mnemonic} {operands}".rstrip(), *known[key]
        end = address + size
    if end != section.address + len(section.content):
        rest = section.content[end - section.address :][:8]
        reason = "an extension that the disassembler does not know"
        yield end, f"bytes {rest.hex(' ')}", "", reason


@functools.cache
def _disassembler(family: str, detail: bool) -> capstone.Cs:
    try:
        import capstone
    except ModuleNotFoundError:
        raise ToolchainError(
            "checking the CPU level of a library needs capstone; install tack-aot[build]"
        ) from None
    machine = {
        "x86-64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    }[family]
    disassembler = capstone.Cs(*machine)
    disassembler.detail = detail
    return disassembler


def _groups(detailed: Any, code: bytes) -> frozenset[str]:
    """The extensions that Capstone says an instruction belongs to."""
    (instruction,) = detailed.disasm(code, 0, 1)
    return frozenset(
        instruction.group_name(group) for group in instruction.groups if group >= _GENERIC_GROUPS
    )


_PREFIXES: Final = frozenset(b"\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67\xf0")


def _encoding(mnemonic: str, code: bytes) -> str:
    """How an instruction is encoded: a key of `_BY_ENCODING`."""
    start = next((k for k, byte in enumerate(code) if byte not in _PREFIXES), 0)
    lead = code[start]
    if lead == 0x62:
        return "evex"
    if lead in (0xC4, 0xC5):
        return "opmask" if _OPMASK.fullmatch(mnemonic) else "vex"
    if lead == 0x8F and code[start + 1] & 0x18:
        return "xop"  # pop has this byte too, with those bits of the next one clear
    if lead & 0xF0 == 0x40:  # REX
        start += 1
    return {b"\x0f\x38": "0f38", b"\x0f\x3a": "0f3a"}.get(code[start : start + 2], "legacy")


def _classify_x86(mnemonic: str, encoding: str, groups: frozenset[str]) -> tuple[str, str]:
    """The level of an instruction, or an empty one and the extension that no level has."""
    for extension, pattern in _BEYOND:
        if re.fullmatch(pattern, mnemonic):
            return "", extension
    if not _BY_ENCODING[encoding]:
        return "", encoding.upper()
    if mnemonic in _BY_MNEMONIC:
        return _BY_MNEMONIC[mnemonic], ""
    return _greatest([_BY_ENCODING[encoding]], groups)


def _classify_a64(mnemonic: str, operands: str, groups: frozenset[str]) -> tuple[str, str]:
    for extension, pattern in _A64_BEYOND:
        if re.fullmatch(pattern, mnemonic):
            return "", extension
    if re.search(r"\b[zp]\d+[./]", operands):
        return "", "SVE"
    half = re.search(r"\bh\d+|\.[48]h", operands)
    if half and mnemonic.startswith("f") and not re.fullmatch(r"fcvt([ln]2?)?", mnemonic):
        return "", "FP16"
    return _greatest(["aarch64"], groups)


def _greatest(levels: list[str], groups: frozenset[str]) -> tuple[str, str]:
    """The greatest of some levels and of those that the groups need."""
    for group in sorted(groups):
        owner = _GROUP_LEVELS.get(group)
        if owner is None:
            return "", group.upper()
        levels.append(owner)
    return max(levels, key=lambda name: CPU_LEVELS[name].rank), ""


_GROUP_LEVELS: Final[dict[str, str]] = {
    group: name for name, level in CPU_LEVELS.items() for group in level.features
}
