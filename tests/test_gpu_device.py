"""The corpus on a CUDA device has the bits of C. ``pytest -m gpu`` runs it where there is one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus import CORPUS
from generator import load_module
from generator.program import numpy_dtype
from gpu_device import OnDevice, architecture
from gpu_twins import disagreements, memory_after
from harness import differences
from test_gpu_text import generated
from test_workgroups import expected, pairs
from twins import Pair

from tack.model.dtypes import NARROW
from tack.model.targets import Target

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [*CORPUS, "generated"])
def test_a_device_has_the_bits_of_c(name: str, tmp_path: Path) -> None:
    target = Target("cuda", architecture())
    if name == "generated":
        pairs = list(generated(tmp_path))
    else:
        text, pairs_of = CORPUS[name]
        pairs = list(pairs_of(load_module(text, tmp_path)))
    found = disagreements(pairs, target, lambda sources: OnDevice(sources, tmp_path / "unit"))
    assert not found, "\n".join(found.values())


def singles(number: int) -> np.ndarray[Any, Any]:
    """The 32nd part of every eighth f32, the lowest three bits mixed up."""
    place = np.arange(1 << 24, dtype=np.uint32) + np.uint32(number << 24)
    return (place << np.uint32(3) | place * np.uint32(2654435761) >> np.uint32(29)).view(np.float32)


@pytest.mark.parametrize("dtype", NARROW)
def test_a_device_rounds_singles_of_every_size_as_c_does(dtype: str, tmp_path: Path) -> None:
    target = Target("cuda", architecture())
    kernel = load_module(CORPUS["narrow floats"][0], tmp_path).rounded

    def memory(number: int) -> list[np.ndarray[Any, Any]]:
        return [singles(number), np.zeros(1 << 24, numpy_dtype(dtype))]

    signature = f"f32[:], {dtype}[:]"
    parts = [Pair(kernel, signature, partial(memory, number)) for number in range(32)]
    found = disagreements(parts, target, lambda sources: OnDevice(sources, tmp_path / "unit"))
    assert not found, "\n".join(found.values())


def test_group_kernels_have_the_bits_of_plain_python(tmp_path: Path) -> None:
    target = Target("cuda", architecture())
    made = pairs(target, tmp_path)
    library = OnDevice([text for _, _, text in made], tmp_path / "unit")
    found = []
    for case, pair, text in made:
        for noalias in (False, True):
            memory = memory_after(pair, text, library, noalias=noalias)
            differ = differences(expected(case), memory)
            if differ:
                found.append(f"{case.name}:\n{differ}")
    assert not found, "\n".join(found)
