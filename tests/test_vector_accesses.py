"""Threads of a GPU access several elements at once where that is the same, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus import edges
from generator import load_module
from gpu_twins import DIALECTS, assembly_of_hip, compile_image, emulated_disagreements
from native import array, kernel, make, spied
from twins import Pair

from tack.compile import assemble, generate
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

TEXT = '''
import tack

@tack.kernel
def saxpy(a: tack.f32, x, y, out):
    for i in range(x.shape[0]):
        out[i] = a * x[i] + y[i]

@tack.kernel
def copy(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]

@tack.kernel
def filled(out):
    for i in range(out.shape[0]):
        out[i] = i

@tack.kernel
def in_place(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * x[i] + 1

@tack.kernel
def flat(x, out):
    for i in range(x.size):
        out.flat[i] = x.flat[i] + 1

@tack.kernel
def chosen(x, y, out):
    """What some iterations leave out keeps its value; ``y`` may be shorter than ``x``."""
    for i in range(x.shape[0]):
        if x[i] > 3 and i < y.shape[0]:
            out[i] = y[i]
        elif out[i] < 0:
            out[i] = x[i]

@tack.kernel
def skipping(x, y, out):
    for i in range(x.shape[0]):
        if x[i] % 3 == 0:
            continue
        y[i] = x[i]
        out[i] = i + x[i]

@tack.kernel
def twice(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i]
        out[i] += out[i] // 2
        half = out[i] // 2
        if half > 4:
            half = half - x[i]
        out[i] = half

@tack.kernel
def plane(x, y, out):
    for i, j in tack.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = x[i, j] * y[j]

@tack.kernel
def inside(x, out):
    for i, j in tack.ndrange(out.shape[0] - 1, out.shape[1] - 1):
        out[i, j] = x[i, j] + 1

@tack.kernel
def below(x, out):
    """The row of ``x`` is another one: still the element of that row at the index."""
    for i, j in tack.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = x[i + 1, j]

@tack.kernel
def cube(x, out):
    for i, j, k in tack.ndrange(x.shape[0], x.shape[1], x.shape[2]):
        out[i, j, k] = x[i, j, k] - i

@tack.kernel
def looked_up(table, x, out):
    for i in range(x.shape[0]):
        out[i] = table[x[i] & 7]

@tack.kernel
def scattered(at, x, out):
    for i in range(x.shape[0]):
        out[at[i]] = x[i]

@tack.kernel
def named(tack_f32x4, out):
    for i in range(out.shape[0]):
        lane = tack_f32x4[i] + i
        at = lane * 2
        out[i] = at

# Those that keep the plain form alone.

@tack.kernel
def shifted(x, out):
    for i in range(out.shape[0]):
        out[i + 1] = x[i + 1]

@tack.kernel
def neighbours(x, out):
    for i in range(out.shape[0]):
        out[2 * i] = x[2 * i] + x[2 * i + 1]

@tack.kernel
def transposed(x, out):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        out[j * x.shape[0] + i] = x[j, i]

@tack.kernel
def guarded(x, out):
    for i in range(out.shape[0]):
        if i < x.shape[0]:
            out[i] = x[i]

@tack.kernel
def counted(x, out):
    for i in range(x.shape[0]):
        tack.atomic_add(out, x[i] & 7, 1)

@tack.kernel
def rounds(x, out):
    for i in range(x.shape[0]):
        out[i] = 0
        for j in range(8):
            out[i] += x[i] * j
'''

MANY = 8 * 3 * 11 + 5
"""Iterations: more than the emulated threads take at once, and a rest."""

WIDE: dict[str, tuple[str, int, list[tuple[str, tuple[int, ...]]]]] = {
    # Kernel and signature -> lanes, and the arrays of a call.
    "saxpy": ("f32, f32[:], f32[:], f32[:]", 4, [("f32", (MANY,))] * 3),
    "copy": ("f16[:], f16[:]", 8, [("f16", (MANY,))] * 2),
    "copy of bytes": ("u8[:], u8[:]", 8, [("u8", (MANY,))] * 2),
    "copy of bools": ("bool[:], bool[:]", 8, [("bool", (MANY,))] * 2),
    "copy to wider": ("i8[:], i32[:]", 4, [("i8", (MANY,)), ("i32", (MANY,))]),
    "copy of doubles": ("f64[:], f64[:]", 2, [("f64", (MANY,))] * 2),
    "copy of few": ("f32[:], f32[:]", 4, [("f32", (3,))] * 2),
    "copy of none": ("f32[:], f32[:]", 4, [("f32", (0,))] * 2),
    "filled": ("i32[:]", 4, [("i32", (MANY,))]),
    "in_place": ("i64[:]", 2, [("i64", (MANY,))]),
    "flat": ("i32[:, :], i32[:, :]", 4, [("i32", (9, 13))] * 2),
    "chosen": ("i32[:], i32[:], i32[:]", 4, [("i32", (n,)) for n in (MANY, 40, MANY)]),
    "skipping": ("i32[:], i32[:], i32[:]", 4, [("i32", (MANY,))] * 3),
    "twice": ("i16[:], i16[:]", 8, [("i16", (MANY,))] * 2),
    "plane": ("f32[:, :], f32[:], f32[:, :]", 4, [("f32", s) for s in ((7, 60), (60,), (7, 60))]),
    "plane of odd rows": (
        "f32[:, :], f32[:], f32[:, :]",
        4,
        [("f32", s) for s in ((7, 61), (61,), (7, 61))],
    ),
    "plane of pinned rows": (
        "f32[:, 8], f32[:], f32[:, 8]",
        4,
        [("f32", s) for s in ((7, 8), (8,), (7, 8))],
    ),
    "inside": ("i32[:, :], i32[:, :]", 4, [("i32", (7, 68))] * 2),
    "below": ("i32[:, :], i32[:, :]", 4, [("i32", (8, 64)), ("i32", (7, 64))]),
    "cube": ("i32[:, :, :], i32[:, :, :]", 4, [("i32", (3, 5, 36))] * 2),
    "looked_up": ("f32[:], i32[:], f32[:]", 4, [("f32", (8,)), *[("i32", (MANY,))] * 2]),
    "named": ("f32[:], f32[:]", 4, [("f32", (MANY,))] * 2),
    "scattered": ("i64[:], f32[:], f32[:]", 2, []),
}

PLAIN = {
    "shifted": "f32[:], f32[:]",
    "neighbours": "f32[:], f32[:]",
    "transposed": "f32[:, :], f32[:]",
    "guarded": "f32[:], f32[:]",
    "counted": "i32[:], i32[:]",
    "rounds": "i32[:], i32[:]",
    "copy": "f32[:; strided], f32[:; strided]",
    "below": "f32[:, 6], f32[:, 6]",
}


def written(name: str, signature: str, target: Target, folder: Path, **fields: Any) -> Source:
    """What is generated for a kernel of the text; its name is the first word of ``name``."""
    definition = getattr(load_module(TEXT, folder), name.split(maxsplit=1)[0]).definition
    renderer = replace(renderer_for(target), **fields)
    return generate(Variant(definition, Signature.parse(signature), target), renderer)


def with_a_factor(memory: list[Any]) -> list[Any]:
    return [1.5, *memory]


def pairs(folder: Path) -> list[Pair]:
    module = load_module(TEXT, folder)
    made = []
    for name, (signature, _, arrays) in WIDE.items():
        memory = edges(*arrays)
        bind: Callable[[list[Any]], list[Any]] = list
        if name == "saxpy":
            bind = with_a_factor
        if name == "looked_up":
            memory = edges(("f32", (8,)), ("i32", (MANY,)), ("f32", (MANY,)))
        if name == "scattered":
            memory = permuted
        made.append(Pair(getattr(module, name.split()[0]), signature, memory, bind))
    return made


def permuted() -> list[np.ndarray[Any, Any]]:
    x, out = edges(("f32", (MANY,)), ("f32", (MANY,)))()
    return [np.random.default_rng(5).permutation(MANY), x, out]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_wide_form_has_the_bits_of_c(dialect: str, tmp_path: Path) -> None:
    found = emulated_disagreements(pairs(tmp_path), dialect, tmp_path / dialect)
    assert not found, "\n".join(found.values())


@pytest.mark.parametrize("name", WIDE)
def test_a_kernel_has_a_wide_form(name: str, tmp_path: Path) -> None:
    signature, lanes, _ = WIDE[name]
    launch = written(name, signature, DIALECTS["cuda"], tmp_path).launch
    assert launch.lanes == lanes
    assert "aligned" in dict(launch.entries)
    pointers = {number for number, slot in enumerate(launch.slots) if slot[0] == "pointer"}
    assert pointers & dict(launch.multiples).keys()
    assert max(dict(launch.multiples).values()) <= 16


@pytest.mark.parametrize("name", PLAIN)
def test_a_kernel_keeps_its_plain_form_alone(name: str, tmp_path: Path) -> None:
    source = written(name, PLAIN[name], DIALECTS["cuda"], tmp_path)
    assert (source.launch.lanes, source.launch.multiples) == (1, ())
    assert "aligned" not in dict(source.launch.entries)
    assert "_wide" not in source.text


def test_the_launcher_is_told_what_has_to_be_a_multiple_of_what(tmp_path: Path) -> None:
    launch = written("plane", WIDE["plane"][0], DIALECTS["cuda"], tmp_path).launch
    assert {launch.slots[slot]: number for slot, number in launch.multiples} == {
        ("pointer", 0): 16,
        ("extent", 0, 1): 4,
        ("pointer", 1): 16,
        ("pointer", 2): 16,
        ("extent", 2, 1): 4,
    }
    launch = written("copy", "i8[:], i32[:]", DIALECTS["cuda"], tmp_path).launch
    assert {launch.slots[slot]: number for slot, number in launch.multiples} == {
        ("pointer", 0): 4,
        ("pointer", 1): 16,
    }


def test_what_is_not_at_the_index_is_accessed_one_by_one(tmp_path: Path) -> None:
    launch = written("looked_up", WIDE["looked_up"][0], DIALECTS["cuda"], tmp_path).launch
    assert [launch.slots[slot] for slot, _ in launch.multiples] == [("pointer", 1), ("pointer", 2)]
    launch = written("chosen", WIDE["chosen"][0], DIALECTS["cuda"], tmp_path).launch
    assert [launch.slots[slot] for slot, _ in launch.multiples] == [("pointer", 0)]


def test_a_renderer_without_vector_accesses_gets_no_wide_form(tmp_path: Path) -> None:
    source = written("copy", "f32[:], f32[:]", DIALECTS["cuda"], tmp_path, supports_float4=False)
    assert "aligned" not in dict(source.launch.entries)
    assert "aligned" not in dict(
        written("copy", "f32[:], f32[:]", Target("cpu", "x86-64"), tmp_path).launch.entries
    )


# What compilers make of it.

VECTORED = {
    "saxpy": (4, "f32"),
    "copy": (4, "[ub]32"),
    "copy of doubles": (2, "f64"),
}


@pytest.mark.parametrize("name", VECTORED)
def test_nvcc_loads_and_stores_vectors(name: str, tmp_path: Path) -> None:
    target = DIALECTS["cuda"]
    source = written(name, WIDE[name][0], target, tmp_path)
    unit, output = tmp_path / "unit.cu", tmp_path / "unit.ptx"
    unit.write_text(assemble("unit", [source], renderer_for(target)), encoding="utf-8")
    compile_image(unit, Target("cuda", "compute_90"), output)
    text = output.read_text(encoding="utf-8")
    _, *entries = re.split(r"\.visible \.entry ", text)
    by_name = {re.split(r"\W", entry, maxsplit=1)[0]: entry for entry in entries}
    symbols = dict(source.launch.entries)
    width, kind = VECTORED[name]
    for access in (r"ld\.global(?:\.nc)?", r"st\.global"):
        vector = rf"{access}\.v{width}\.{kind}"
        assert re.search(vector, by_name[symbols["aligned"]])
        assert not re.search(vector, by_name[symbols["noalias"]])
    assert ".local" not in text, "a vector lies in registers"


def test_clang_loads_and_stores_vectors_for_amd(tmp_path: Path) -> None:
    target = DIALECTS["hip"]
    sources = [written(name, WIDE[name][0], target, tmp_path) for name in VECTORED]
    unit = tmp_path / "unit.hip"
    unit.write_text(assemble("unit", sources, renderer_for(target)), encoding="utf-8")
    text = assembly_of_hip(unit, target.arch)
    for source in sources:
        entry = text.partition(f"\n{dict(source.launch.entries)['aligned']}:")[2]
        entry = entry.partition("s_endpgm")[0]
        assert "global_load_dwordx4" in entry
        assert "global_store_dwordx4" in entry


# What the launcher chooses.


def take(x: object, out: object) -> None:
    """Does nothing."""


def chosen(x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], **fields: Any) -> str:
    """The entry point that a call of `take` runs."""
    slots = [("pointer", 0), ("extent", 0, 0), ("pointer", 1)]
    record = make(
        [array(), array()],
        slots=slots,
        host=[("slot", 1, "i64"), ("loop", 0)],
        written=[1],
        wide="spy_wide",
        **{"noalias": "spy_noalias", "multiples": [(0, 16), (1, 4), (2, 8)], **fields},
    )
    spied().clear(len(slots))
    kernel(take, record)(x, out)
    assert spied().calls == 1
    if spied().wide_calls:
        return "aligned"
    return "noalias" if spied().noalias_calls else "general"


def floats(count: int, offset: int = 0) -> np.ndarray[Any, Any]:
    """An array at an address that is ``offset`` beyond a multiple of 64."""
    memory = np.zeros(count * 4 + 128, np.uint8)
    first = -memory.ctypes.data % 64 + offset
    return memory[first : first + count * 4].view(np.float32)


def test_an_aligned_call_runs_the_wide_form() -> None:
    assert chosen(floats(8), floats(8)) == "aligned"
    assert chosen(floats(8), floats(8, 8)) == "aligned"
    assert chosen(floats(8), floats(8), noalias=None) == "aligned"


def test_another_call_does_not() -> None:
    assert chosen(floats(8, 4), floats(8)) == "noalias"
    assert chosen(floats(8), floats(8, 4)) == "noalias"
    assert chosen(floats(7), floats(8)) == "noalias"
    assert chosen(floats(7), floats(8), noalias=None) == "general"


def test_a_call_whose_arrays_overlap_does_not() -> None:
    x = floats(16)
    assert chosen(x[:8], x[:8]) == "general"
    assert chosen(x[:8], x[4:12]) == "general"
    assert chosen(x[:8], x[4:12], noalias=None) == "general"
    assert chosen(x[:8], x[8:]) == "aligned"


@pytest.mark.parametrize(
    ("multiples", "message"),
    [
        ([(3, 4)], "multiple 0: an integer is outside"),
        ([(0, 12)], "its number is not a power of two"),
        ([(0, 0)], "multiple 0: an integer is outside"),
        ([(0,)], "multiple 0"),
    ],
)
def test_a_damaged_record_is_refused(multiples: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chosen(floats(8), floats(8), multiples=multiples)


def test_multiples_without_an_entry_are_refused() -> None:
    with pytest.raises(ValueError, match="no entry point that asks for them"):
        make([array()], slots=[("pointer", 0)], multiples=[(0, 16)])


def test_large_calls_choose_as_small_ones_do() -> None:
    many = 1 << 20
    assert chosen(floats(many), floats(many)) == "aligned"
    assert chosen(floats(many, 4), floats(many)) == "noalias"
