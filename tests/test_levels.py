"""The CPU level of a library is read from its instructions, and one above its level is refused."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from harness import levels

from tack.aot.elf import Code, Library, read_library
from tack.aot.levels import check_level, find_level
from tack.errors import ToolchainError
from tack.model.targets import CPU_LEVELS

X86 = [name for name, level in CPU_LEVELS.items() if level.family == "x86-64"]

LOOPS = """
#include <stdint.h>
__attribute__((visibility("default")))
void tack_loops(float *restrict a, const float *restrict b, double *restrict d, uint64_t *u, long n)
{
  for (long i = 0; i < n; ++i) a[i] = a[i] * b[i] + (float)(int)b[i];
  for (long i = 0; i < n; ++i) d[i] = __builtin_floor(d[i]) * __builtin_sqrt(d[i]) + (double)u[i];
  for (long i = 0; i < n; ++i) u[i] = __builtin_popcountll(u[i]) + (u[i] >> (i & 63));
}
static long helper(long x) { return x * 3; }
__attribute__((visibility("default"))) long tack_plain(long x) { return helper(x) / 7; }
"""

# An extension -> how the error names it, the compiler's name for it, and a function that uses it.
BEYOND = {
    "aes": ("AES", "__m128i F(__m128i a, __m128i b) { return _mm_aesenc_si128(a, b); }"),
    "pclmul": (
        "PCLMUL",
        "__m128i F(__m128i a, __m128i b) { return _mm_clmulepi64_si128(a, b, 0); }",
    ),
    "sha": ("SHA", "__m128i F(__m128i a, __m128i b) { return _mm_sha1msg1_epu32(a, b); }"),
    "gfni": ("GFNI", "__m128i F(__m128i a, __m128i b) { return _mm_gf2p8mul_epi8(a, b); }"),
    "adx": ("ADX", 'void F(long long *o) { __asm__("adcx %0, %0" : "+r"(*o)); }'),
    "rdrnd": ("RDRAND", "int F(unsigned long long *p) { return _rdrand64_step(p); }"),
    "fma4": ("FMA4", "__m128 F(__m128 a, __m128 b, __m128 c) { return _mm_macc_ps(a, b, c); }"),
    "xop": ("XOP", "__m128i F(__m128i a, __m128i b) { return _mm_rot_epi8(a, b); }"),
    "sse4a": ("SSE4A", "__m128i F(__m128i a, __m128i b) { return _mm_extract_si64(a, b); }"),
    "avx512vnni": (
        "VNNI",
        "__m512i F(__m512i a, __m512i b, __m512i c) { return _mm512_dpbusd_epi32(a, b, c); }",
    ),
    "avxvnni": (
        "",  # the disassembler may not know it, which refuses it as well
        "__m256i F(__m256i a, __m256i b, __m256i c) { return _mm256_dpbusd_avx_epi32(a, b, c); }",
    ),
    "avx512vbmi": (
        "VBMI",
        "__m512i F(__m512i a, __m512i b) { return _mm512_permutexvar_epi8(a, b); }",
    ),
    "avx512vbmi2": (
        "VBMI2",
        "__m512i F(__m512i a, __m512i b) { return _mm512_shldv_epi32(a, b, a); }",
    ),
    "avx512ifma": (
        "IFMA",
        "__m512i F(__m512i a, __m512i b, __m512i c) { return _mm512_madd52lo_epu64(a, b, c); }",
    ),
    "avx512vpopcntdq": ("VPOPCNTDQ", "__m512i F(__m512i a) { return _mm512_popcnt_epi32(a); }"),
    "avx512bitalg": ("BITALG", "__m512i F(__m512i a) { return _mm512_popcnt_epi8(a); }"),
    "avx512bf16": ("", "__m512bh F(__m512 a, __m512 b) { return _mm512_cvtne2ps_pbh(a, b); }"),
    "avx512fp16": ("", "__m512h F(__m512h a, __m512h b) { return _mm512_add_ph(a, b); }"),
}

# Instructions that Capstone puts into no group: the encoding or the mnemonic has to tell.
UNGROUPED = {
    "ssse3": ("x86-64-v2", "__m128i F(__m128i a) { return _mm_maddubs_epi16(a, a); }"),
    "popcnt": ("x86-64-v2", "int F(unsigned x) { return __builtin_popcount(x); }"),
    "crc32": ("x86-64-v2", "unsigned F(unsigned a, char b) { return _mm_crc32_u8(a, b); }"),
    "cx16": (
        "x86-64-v2",
        "int F(__int128 *p, __int128 a) { return __sync_bool_compare_and_swap(p, a, 1); }",
    ),
    "fma": ("x86-64-v3", "__m128 F(__m128 a, __m128 b) { return _mm_fmadd_ps(a, b, a); }"),
    "avx2": ("x86-64-v3", "__m256i F(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }"),
    "lzcnt": ("x86-64-v3", "unsigned F(unsigned x) { return _lzcnt_u32(x); }"),
    "movbe": ("x86-64-v3", "unsigned F(unsigned *x) { return __builtin_bswap32(*x); }"),
    "f16c": ("x86-64-v3", "__m128 F(__m128i a) { return _mm_cvtph_ps(a); }"),
    "bmi2": ("x86-64-v3", "unsigned F(unsigned a, unsigned b) { return _pext_u32(a, b); }"),
    "avx512dq": ("x86-64-v4", "short F(short a, short b) { return _kadd_mask16(a, b); }"),
    "avx512cd": ("x86-64-v4", "__m512i F(__m512i a) { return _mm512_conflict_epi32(a); }"),
    "avx512bw": ("x86-64-v4", "long F(__m512i a) { return _mm512_cmpgt_epi8_mask(a, a); }"),
    "avx512vl": ("x86-64-v4", "__m256d F(__m256d a) { return _mm256_maskz_rcp14_pd(3, a); }"),
    "general-regs-only": ("x86-64", "int F(unsigned x) { return __builtin_ctz(x); }"),
}

pytestmark = pytest.mark.skipif(not levels(), reason="the instructions are those of x86-64")


def compiled(folder: Path, text: str, *flags: str, name: str = "library") -> Library:
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    command = ["gcc", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-s", *flags]
    subprocess.run([*command, "-o", library, source, "-lm"], check=True, capture_output=True)
    return read_library(library)


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loops")
    return {level: compiled(folder, LOOPS, f"-march={level}", name=level) for level in X86}


@pytest.mark.parametrize("level", X86)
def test_the_level_of_a_library_is_found(level, loops):
    found = find_level(loops[level])
    assert found.level == level
    assert found.symbol == ("tack_loops" if level != "x86-64" else "")


@pytest.mark.parametrize("declared", X86)
@pytest.mark.parametrize("built", X86)
def test_a_library_above_its_level_is_refused(built, declared, loops):
    library = loops[built]
    if X86.index(built) <= X86.index(declared):
        assert check_level(library, declared) == built
        return
    with pytest.raises(ToolchainError) as caught:
        check_level(library, declared)
    message = str(caught.value)
    assert message.startswith(f"{library.path}: declared {declared}, but the instruction '")
    assert f"' in tack_loops needs {built}; look for -m flags in CFLAGS" in message


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A library for each function of BEYOND and UNGROUPED that holds it alone."""
    texts = {name: text for name, (_, text) in {**BEYOND, **UNGROUPED}.items()}
    symbols = {name: f"f_{name.replace('-', '_')}" for name in texts}
    body = [
        f'__attribute__((visibility("default"), target("{name}"))) '
        + text.replace(" F(", f" {symbols[name]}(")
        for name, text in texts.items()
    ]
    together = compiled(
        tmp_path_factory.mktemp("functions"), "\n".join(["#include <x86intrin.h>", *body, ""])
    )
    (text_section,) = (code for code in together.code if code.name == ".text")
    starts = sorted(together.functions.values())
    alone = {}
    for name, symbol in symbols.items():
        start = together.functions[symbol]
        end = next((s for s in starts if s > start), start + 8)
        content = text_section.content[start - text_section.address : end - text_section.address]
        code = Code(".text", start, content[: content.rindex(b"\xc3") + 1])
        alone[name] = Library(together.path, "x86-64", (code,), {symbol: start}, ())
    return alone


