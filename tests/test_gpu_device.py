"""The corpus on a CUDA device has the bits of C. ``pytest -m gpu`` runs it where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import CORPUS
from generator import load_module
from gpu_device import OnDevice, architecture
from gpu_twins import disagreements, memory_after
from harness import differences
from test_gpu_text import generated
from test_workgroups import expected, pairs

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
