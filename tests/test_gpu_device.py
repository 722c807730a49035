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
from test_fp_modes import contracted
from test_gpu_text import PROGRAMS, SEED
from test_tensor_cores import EXAMPLE, PRODUCT, source
from test_vector_accesses import pairs as vector_pairs
from test_workgroups import disagreements_with_python
from twins import Pair, generated_pairs

from tack.model.dtypes import DTYPES, NARROW, numpy_name
from tack.model.targets import Target

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [*CORPUS, "generated", "vector accesses"])
def test_a_device_has_the_bits_of_c(name: str, tmp_path: Path) -> None:
    target = Target("cuda", architecture())
    if name == "generated":
        pairs = list(generated_pairs(PROGRAMS, SEED, tmp_path))
    elif name == "vector accesses":
        pairs = vector_pairs(tmp_path)
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


def test_contracted_kernels_have_the_bits_of_c_on_a_device(tmp_path: Path) -> None:
    target, pairs = Target("cuda", architecture()), contracted(tmp_path)
    found = disagreements(pairs, target, lambda sources: OnDevice(sources, tmp_path / "unit"))
    assert not found, "\n".join(found.values())


def test_group_kernels_have_the_bits_of_plain_python(tmp_path: Path) -> None:
    found = disagreements_with_python(Target("cuda", architecture()), tmp_path, OnDevice)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_products_by_tensor_cores_are_those_of_numpy(dtype: str, tmp_path: Path) -> None:
    """Of small integers, whose products and sums every order gives exactly."""
    target = Target("cuda", architecture())
    kernel = load_module(EXAMPLE.read_text(encoding="utf-8"), tmp_path).tensor_product
    text = source(kernel, PRODUCT.format(dtype), target)
    numpy = np.dtype(numpy_name(DTYPES[dtype]))
    for rows, depth, columns in ((32, 16, 32), (96, 48, 160), (64, 0, 32)):
        random = np.random.default_rng(rows)
        a, b = (
            random.integers(-8, 9, shape).astype(numpy)
            for shape in ((rows, depth), (depth, columns))
        )
        made = [a, b, np.full((rows, columns), 7, np.float32)]
        pair = Pair(kernel, PRODUCT.format(dtype), lambda made=made: [each.copy() for each in made])
        library = OnDevice([text], tmp_path / "unit")
        result = memory_after(pair, text, library, noalias=False)[2]
        np.testing.assert_array_equal(result, a.astype(np.float32) @ b.astype(np.float32))
