"""Compiles the same kernels from C and from LLVM IR, runs both, and says where bits differ."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from generator import collect, load_module
from harness import differences, run_kernel, source_of
from oracle import OracleRefused

from tack.backends import cpu_cc, cpu_llvm
from tack.compile import assemble, generate
from tack.errors import CompileError
from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Variant
from tack.render.renderer import renderer_for
from tack.render.source import Source

__all__ = ["Pair", "Twins", "disagreements", "generated_pairs", "toolchains"]


@functools.cache
def toolchains() -> tuple[cpu_cc.CCompiler, cpu_llvm.LlvmCompiler]:
    """The C compiler, whose results are the reference, and LLVM."""
    c, llvm = cpu_cc.find(), cpu_llvm.find()
    assert c is not None
    assert llvm is not None
    return c, llvm


@dataclass
class Pair:
    """A kernel at a signature, and its arguments: ``bind`` gives them over fresh ``memory``."""

    kernel: Any
    signature: str
    memory: Callable[[], list[np.ndarray[Any, Any]]]
    bind: Callable[[list[np.ndarray[Any, Any]]], list[Any]] = list

    def source(self, dialect: str) -> Source:
        """What tack generates."""
        target = Target("cpu", "x86-64")  # the text is the same for every level
        return generate(self.variant(target), renderer_for(target, dialect))

    def variant(self, target: Target) -> Variant:
        """The kernel at the signature, for a target, in its own mode."""
        definition = self.kernel.definition
        return Variant(definition, Signature.parse(self.signature), target, definition.options)


def generated_pairs(count: int, seed: int, folder: Path, *, mode: str = "strict") -> Iterator[Pair]:
    """Generated programs that the language takes, in a floating-point mode."""
    for program in collect(count, seed):
        text = program.source.replace("@tack.kernel\n", f'@tack.kernel(fp="{mode}")\n')
        kernel = load_module(text, folder).kernel
        try:
            source = source_of(kernel, program.bind(program.memory(), kernel))
        except (CompileError, OracleRefused):
            continue
        yield Pair(
            kernel,
            str(source.variant.signature),
            program.memory,
            functools.partial(program.bind, kernel=kernel),
        )


class Twins:
    """Pairs, compiled together by both toolchains for each of ``levels``."""

    def __init__(self, pairs: Sequence[Pair], levels: Sequence[str]) -> None:
        self.pairs = pairs
        self.sources = {
            tool.dialect: [pair.source(tool.dialect) for pair in pairs] for tool in toolchains()
        }
        wanted = [(tool, level) for tool in toolchains() for level in levels]
        with ThreadPoolExecutor(2) as pool:
            images = pool.map(lambda each: self._compile(*each), wanted)
        self.libraries = {
            (tool.dialect, level): tool.load(image)
            for (tool, level), image in zip(wanted, images, strict=True)
        }

    def _compile(self, tool: Any, level: str) -> bytes:
        target = Target("cpu", level)
        # Pairs may differ in their arguments alone.
        sources = {source.title: source for source in self.sources[tool.dialect]}
        renderer = renderer_for(target, tool.dialect)
        text = assemble("twins", list(sources.values()), renderer)
        return bytes(tool.compile(text, target))

    def runs(self, number: int) -> Iterator[tuple[str, list[np.ndarray[Any, Any]]]]:
        """What the memory of a pair is after each way to run it."""
        pair = self.pairs[number]
        for (dialect, level), library in self.libraries.items():
            for noalias in (False, True):
                memory = pair.memory()
                source = self.sources[dialect][number]
                run_kernel(pair.kernel, source, library, pair.bind(memory), noalias=noalias)
                yield f"{dialect} at {level}{', by noalias' * noalias}", memory


def disagreements(pairs: Sequence[Pair], levels: Sequence[str]) -> dict[int, str]:
    """The numbers of the pairs whose runs differ in bits, and where."""
    twins, found = Twins(pairs, levels), {}
    for number, pair in enumerate(pairs):
        (first, expected), *others = twins.runs(number)
        for name, memory in others:
            differ = differences(expected, memory)
            if differ:
                found[number] = f"{pair.signature}: {first}, and {name}:\n{differ}"
                break
    return found
