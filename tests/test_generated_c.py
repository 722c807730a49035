"""Generated C: what it reads like, that it compiles cleanly, and that any split runs the same."""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from c_compiler import FLAGS, compile_c
from harness import levels

import tack
from tack.compile import assemble, generate, symbol_of
from tack.identity import generator_identity, generator_state
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

TARGET = Target("cpu", "x86-64-v2")
Load = Callable[[str], ModuleType]


def source(kernel: Any, signature: str) -> Source:
    variant = Variant(kernel.definition, Signature.parse(signature), TARGET)
    return generate(variant, renderer_for(TARGET))


def unit(*sources: Source) -> str:
    return assemble("test", sources, renderer_for(TARGET))


# What it reads like

SMOOTH = """
    @tack.func
    def clamp(index, count):
        if index < 0:
            return 0
        if index >= count:
            return count - 1
        return index

    @tack.kernel
    def smooth(image, radius, out):
        for y, x in tack.ndrange(image.shape[0], image.shape[1]):
            total = 0.0
            for dx in range(-radius, radius + 1):
                total += image[y, clamp(x + dx, image.shape[1])]
            if total > 1.0:
                total = 1.0
            out[y, x] = total
"""

SMOOTH_C = """
{
  if (begin >= end) {
    return;
  }
  int64_t x_first = begin % x_count;
  int64_t y = begin / x_count;
  for (int64_t left = end - begin; left > 0;) {
    const int64_t x_stop = left < x_count - x_first ? x_first + left : x_count;
    left -= x_stop - x_first;
    for (int64_t x = x_first; x < x_stop; ++x) {
      float total = 0.0f;
      for (int64_t dx = -radius, dx_end = radius + 1; dx < dx_end; ++dx) {
        int64_t index_clamp_1 = x + dx;
        int64_t count_clamp_1 = image_shape_1;
        int64_t clamp_2 = 0;
        if (index_clamp_1 < 0) {
          clamp_2 = 0;
        } else if (index_clamp_1 >= count_clamp_1) {
          clamp_2 = count_clamp_1 - 1;
        } else {
          clamp_2 = index_clamp_1;
        }
        total += image[y * image_shape_1 + clamp_2];
      }
      if (total > 1.0f) {
        total = 1.0f;
      }
      out[y * out_shape_1 + x] = total;
    }
    x_first = 0;
    ++y;
  }
}
"""


def test_a_kernel_reads_as_a_person_would_write_it(load: Load) -> None:
    text = source(load(SMOOTH).smooth, "f32[:, :], i64, f32[:, :]").text
    assert SMOOTH_C in text


def test_a_file_has_its_entry_points_and_ends_in_names_and_keys(load: Load) -> None:
    module = load("""
        @tack.kernel
        def saxpy(a, x, y):
            for i in range(x.shape[0]):
                y[i] = a * x[i] + y[i]
    """)
    made = source(module.saxpy, "f32, f32[:], f32[:]")
    symbol = symbol_of(made.variant)
    text = unit(made)
    assert (
        textwrap.dedent(f"""
        TACK_INLINE void {symbol}(
            float a, const float *x, float *y, int64_t begin, int64_t end)
        {{
          for (int64_t i = begin; i < end; ++i) {{
            y[i] = a * x[i] + y[i];
          }}
        }}

        TACK_ENTRY void {symbol}_general(
            const tack_context *ctx, const tack_slot *args, int64_t begin, int64_t end)
        {{
          (void)ctx;
          {symbol}(
              args[0].f32, args[1].ptr, args[3].ptr, begin, end);
        }}

        static void {symbol}_disjoint(
            float a, const float *restrict x, float *restrict y, int64_t begin, int64_t end)
        {{
          {symbol}(
              a, x, y, begin, end);
        }}
    """)
        in text
    )
    assert text.endswith(
        f"/* {made.variant.kernel.name}(f32, f32[:], f32[:])\n   {made.source_key} */\n"
    )


# Flavours, slots and symbols


def test_there_is_a_noalias_entry_where_a_promise_can_help(load: Load) -> None:
    module = load("""
        @tack.kernel
        def fill(x, value):
            for i in range(x.shape[0]):
                x[i] = value

        @tack.kernel
        def nothing(x, y):
            for i in range(x.shape[0]):
                pass

        @tack.kernel
        def copy(x, y):
            for i in range(x.shape[0]):
                y[i] = x[i]
    """)
    flavours = {
        name: [flavour for flavour, _ in source(getattr(module, name), signature).launch.entries]
        for name, signature in {
            "fill": "f32[:], f32",
            "nothing": "f32[:], f32[:]",
            "copy": "f32[:], f32[:]",
        }.items()
    }
    assert flavours == {
        "fill": ["general"],
        "nothing": ["general"],
        "copy": ["general", "noalias"],
    }