@pytest.mark.parametrize("name", BEYOND)
def test_an_extension_that_no_level_has_is_refused(name, functions):
    with pytest.raises(ToolchainError, match=r"which no CPU level has") as caught:
        check_level(functions[name], "x86-64-v4")
    assert BEYOND[name][0] in str(caught.value)
    assert f" in f_{name} needs " in str(caught.value)


@pytest.mark.parametrize("name", UNGROUPED)
def test_instructions_of_no_group_are_known(name, functions):
    assert find_level(functions[name]).level == UNGROUPED[name][0]


def test_a_bit_scan_that_looks_like_tzcnt_needs_no_level():
    code = Code(".text", 0, b"\xf3\x0f\xbc\xc7")
    assert find_level(Library(Path("a.so"), "x86-64", (code,), {}, ())).level == "x86-64"


A64 = {
    "nop": (0xD503201F, ""),
    "add x0, x1, x2": (0x8B020020, ""),
    "fadd s0, s1, s2": (0x1E222820, ""),
    "add v0.4s, v1.4s, v2.4s": (0x4EA28420, ""),
    "fcvt s0, h1": (0x1EE24020, ""),
    "fcvtl v0.4s, v1.4h": (0x0E217820, ""),
    "bti c": (0xD503245F, ""),
    "ldadd w0, w1, [x2]": (0xB8200041, "LSE"),
    "fadd h0, h1, h2": (0x1EE22820, "FP16"),
    "sdot v0.4s, v1.16b, v2.16b": (0x4E829420, "DotProd"),
    "sqrdmlah v0.2s, v1.2s, v2.2s": (0x2E828420, "RDM"),
    "crc32b w0, w1, w2": (0x1AC24020, "CRC"),
    "aese v0.16b, v1.16b": (0x4E284820, "Crypto"),
    "add z0.s, z1.s, z2.s": (0x04A20020, "SVE"),
}


