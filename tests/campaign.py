"""Runs generated programs through the oracle and through tack, and says where they disagree."""

from __future__ import annotations

import faulthandler
import itertools
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import generator
import numpy as np
import oracle
from generator import Program
from generator.reduce import reduced
from harness import Unit, differences, levels, source_of

from tack.errors import CompileError
from tack.lang.lower import lower_kernel
from tack.passes.infer import infer
from tack.passes.resolve import resolve
from tack.render.source import Source

__all__ = ["Case", "judge", "prepare", "smallest"]

_BATCH = 25
"""Programs in one C file: starting the compiler costs as much as a small kernel."""

_PATIENCE = 60
"""Seconds for one program. None takes one, but a wrong loop may never end, and a kernel cannot be
interrupted: the process ends, and running.txt in the folder of the batch holds the program."""


@dataclass
class Case:
    """One program: what the oracle computed, and what tack generated."""

    program: Program
    kernel: Any
    expected: list[np.ndarray[Any, Any]]
    refused: str
    """Why the oracle refuses the program; "" if it does not."""
    source: Source | None
    tack_refused: str
    wrong: str = ""

    @property
    def runs(self) -> bool:
        """Whether both sides accept the program."""
        return not self.refused and self.source is not None


def prepare(program: Program, folder: Path) -> Case:
    """Import a program, run it under the oracle, generate its C."""
    folder.mkdir(parents=True, exist_ok=True)
    kernel = generator.load_module(program.source, folder).kernel
    memory = program.memory()
    refused = tack_refused = ""
    source = None
    try:
        oracle.run(kernel, program.bind(memory, kernel))
    except oracle.OracleRefused as refusal:
        refused = str(refusal) or "refused"
    try:
        source = source_of(kernel, program.bind(program.memory(), kernel))
    except CompileError as refusal:
        tack_refused = str(refusal)
    case = Case(program, kernel, memory, refused, source, tack_refused)
    if bool(refused) != bool(tack_refused):
        case.wrong = f"only tack refuses: {tack_refused}" if tack_refused else ""
        case.wrong = case.wrong or f"only the oracle refuses: {refused}"
    elif source is not None:
        case.wrong = _mistyped(kernel, source, oracle.check(kernel, program.bind(memory, kernel)))
    return case


def _mistyped(kernel: Any, source: Source, types: Mapping[str, Any]) -> str:
    """Which of the kernel's own locals has another type than the oracle says.

    Values alone seldom tell: a type that is too wide shows only where something overflows.
    """
    function = infer(resolve(lower_kernel(kernel.definition, source.variant.signature)))
    for name, dtype in function.locals.items():
        found = "weak" if name in function.weak else dtype.name
        base, _, component = name.partition(".")
        vector = types.get(base) if component in ("x", "y", "z", "w") else None
        expected = types.get(name, getattr(vector, "dtype", found))
        wanted = str(expected).partition(" ")[0]
        if found != wanted:
            return f"a local has another type: {name} is {wanted}, tack has {found}"
    return ""


def judge(cases: Sequence[Case], folder: Path, compiled_for: Sequence[str] | None = None) -> None:
    """Compile and run what both sides accept, and note in each case what differs."""
    running = [case for case in cases if case.runs]
    for start in range(0, len(running), _BATCH):
        _batch(running[start : start + _BATCH], folder / f"batch_{start}", compiled_for)


def _batch(cases: Sequence[Case], folder: Path, compiled_for: Sequence[str] | None) -> None:
    try:
        unit = Unit([case.source for case in cases if case.source], folder, compiled_for)
    except AssertionError as error:
        if len(cases) == 1:
            cases[0].wrong = str(error)
        else:  # find which of them it is
            for number, case in enumerate(cases):
                _batch([case], folder / str(number), compiled_for)
        return
    for case in cases:
        if case.wrong:
            continue
        (folder / "running.txt").write_text(str(case.program), encoding="utf-8")
        faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=2)
        case.wrong = _compared(case, unit, levels() if compiled_for is None else compiled_for)
        faulthandler.cancel_dump_traceback_later()


def _compared(case: Case, unit: Unit, wanted: Sequence[str]) -> str:
    """Every level and entry point on fresh memory."""
    assert case.source is not None
    for level in wanted:
        for noalias in (False, True):
            memory = case.program.memory()
            arguments = case.program.bind(memory, case.kernel)
            unit.run(case.kernel, case.source, arguments, level, noalias=noalias)
            differ = differences(case.expected, memory)
            if differ:
                entry = "its callers' entry" if noalias else "the general entry"
                return f"at {level}, by {entry}:\n{differ}"
    return ""


def smallest(case: Case, folder: Path) -> Case:
    """A case as wrong as `case`, in the same way, and smaller."""
    kind = _kind(case.wrong)
    found = case
    attempts = itertools.count()

    def fails(program: Program) -> bool:
        nonlocal found
        try:
            smaller = _one(program, folder / str(next(attempts)))
        except Exception:  # noqa: BLE001  # whatever a program without its meaning may raise
            return False
        if not smaller.wrong or _kind(smaller.wrong) != kind:
            return False
        found = smaller
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about what candidates say
        reduced(case.program, fails)
    return found


def _one(program: Program, folder: Path) -> Case:
    case = prepare(program, folder)
    if not case.wrong:
        judge([case], folder, levels()[-1:])
    return case


def _kind(wrong: str) -> str:
    """What is wrong, without the places."""
    first = wrong.partition("\n")[0]
    words = first.rpartition(": ")[2] if "refuses" in first else first.partition(",")[0]
    return re.sub(r"[\d'\"].*", "", words)
