"""Generated kernels compute the same bits through tack as under the oracle.

`HYPOTHESIS_PROFILE=deep` runs many more of them, from a seed of its own each time (or from
`TACK_TEST_SEED`).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import oracle
import pytest
from campaign import Case, judge, prepare, smallest
from generator import Program, collect, load_module
from generator.pairs import Pair, expected, pairs_of
from generator.series import complete

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
PROGRAMS = 5000 if DEEP else 200
SEED = int(os.environ.get("TACK_TEST_SEED", random.randrange(2**32) if DEEP else 1))
FEW_REFUSED = 0.05


def test_tack_computes_what_the_oracle_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: Counter[Pair] = Counter()
    cases: list[Case] = []
    for start, programs in complete(PROGRAMS, SEED):
        batch = [prepare(each, tmp_path / str(start)) for each in programs]
        with capsys.disabled():  # should a kernel never end, its end is to be seen
            judge(batch, tmp_path / str(start))
        wrong = [case for case in batch if case.wrong]
        assert not wrong, _worded(wrong, tmp_path / "reduced")
        cases += batch
        for each in programs:
            counts += pairs_of(each.source)
    refused = sum(1 for case in cases if not case.runs)
    with capsys.disabled():
        print(f"\n{_report(counts, len(cases), refused)}")  # noqa: T201
    assert not expected() - set(counts), "pairs of constructs that never occurred"
    assert refused <= FEW_REFUSED * len(cases), "the generator writes too much that is refused"


def _worded(wrong: list[Case], folder: Path) -> str:
    """The first few wrong programs, made smaller."""
    shown = [smallest(case, folder / str(number)) for number, case in enumerate(wrong[:3])]
    return f"{len(wrong)} programs, of which:\n" + "\n".join(
        f"\n{case.program}\n{case.wrong}\n" for case in shown
    )


def _report(counts: Counter[Pair], programs: int, refused: int) -> str:
    wanted = expected()
    rarest = sorted((counts[pair], pair) for pair in wanted)[:5]
    words = ", ".join(f"{inner} in {outer} {count}" for count, (outer, inner) in rarest)
    seen = sum(1 for pair in wanted if counts[pair])
    table = "\n".join(
        f"{outer:>16} {inner:<16} {count}" for (outer, inner), count in counts.most_common()
    )
    return (
        f"seed {SEED}: {programs} programs, {refused} refused by both; "
        f"{seen} of {len(wanted)} pairs of "
        f"constructs, {sum(counts.values())} occurrences; rarest: {words}" + f"\n{table}" * DEEP
    )


@pytest.fixture(scope="module")
def some_programs() -> list[Program]:
    return collect(60, SEED)


def test_generated_programs_have_no_races(some_programs: list[Program], tmp_path: Path) -> None:
    for program in some_programs:
        kernel = load_module(program.source, tmp_path).kernel
        touched: dict[int, tuple[set[int], set[int]]] = {}

        def access(iteration: int, kind: str, address: int, size: int) -> None:
            for byte in range(address, address + size):
                loads, stores = touched.setdefault(byte, (set(), set()))  # noqa: B023
                (stores if kind == "store" else loads).add(iteration)

        try:
            oracle.run(kernel, program.bind(program.memory(), kernel), access=access)
        except oracle.OracleRefused:
            continue  # of programs that are careless about types some are refused
        for loads, stores in touched.values():
            assert len(stores) <= 1, program
            assert not stores or loads <= stores, program


def test_the_order_of_iterations_does_not_matter(
    some_programs: list[Program], tmp_path: Path
) -> None:
    for program in some_programs:
        kernel = load_module(program.source, tmp_path).kernel
        forward, backward = program.memory(), program.memory()
        try:
            oracle.run(kernel, program.bind(forward, kernel))
        except oracle.OracleRefused:
            continue
        oracle.run(kernel, program.bind(backward, kernel), order=reversed)
        for one, other in zip(forward, backward, strict=True):
            assert one.tobytes() == other.tobytes(), program


def test_pairs_are_of_neighbours() -> None:
    source = """
def kernel(x):
    for i in range(3):
        while not x[i]:
            x[i] += 1 if i < 2 else x.shape[0]
"""
    assert set(pairs_of(source)) == {
        ("parallel", "literal"),
        ("parallel", "while"),
        ("while", "not"),
        ("not", "load"),
        ("while", "augmented store"),
        ("augmented store", "choice"),
        ("choice", "compare"),
        ("choice", "literal"),
        ("choice", "shape"),
        ("compare", "literal"),
    }