@pytest.mark.parametrize("instruction", A64)
def test_the_level_of_an_aarch64_instruction(instruction):
    word, extension = A64[instruction]
    code = Code(".text", 0, struct.pack("<I", word))
    found = find_level(Library(Path("a.so"), "aarch64", (code,), {}, ()))
    assert (found.level, found.reason[: len(extension)]) == (
        "" if extension else "aarch64",
        extension,
    )


def test_a_library_of_another_machine_is_refused(tmp_path):
    library = compiled(tmp_path, LOOPS)
    with pytest.raises(ToolchainError, match="compiled for x86-64 and declared aarch64"):
        check_level(library, "aarch64")


def test_bytes_that_are_no_instruction_are_refused():
    code = Code(".text", 0x1000, b"\xc3\x62\xf5\x7c\x48\x58")
    library = Library(Path("a.so"), "x86-64", (code,), {"f": 0x1000}, ())
    found = find_level(library)
    assert (found.level, found.symbol) == ("", "f")
    assert found.instruction == "bytes 62 f5 7c 48 58"


def test_exports_and_needs_are_read(tmp_path):
    library = compiled(tmp_path, LOOPS)
    assert set(library.functions) == {"tack_loops", "tack_plain"}
    assert library.family == "x86-64"
    needed = compiled(
        tmp_path,
        '#include <math.h>\n__attribute__((visibility("default"))) double g(double x)'
        " { return sin(x); }",
        "-Wl,--as-needed",
        name="needs",
    )
    assert "libm.so.6" in needed.needed


@pytest.mark.parametrize("kept", [0, 3, 40, 64, 500, 5000])
def test_a_truncated_library_is_refused(kept, tmp_path):
    library = compiled(tmp_path, LOOPS)
    library.path.write_bytes(library.path.read_bytes()[:kept])
    with pytest.raises(
        ToolchainError, match=r"library\.so: (this is not an ELF|the library is dam)"
    ):
        read_library(library.path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "a.so").write_text("no library")
    with pytest.raises(ToolchainError, match="not an ELF library"):
        read_library(tmp_path / "a.so")
    with pytest.raises(ToolchainError, match="cannot be read: No such file"):
        read_library(tmp_path / "b.so")