def test_slots_hold_what_is_used(load: Load) -> None:
    module = load("""
        @tack.kernel
        def kernel(unused, image, other, scale, gain, out):
            for y, x in tack.ndrange(other.shape[0], 7):
                out[y, x] = gain * image[y, x]
    """)
    launch = source(module.kernel, "i64, f32[:, :], u8[:], f32, f32, f32[:, 9]").launch
    assert launch.slots == (
        ("pointer", 1),
        ("extent", 1, 1),
        ("extent", 2, 0),
        ("scalar", 4, "f32"),
        ("pointer", 5),
        ("loop", 1),
    )
    assert launch.written == (5,)
    assert launch.host == (("slot", 2, "i64"), ("loop", 0), ("const", 7), ("loop", 1))


def test_symbols_stand_for_kernel_signature_and_options(load: Load) -> None:
    text = "@tack.kernel\ndef größe(x):\n    for i in range(3):\n        x[i] = {}\n"
    first, second = load(text.format(1)), load(text.format(2))
    symbols = {
        symbol_of(source(first.größe, signature).variant) for signature in ("f32[:]", "f64[:]")
    }
    assert len(symbols) == 2
    assert all(symbol.endswith("_gr_u00f6_u00dfe") for symbol in symbols)
    made, edited = source(first.größe, "f32[:]"), source(second.größe, "f32[:]")
    assert made.source_key != edited.source_key
    moved = Variant(second.größe.definition, made.variant.signature, Target("cpu", "x86-64-v4"))
    assert symbol_of(moved) == symbol_of(edited.variant)


def test_the_text_is_the_same_for_every_level_and_hash_seed(tmp_path: Path) -> None:
    module = tmp_path / "kernels_of_a_test.py"
    module.write_text("import tack\n" + textwrap.dedent(SMOOTH), encoding="utf-8")
    program = textwrap.dedent("""
        import hashlib, sys
        import kernels_of_a_test as module
        from tack.compile import assemble, generate
        from tack.identity import generator_identity
        from tack.model.signature import Signature
        from tack.model.targets import Target
        from tack.model.variant import Variant
        from tack.render.renderer import renderer_for
        target = Target("cpu", sys.argv[1])
        signature = Signature.parse("f32[:, :], i64, f32[:, :]")
        renderer = renderer_for(target)
        made = generate(Variant(module.smooth.definition, signature, target), renderer)
        text = assemble("unit", [made], renderer)
        print(hashlib.sha256(text.encode()).hexdigest(), made.launch, generator_identity())
    """)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, level],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for level, seed in (("x86-64-v2", "0"), ("x86-64-v4", "1"), ("x86-64-v3", "2"))
    }
    assert len(outputs) == 1


def test_the_identity_of_the_generator_is_a_digest_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(bytes.fromhex(generator_identity())) == 32
    original = generator_identity.__wrapped__
    shutil.copytree(tack.__path__[0], tmp_path / "tack")
    monkeypatch.setattr(tack, "__path__", [str(tmp_path / "tack")])
    assert original() == generator_identity()
    state = generator_state()
    compile_py = tmp_path / "tack" / "compile.py"
    os.utime(compile_py, (1, 1))
    assert generator_state() != state
    assert original() == generator_identity()
    (tmp_path / "tack" / "passes" / "new.py").write_text("", encoding="utf-8")
    added = original()
    compile_py.write_text("", encoding="utf-8")
    assert len({generator_identity(), added, original()}) == 3


# Compilers

ODDITIES = """
    @tack.kernel
    def compared(x, y, n: tack.u8, flag: tack.bool_):
        for i in range(x.shape[0]):
            while ~n != 0 and i < 0:
                y[i] += n + ~tack.u8(i < n)
            if x[i] < 0 or x[i] > 255 or n >= 0 or y[i] == y[i]:
                y[i] = flag == True
            elif flag > False:
                y[i] = x[i] != x[i]
            else:
                y[i] = x[i] // (x[i] - x[i])

    @tack.kernel
    def narrow(x, y, n: tack.i8):
        for i in range(x.shape[0]):
            x[i] += 1
            x[i] = -x[i] + ~x[i] * x[i] - (x[i] << n) // 3 % (x[i] | 1)
            y[i] = x[i] ** 3 if x[i] > n else abs(x[i])
            y[i] -= min(x[i], y[i], n)

    @tack.kernel
    def floats(x, y, a):
        for i in range(x.shape[0]):
            y[i] = tack.floor(x[i]) // a % 3 + tack.sqrt(abs(x[i])) * 0.1
            y[i] = tack.fma(y[i], a, -x[i]) + max(x[i], y[i], a) + int(x[i])

    @tack.kernel
    def loops(x, n):
        for i, j, k in tack.ndrange(n, n, 3):
            total = 0
            last = 0
            for t in range(n, -n, -3):
                for t in range(t, n):
                    if t == 5:
                        continue
                    total += t
                n_of_round = t
                while n_of_round > 0:
                    n_of_round //= 2
                    if n_of_round == 7:
                        break
                last = n_of_round
            for unread in range(n):
                for unread in range(n):
                    total += 1
            x[i, j, k] = total + last

    @tack.kernel
    def names(int, restrict, args, ctx, begin, end, INT64_MIN, tack_slot, NULL):
        for i in range(int):
            float = restrict + args + ctx + begin + end + INT64_MIN + tack_slot
            _Bool = float
            __x = _Bool
            NULL[i] = __x
"""

