"""Kernels with templates compute the same bits through tack as plain kernels under the oracle.

A generated program is rewritten: parameters become attributes of objects, some of them nested, and
device functions their methods. That must change nothing.
"""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracle
import pytest
from generator import Program, collect, load_module
from harness import Unit, differences, levels, run_tack, source_of

from tack.errors import CompileError
from tack.render.source import Source

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
PROGRAMS = 1000 if DEEP else 50
SEED = int(os.environ.get("TACK_TEST_SEED", random.randrange(2**32) if DEEP else 1))

PLACES = ("first", "second", "first.inner")
"""Where an attribute may go: two parameters, and an object that one of them holds."""


class _Rewriter(ast.NodeTransformer):
    """Reads parameters and calls functions through objects."""

    def __init__(self, places: dict[str, str], functions: set[str]) -> None:
        self._places = places
        self._functions = functions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        place = self._places.get(node.id)
        return node if place is None else ast.parse(f"{place}.{node.id}", mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._functions:
            node.func = ast.parse(f"first.inner.{node.func.id}", mode="eval").body
        return node


@dataclass
class Templated:
    """A program whose kernel takes objects: ``places`` says where each parameter went."""

    source: str
    parameters: list[str]
    places: dict[str, str]

    def bind(self, module: ModuleType, arguments: Sequence[Any]) -> list[Any]:
        """The arguments of the new kernel for those of the old one."""
        first, second = module.Holder(), module.Holder()
        first.inner = module.Holder()
        objects = {"first": first, "second": second, "first.inner": first.inner}
        kept = []
        for name, argument in zip(self.parameters, arguments, strict=True):
            if name in self.places:
                setattr(objects[self.places[name]], name, argument)
            else:
                kept.append(argument)
        return [first, *kept, second]


def templated(program: Program, rng: random.Random) -> Templated:
    """The program with some of its parameters in objects, its functions as their methods."""
    tree = ast.parse(program.source)
    kernel = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "kernel")
    parameters = [each.arg for each in kernel.args.args]
    bound = {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name)} & {"first", "second"}
    assert not bound, "the generator uses the names of the objects"
    assigned = {
        n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    movable = [
        each.arg
        for each in kernel.args.args
        if each.annotation is None and each.arg not in assigned and each.arg[0] != "_"
    ]
    places = {name: rng.choice(PLACES) for name in movable if rng.random() < 0.8}
    functions = {
        n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n is not kernel
    } - set(parameters)
    methods = {name for name in functions if rng.random() < 0.5 and name not in assigned}
    kernel.body = [_Rewriter(places, methods).visit(each) for each in kernel.body]
    kept = [each for each in kernel.args.args if each.arg not in places]
    kernel.args.args = [ast.arg("first"), *kept, ast.arg("second")]
    lines = [f"    {name} = staticmethod({name})" for name in sorted(methods)] or ["    pass"]
    holder = ast.parse("@tack.device_class\nclass Holder:\n" + "\n".join(lines)).body
    tree.body[tree.body.index(kernel) : tree.body.index(kernel)] = holder
    return Templated(ast.unparse(ast.fix_missing_locations(tree)), parameters, places)


def test_parameters_may_be_attributes_and_functions_methods(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    ready: list[tuple[Program, Templated, ModuleType, Source, list[np.ndarray[Any, Any]]]] = []
    for program in collect(PROGRAMS, SEED):
        new = templated(program, rng)
        module = load_module(new.source, tmp_path)
        expected, memory = program.memory(), program.memory()
        arguments = new.bind(module, program.bind(memory, module.kernel))
        plain = load_module(program.source, tmp_path).kernel
        try:
            oracle.run(plain, program.bind(expected, plain))
        except oracle.OracleRefused:
            with pytest.raises(oracle.OracleRefused):
                oracle.run(module.kernel, arguments)
            with pytest.raises(CompileError):
                source_of(module.kernel, arguments)
            continue
        source = source_of(module.kernel, arguments)
        oracle.run(module.kernel, arguments)
        assert not differences(expected, memory), new.source
        ready.append((program, new, module, source, expected))
    assert len(ready) > 0.9 * PROGRAMS
    level = levels()[-1]
    unit = Unit([source for _, _, _, source, _ in ready], tmp_path / "unit", [level])
    for program, new, module, source, expected in ready:
        for noalias in (False, True):
            memory = program.memory()
            arguments = new.bind(module, program.bind(memory, module.kernel))
            unit.run(module.kernel, source, arguments, level, noalias=noalias)
            assert not differences(expected, memory), new.source


CASES = {
    "methods with constants, defaults and early returns": """
        @tack.device_class
        class Curve:
            degree = 3
            scale = tack.constant(0.1, tack.f32)
            wide = tack.constant(200, tack.u8)

            def __init__(self, points, shift):
                self.points, self.shift = points, shift

            @tack.func
            def at(self, i, factor=2):
                if i < self.shift:
                    return self.points[i] * factor
                return self.points[i] * self.scale + self.degree

            @tack.func
            def pair(self, i):
                return self.at(i), self.at(i, factor=self.degree) + self.wide

        def make(x):
            return Curve(x.copy(), 3)

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                a, b = obj.pair(i)
                out[i] = a - b / (self_like(obj) + 1)

        @tack.func
        def self_like(curve):
            return curve.shift if curve.degree == 3 else curve.degree
    """,
    "inheritance, static methods and functions of the object": """
        @tack.func
        def square(x):
            return x * x

        @tack.device_class
        class Base:
            k = 1

            @staticmethod
            @tack.func
            def twice(x):
                return x + x

            @tack.func
            def value(self, x):
                return self.twice(x) + self.k

        class Lower(Base):
            k = 2.5

            @tack.func
            def value(self, x):
                return self.f(x) - self.k * self.twice(self.inner.value(x))

        def make(x):
            lower = Lower()
            lower.f, lower.inner = square, Base()
            return lower

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                out[i] = obj.value(out[i]) + obj.inner.value(i)
    """,
    "the loop over a template": """
        @tack.device_class
        class Grid:
            tack_extents = ("nx", "ny")
            ny = 2

            def __init__(self, nx):
                self.nx = nx

        def make(x):
            return Grid(4)

        @tack.kernel
        def kernel(obj, out):
            for i, j in obj:
                out[i + obj.nx * j] += i * 10 + j
    """,
    "the loop over a template with one index": """
        @tack.device_class
        class Grid:
            tack_extents = ("nx", "ny")
            ny = 2

            def __init__(self, nx):
                self.nx = nx

        def make(x):
            return Grid(4)

        @tack.kernel
        def kernel(obj, out):
            for c in obj:
                c += 1
                out[c - 1] += c
    """,
    "integers wrap at the type of what they meet": """
        @tack.device_class
        class Table:
            step = 3
            big = 300

            def __init__(self, values):
                self.values = values

        def make(x):
            return Table(np.arange(250, 258, dtype=np.int64).astype(np.uint8))

        @tack.kernel
        def kernel(obj, out):
            for i in range(out.shape[0]):
                out[i] = obj.values[i] * obj.step + obj.values[i] * obj.big
    """,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(CASES))
def test_both_give_what_the_language_says(
    name: str, dtype: type, load: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    module = load("        import numpy as np\n" + CASES[name])
    start = np.linspace(-2, 5, 8).astype(dtype)
    expected, found, called = start.copy(), start.copy(), start.copy()
    oracle.run(module.kernel, [module.make(start), expected])
    assert not np.array_equal(expected, start)
    run_tack(module.kernel, [module.make(start), found], tmp_path / "unit")
    assert not differences([expected], [found])
    module.kernel(module.make(start), called)
    assert not differences([expected], [called])
