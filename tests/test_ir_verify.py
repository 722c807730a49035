"""Each invariant of the IR has a broken tree that trips it, at the stage from which it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from broken_groups import (
    WITH_FRAGMENTS,
    WITH_GROUPS,
    grouped,
)
from broken_ir import (
    BROKEN,
    Make,
    assign,
    one,
    sequential,
    typed,
    valued,
)
from ir_building import kernel, lowered, name, prepared, scalar

import tack.compile as compile_
from tack.backends.cpu_cc import CCompiler
from tack.backends.cpu_llvm import LlvmCompiler
from tack.ir import nodes as ir
from tack.ir.verify import STAGES, verify_ir
from tack.model.dtypes import DTYPES, bool_, f32, i32, i64, u8
from tack.model.errors import CompileError, IRVerificationError
from tack.passes import pipeline
from tack.passes.pipeline import PASSES

EVERY_BROKEN = [*BROKEN, *WITH_GROUPS, *WITH_FRAGMENTS]


def test_lanes_beyond_the_end_are_there_from_the_split_on() -> None:
    function = grouped(ir.IRIf(ir.IRActive(bool_), []), locals={})
    verify_ir(function, "localized")
    with pytest.raises(IRVerificationError, match="lanes beyond the end before there are any"):
        verify_ir(function, "typed")
    typed_wrongly = grouped(assign(ir.IRActive(u8), u8), locals={"t": u8})
    with pytest.raises(IRVerificationError, match="whether a lane is an iteration is u8, not bool"):
        verify_ir(typed_wrongly, "localized")


def test_shared_arrays_are_there_from_the_beginning() -> None:
    stored = ir.IRArrayStore("s", [one(0)], ir.IRConstant(0.0, f32))
    array = {"s": ir.LocalArray(f32, (3,), shared=True)}
    verify_ir(grouped(stored, ir.IRBarrier(), local_arrays=array, locals={}), "optimized")


@pytest.mark.parametrize(
    ("words", "kind", "path", "stage", "make"),
    EVERY_BROKEN,
    ids=[f"{stage}-{words}-{kind}" for words, kind, _, stage, _ in EVERY_BROKEN],
)
def test_each_check_trips(words: str, kind: str, path: str, stage: str, make: Make) -> None:
    with pytest.raises(IRVerificationError) as caught:
        verify_ir(make(), stage)
    error = caught.value
    assert words in str(error)
    assert (error.kernel, error.stage) == ("test:kernel", stage)
    assert (error.kind, error.path) == (kind, path)


@pytest.mark.parametrize(
    ("words", "stage", "make"),
    [(words, stage, make) for words, _, _, stage, make in EVERY_BROKEN if stage != "lowered"],
    ids=[f"{stage}-{words}" for words, _, _, stage, _ in EVERY_BROKEN if stage != "lowered"],
)
def test_and_not_before_its_stage(words: str, stage: str, make: Make) -> None:
    verify_ir(make(), STAGES[STAGES.index(stage) - 1])


def test_a_cycle_is_found() -> None:
    value = ir.IRUnaryOp("-", one(), i64)
    value.operand = value
    with pytest.raises(IRVerificationError, match="cycle"):
        verify_ir(valued(value), "lowered")


def test_an_unknown_kind_is_found() -> None:
    class Strange(ir.Expression):
        pass

    with pytest.raises(IRVerificationError, match="Strange"):
        verify_ir(valued(Strange()), "lowered")


def test_bits_keep_their_width() -> None:
    bits = valued(ir.IRBitcast(one(1, i32), DTYPES["f64"]), DTYPES["f64"])
    with pytest.raises(IRVerificationError, match="the bits of i32 as f64"):
        verify_ir(bits, "decomposed")


def test_a_kernel_has_no_return() -> None:
    assert not [kind for kind in ir.CHILD_FIELDS if "Return" in kind.__name__]
    for value in ("", " 3"):
        with pytest.raises(CompileError, match="a kernel returns nothing"):
            lowered(f"return{value}", "x: i64[:]")


def test_types_come_before_optimization() -> None:
    order = "lowered resolved inferred typed localized optimized decomposed packed"
    assert order.split() == list(STAGES)
    reached = [stage for _, stage in PASSES]
    assert list(dict.fromkeys(reached)) == list(STAGES[1:-1])


def test_an_unknown_stage_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="lowered, resolved"):
        verify_ir(typed(assign(one())), "cooked")


def test_a_shared_expression_is_sound() -> None:
    shared = name("n")
    verify_ir(valued(ir.IRBinOp("+", shared, shared, i64)), "decomposed")


def test_loops_may_be_left_and_continued() -> None:
    body = ir.IRIf(ir.IRConstant(True, bool_), [ir.IRBreak()], [ir.IRContinue()])
    verify_ir(typed(assign(one()), sequential(body), ir.IRContinue(), k=i64), "optimized")


def test_the_host_keeps_operators_of_its_own() -> None:
    extent = ir.IRBinOp("//", name("n"), one(2), i64)
    verify_ir(kernel([scalar("n")], [], extents=[extent]), "decomposed")


@pytest.fixture
def broken_pass(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """After type inference a fault of tack's own; gives the stages that are verified."""
    verified: list[str] = []

    def forget(function: ir.IRFunction) -> ir.IRFunction:
        function.params[0].dtype = None
        return function

    def watched(function: ir.IRFunction, stage: str) -> ir.IRFunction:
        verified.append(stage)
        return verify_ir(function, stage)

    monkeypatch.setattr(pipeline, "PASSES", (*PASSES[:2], (forget, "typed"), *PASSES[3:]))
    monkeypatch.setattr(pipeline, "verify_ir", watched)
    return verified


