"""Lowering of ``tack.random``: which generator and type a call names, and its numbers."""

from __future__ import annotations

import ast
from typing import Any, Final

from tack.elementary.counter_based import GENERATORS
from tack.ir.nodes import Expression, IRCall
from tack.ir.operations import RANDOM
from tack.lang import counter_based
from tack.lang.lower_base import again
from tack.lang.lower_inlining import InliningLowering
from tack.lang.vectors import Value, VectorValue, words
from tack.model.dtypes import DType
from tack.model.spelling import advice, counted

__all__ = ["RANDOM_FUNCTIONS", "RandomLowering"]

RANDOM_FUNCTIONS: Final[dict[Any, str]] = {
    getattr(counter_based, name): name for name in counter_based.__all__
}
"""Function of ``tack.random`` -> its name."""

_TYPED: Final = {"bits": "u64", "randint": "i64", "uniform": "f32", "normal": "f32"}
"""Number -> the type that it has if none is named."""


class RandomLowering(InliningLowering):
    """Lowers calls of ``tack.random``."""

    def random(self, node: ast.Call, name: str) -> Value:
        """A random number, or a vector of the words of a generator."""
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        generator, dtype = "threefry", _TYPED.get(name, "")
        if name in GENERATORS:
            generator = name
        elif "generator" in named:
            generator = self._generator(named.pop("generator"))
        if name in ("uniform", "normal") and "dtype" in named:
            dtype = self._float(named.pop("dtype"))
        if named:
            raise self.refuse(node, f"{name} takes no {' or '.join(map(str, named))} by keyword")
        values = self.evaluate_values(node.args)
        count = RANDOM[f"{generator}.{name}.{dtype}"] if dtype else 2
        if len(values) != count:
            what = "a seed, a counter and 2 bounds" if count == 4 else "a seed and a counter"
            raise self.refuse(
                node, f"{name} takes {counted(count, 'value')}, {what}, not {len(values)}"
            )
        if not dtype:
            return self._words(node, generator, values)
        function = f"{generator}.{name}.{dtype}"
        return self.componentwise(node, values, lambda *args: IRCall(function, list(args)), name)

    def _words(self, node: ast.Call, generator: str, values: list[Value]) -> VectorValue:
        operands: list[Expression] = []
        for value in values:
            if isinstance(value, VectorValue):
                raise self.refuse(node, f"{generator} takes numbers, and this is {words(value)}")
            operands.append(self.reusable(node, value))
        count = GENERATORS[generator][1]
        parts = (
            self.at(node, IRCall(f"{generator}.word{index}.u32", [again(x) for x in operands]))
            for index in range(count)
        )
        return VectorValue((count,), tuple(parts))

    def _generator(self, node: ast.expr) -> str:
        given = node.value if isinstance(node, ast.Constant) else self.static(node)
        if isinstance(given, str) and given in GENERATORS:
            return given
        near = advice(given, GENERATORS) if isinstance(given, str) else "name one as text"
        raise self.refuse(node, f"generator is one of {', '.join(GENERATORS)}; {near}")

    def _float(self, node: ast.expr) -> str:
        given = self.static(node)
        if isinstance(given, DType) and given.name in ("f32", "f64"):
            return given.name
        raise self.refuse(node, "dtype is tack.f32 or tack.f64; cast the number to have another")
