"""Random kernels with workgroups, on every GPU dialect, against threads of plain Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from corpus import edges
from generator import load_module
from gpu_twins import DIALECTS, Emulated, memory_after
from group_programs import GroupProgram, draw_group_program
from guarded import guarded
from harness import differences
from lanes import run_lanes
from twins import Pair

from tack.compile import generate
from tack.errors import CompileError
from tack.model.capabilities import lacking
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

CUDA = DIALECTS["cuda"]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
COUNT, WILD = (900, 600) if DEEP else (24, 12)
"""How many programs there are, and how many in which a barrier may stand anywhere."""


def arguments(program: GroupProgram) -> list[Any]:
    random, shape = np.random.default_rng(7), program.shape
    (real,) = edges((program.floating, (1,)))()
    whole = random.integers(0, 2 if program.integer == "bool" else 7, shape)
    (integer,) = edges((program.integer, (1,)))()
    arrays = [
        whole.astype(integer.dtype),
        random.integers(-3, 9, shape).astype(np.float32).astype(real.dtype),
        random.integers(0, 6, 8).astype(np.int32),
        np.int32(random.integers(1, 4)),
        np.int32(random.integers(0, 5)),
        np.zeros(shape, np.int32),
        np.zeros(shape, real.dtype),
        random.integers(0, 9, shape).astype(np.int32),
    ]
    given = [guarded(each) if isinstance(each, np.ndarray) else each for each in arrays]
    return [given[0] if program.aliased and k == 5 else each for k, each in enumerate(given)]


def source(program: GroupProgram, target: Target, folder: Path) -> tuple[Pair, Source]:
    kernel = load_module(program.text, folder).k
    definition = kernel.definition
    signature = Signature.parse(program.signature)
    variant = Variant(definition, signature, target, definition.options)
    pair = Pair(kernel, program.signature, lambda: arguments(program))
    return pair, generate(variant, renderer_for(target))


def disagreements(programs: list[GroupProgram], target: Target, folder: Path) -> list[str]:
    """Programs whose results are not those of plain Python, and where."""
    programs = [p for p in programs if not lacking(target, Signature.parse(p.signature))]
    made = [source(program, target, folder) for program in programs]
    library = Emulated([text for _, text in made], folder / target.backend)
    found = []
    for program, (pair, text) in zip(programs, made, strict=True):
        expected = arguments(program)
        run_lanes(program.text, "k", program.group, program.extents, expected)
        for noalias in (False, True):
            memory = memory_after(pair, text, library, noalias=noalias)
            differ = differences(expected, memory)
            if differ:
                found.append(f"{program.text}{program.signature}:\n{differ}")
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_random_programs_have_the_bits_of_plain_python(dialect: str, tmp_path: Path) -> None:
    number = list(DIALECTS).index(dialect)
    programs = [draw_group_program(seed) for seed in range(number, COUNT, len(DIALECTS))]
    found = disagreements(programs, DIALECTS[dialect], tmp_path)
    assert not found, found[0]


def test_a_barrier_is_refused_or_all_lanes_come_to_it(tmp_path: Path) -> None:
    accepted, refused = [], 0
    for seed in range(WILD):
        program = draw_group_program(seed, wild=0.02)
        try:
            source(program, CUDA, tmp_path)
            accepted.append(program)
        except CompileError as error:
            refused += "is not the same for all of them" in str(error)
    assert len(accepted) + refused == WILD
    assert min(len(accepted), refused) > WILD // 5
    found = disagreements(accepted, CUDA, tmp_path)
    assert not found, found[0]


_OBJECTS = """
import tack


@tack.device_class
class Row:
    def __init__(self, values, shift):
        self.values = values
        self.shift = shift

    @tack.func
    def moved(self, i):
        held = tack.shared(tack.f32, 8)
        held[tack.thread_id()] = self.values[i]
        if self.shift < 0:
            return self.values[i]
        tack.barrier()
        there = (tack.thread_id() + self.shift) % 8
        return held[there] + tack.block_max(held[there])


@tack.kernel(group=8)
def k(row, out):
    for i in range(out.shape[0]):
        out[i] = row.moved(i)
"""


@pytest.mark.parametrize("shift", [-1, 3])
def test_methods_of_objects_wait_and_share(shift: int, tmp_path: Path) -> None:
    module = load_module(_OBJECTS, tmp_path)

    def memory() -> list[Any]:
        return [np.arange(16, dtype=np.float32), np.zeros(16, np.float32)]

    def bind(arrays: list[Any]) -> list[Any]:
        return [module.Row(arrays[0], shift), arrays[1]]

    signature = oracle.signature(module.k, bind(memory()))
    pair = Pair(module.k, signature, memory, bind)
    definition = module.k.definition
    variant = Variant(definition, Signature.parse(signature), CUDA, definition.options)
    text = generate(variant, renderer_for(CUDA))
    values, out = memory_after(pair, text, Emulated([text], tmp_path / "made"), noalias=False)
    rows = np.roll(values.reshape(2, 8), -shift, axis=1)
    expected = rows + rows.max(axis=1, keepdims=True) if shift > 0 else values
    np.testing.assert_array_equal(out, expected.reshape(-1))