def test_at_a_call_it_is_the_cause_of_a_runtime_error(
    broken_pass: list[str],
    load: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TACK_CACHE_DIR", str(tmp_path / "cache"))
    compiled: list[object] = []
    for tool in (LlvmCompiler, CCompiler):
        monkeypatch.setattr(tool, "compile", lambda *given: compiled.append(given))
    module = load(
        """
        @tack.kernel
        def kernel(x):
            for i in range(1):
                x[i] = 5
        """
    )
    x = np.zeros(1)
    for _ in range(2):  # and nothing is remembered
        with pytest.raises(RuntimeError, match="a fault of tack's own") as caught:
            module.kernel(x)
        cause = caught.value.__cause__
        assert isinstance(cause, IRVerificationError)
        assert (cause.stage, cause.path) == ("typed", "params[0]")
        assert cause.kernel == f"{module.__name__}:kernel"
    assert broken_pass == ["lowered", "resolved", "inferred", "typed"] * 2
    assert not compiled
    assert x[0] == 0
    entries = [each for each in (tmp_path / "cache").rglob("*") if each.is_file()]
    assert not [each for each in entries if b"kernel" in each.read_bytes()]


def test_a_variant_is_verified_on_its_way_and_a_warm_call_is_not(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TACK_CACHE_DIR", str(tmp_path / "cache"))
    stages: list[str] = []
    for module in (pipeline, compile_):
        monkeypatch.setattr(module, "verify_ir", lambda f, stage: stages.append(stage) or f)
    kernel = load("@tack.kernel\ndef kernel(x):\n    for i in range(1):\n        x[i] += 5").kernel
    x = np.zeros(1)
    kernel(x)
    assert list(dict.fromkeys(stages)) == list(STAGES)
    stages.clear()
    kernel(x)
    assert x[0] == 10
    assert stages == []


def test_what_a_pass_left_alone_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []
    monkeypatch.setattr(pipeline, "verify_ir", lambda _, stage: verified.append(stage))
    pipeline.prepare(lowered("x[i] = x[i] // 2", "x: i32[:]"))
    assert verified == list(STAGES[:-1])
    verified.clear()
    pipeline.prepare(lowered("x[i] = not x[i]", "x: bool[:]"))
    assert verified == [*STAGES[:-1], "decomposed"]


def test_the_passes_reach_their_stages() -> None:
    function = lowered("x[i] = x[i] // 2", "x: i32[:]")
    verify_ir(prepared(function), "decomposed")
