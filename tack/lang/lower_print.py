"""Lowering of ``print``: a statement that writes texts and numbers in one step."""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Iterator
from typing import Final

from tack.ir.nodes import IRConstant, IRName, IRPrint
from tack.lang.lower_base import is_simple
from tack.lang.lower_returns import ReturnLowering

__all__ = ["PrintLowering"]

_MOST_VALUES: Final = 16
"""A printf of CUDA takes 32 values, and a float is two of them."""

_AS_IT_IS: Final = (-1, ord("s"), ord("r"))
"""The conversions of an f-string that change no number; ``{x=}`` has the last one."""


class PrintLowering(ReturnLowering):
    """Lowers ``print``."""

    def is_print(self, node: ast.expr) -> bool:
        """Whether an expression is a call of Python's ``print``."""
        return isinstance(node, ast.Call) and self.static(node.func) is python.print

    def print_(self, node: ast.Call) -> None:
        """A call as ``print(a, "text", f"{x=}", sep=", ")``."""
        separator, end = self._spacing(node)
        pieces: list[str | ast.expr] = []
        for number, argument in enumerate(node.args):
            pieces += [separator] if number else []
            pieces += self._pieces(argument)
        pieces.append(end)
        values = [piece for piece in pieces if not isinstance(piece, str)]
        if len(values) > _MOST_VALUES:
            raise self.refuse(
                node, f"a print has {_MOST_VALUES} values at most, not {len(values)}; make two"
            )
        texts = [""]
        for piece in pieces:
            if isinstance(piece, str):
                texts[-1] += piece
            else:
                texts.append("")
        if not values and not texts[0]:
            return
        held = [
            value if is_simple(value) else self.temporary(value_node, value)
            for value_node, value in zip(values, self.evaluate(values), strict=True)
        ]
        assert all(isinstance(value, IRName | IRConstant) for value in held)
        self.emit(node, IRPrint(texts, held, [None] * len(held)))

    def _spacing(self, node: ast.Call) -> tuple[str, str]:
        """What stands between the values, and behind them."""
        found = {"sep": " ", "end": "\n"}
        for keyword in node.keywords:
            name, value = keyword.arg, keyword.value
            if name not in found:
                raise self.refuse(
                    value,
                    "print in a kernel writes to standard output; of keywords it has sep and end",
                )
            if not isinstance(value, ast.Constant) or not isinstance(value.value, str | None):
                raise self.refuse(value, f"{name} of a print in a kernel is a text, as {name}=','")
            if value.value is not None:
                found[name] = self._text(value, value.value)
        return found["sep"], found["end"]

    def _pieces(self, node: ast.expr) -> Iterator[str | ast.expr]:
        """The texts and values that an argument writes."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield self._text(node, node.value)
        elif isinstance(node, ast.JoinedStr):
            for part in node.values:
                yield from self._pieces(part)
        elif isinstance(node, ast.FormattedValue):
            if node.format_spec is not None or node.conversion not in _AS_IT_IS:
                raise self.refuse(
                    node, "a print in a kernel has no formats; write the value alone, as {x}"
                )
            yield node.value
        elif isinstance(node, ast.Starred):
            raise self.refuse(node, "print in a kernel takes values one by one; write them out")
        else:
            yield node

    def _text(self, node: ast.expr, text: str) -> str:
        """``text`` as it can be written."""
        if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
            raise self.refuse(node, "a text that a kernel prints has no NUL and no surrogate in it")
        return text