SIGNATURES = {
    "compared": ["u8[:], u8[:], u8, bool", "i8[:], f32[:], u8, bool", "u64[:], i64[:], u8, bool"],
    "narrow": ["i8[:], i8[:], i8", "i16[:], i32[:], i8", "i64[:], i64[:], i8"],
    "floats": ["f32[:], f32[:], f32", "f64[:], f64[:], f64"],
    "loops": ["i64[:, :, :], i64", "i8[:, :, :], i8"],
    "names": ["i64, i64, i64, i64, i64, i64, i64, i64, i64[:]"],
}


def oddities(load: Load) -> str:
    module = load(ODDITIES)
    return unit(*(source(getattr(module, k), s) for k, rows in SIGNATURES.items() for s in rows))


@pytest.mark.parametrize("optimize", ["-O0", "-O2", "-O3"])
def test_gcc_has_nothing_to_say_about_odd_kernels(
    optimize: str, load: Load, tmp_path: Path
) -> None:
    text = oddities(load)
    for level in levels():
        compile_c(text, tmp_path, level, (optimize,))


@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
def test_clang_has_nothing_to_say_about_odd_kernels(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "unit.c"
    path.write_text(oddities(load), encoding="utf-8")
    with as_file(files("tack.templates") / "c") as headers:
        command = ["clang", *FLAGS, f"-I{headers}", "-c", str(path), "-o", str(tmp_path / "unit.o")]
        command.remove("-shared")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm")
def test_a_library_exports_its_entry_points_alone(load: Load, tmp_path: Path) -> None:
    made = source(load(SMOOTH).smooth, "f32[:, :], i64, f32[:, :]")
    compile_c(unit(made), tmp_path)
    listed = subprocess.run(
        ["nm", "--dynamic", "--defined-only", str(tmp_path / "unit.so")],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()} - {"_init", "_fini"}
    assert names == {symbol for _, symbol in made.launch.entries}


# Any split of the iterations


def call(library: ctypes.CDLL, symbol: str, slots: Sequence[int], begin: int, end: int) -> None:
    packed = (ctypes.c_int64 * len(slots))(*slots)
    function = library[symbol]
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function.restype = None
    function(None, packed, begin, end)


COUNTING = """
    @tack.kernel
    def one(out, n):
        for i in range(n):
            out[i] += 1 + i

    @tack.kernel
    def two(out, n, m):
        for i, j in tack.ndrange(n, m):
            if j == 1:
                continue
            out[i * m + j] += 1 + 10 * i + j

    @tack.kernel
    def three(out, n, m, l):
        for i, j, k in tack.ndrange(n, m, l):
            out[(i * m + j) * l + k] += 1 + 100 * i + 10 * j + k
"""


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("one", (1,)), ("one", (17,)), ("two", (5, 7)), ("two", (1, 9)), ("two", (9, 1))),
        *(("three", (3, 4, 5)), ("three", (4, 1, 3)), ("three", (2, 5, 1)), ("three", (1, 1, 1))),
    ],
)
def test_any_split_of_the_iterations_runs_each_of_them_once(
    name: str, shape: tuple[int, ...], load: Load, tmp_path: Path
) -> None:
    made = source(getattr(load(COUNTING), name), ", ".join(["i64[:]", *["i64"] * len(shape)]))
    library = compile_c(unit(made), tmp_path)
    count = int(np.prod(shape))
    weights = [1, 10, 100][: len(shape)][::-1]
    indices = np.indices(shape)
    expected = 1 + sum(w * index for w, index in zip(weights, indices, strict=True))
    if name == "two":
        expected = np.where(indices[1] == 1, 0, expected)
    rng = random.Random(count)
    for _ in range(20):
        out = np.zeros(count, np.int64)
        values = {"pointer": out.ctypes.data}
        slots = [
            values.get(slot[0]) or shape[slot[1] - (slot[0] == "scalar")]
            for slot in made.launch.slots
        ]
        cuts = [0, *sorted(rng.randint(0, count) for _ in range(rng.randrange(4))), count]
        for begin, end in itertools.pairwise(cuts):
            call(library, made.launch.entries[0][1], slots, begin, end)
        assert (out.reshape(shape) == expected).all()
