"""Generated kernels mean the same after every pass: interpreted IR against the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_interpreter
import numpy as np
import oracle
import pytest
from generator import Program, collect, load_module
from generator.program import numpy_dtype
from harness import differences

from tack.ir import nodes as ir
from tack.ir.verify import verify_ir
from tack.lang.lower import lower_kernel
from tack.model.errors import CompileError
from tack.model.signature import Signature
from tack.passes.pipeline import PASSES

PROGRAMS = 60
RUN_AFTER = ("typed", "optimized", "decomposed")


def scalar(value: Any, param: ir.IRParam) -> Any:
    """An argument as a kernel gets it."""
    assert param.dtype is not None
    if param.dtype.is_float:
        return ir_interpreter.rounded(value, param.dtype)
    return bool(value) if param.dtype.is_bool else int(value)


def array(value: Any, param: ir.IRParam) -> Any:
    """An array as it lies in memory, once the IR is about that."""
    same = param.dtype is not None and numpy_dtype(param.dtype.name) == value.dtype
    return value if same else value.view(f"u{value.itemsize}")


def flattened(signature: Signature, arguments: list[Any]) -> list[Any]:
    """What a compiled kernel is passed: attributes of objects, components of vectors."""
    found: list[Any] = []
    parts: dict[int, Iterator[Any]] = {}
    for flat in signature.flat():
        value = arguments[flat.argument]
        if flat.component:
            components = np.array(value, object).ravel()
            value = next(parts.setdefault(flat.argument, iter(components)))
        for name in flat.path:
            value = getattr(value, name)
        found.append(value)
    return found


def interpret(program: Program, kernel: Any, function: ir.IRFunction, stage: str) -> list[Any]:
    memory = program.memory()
    arguments = program.bind(memory, kernel)
    signature = Signature.parse(oracle.signature(kernel, arguments))
    given = zip(function.params, flattened(signature, arguments), strict=True)
    named = {p.name: array(value, p) if p.is_array else scalar(value, p) for p, value in given}
    ir_interpreter.run(function, named, c=stage == "decomposed")
    return memory


@pytest.mark.parametrize("seed", [101, 102])
def test_every_pass_keeps_the_meaning(seed: int, tmp_path: Path) -> None:
    ran = 0
    for program in collect(PROGRAMS, seed):
        kernel = load_module(program.source, tmp_path).kernel
        expected = program.memory()
        arguments = program.bind(expected, kernel)
        try:
            oracle.run(kernel, arguments)
        except oracle.OracleRefused:
            continue
        signature = Signature.parse(oracle.signature(kernel, arguments))
        try:
            function = verify_ir(lower_kernel(kernel.definition, signature), "lowered")
            for step, stage in PASSES:
                verify_ir(step(function) or function, stage)
                if stage in RUN_AFTER:
                    found = interpret(program, kernel, function, stage)
                    assert not differences(expected, found), f"{stage}\n{program}"
        except CompileError:
            continue  # what is refused is the business of other tests
        ran += 1
    assert ran >= 0.8 * PROGRAMS
