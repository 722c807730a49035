"""Vectors: expressions of a family and a count, what numbers are made of them, their statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scope import DTYPES_OF, NAMES, Scope, Term, VectorVariable

if TYPE_CHECKING:
    from .expressions import Expressions

__all__ = ["Vectors"]

_LETTERS = "xyzw"
_OPERATORS = {
    "I": ["+", "-", "*", "//", "%", "&", "|", "^"],
    "U": ["+", "-", "*", "//", "%", "&", "|", "^"],
    "F": ["+", "-", "*", "/", "//", "%"],
    "B": ["&", "|", "^"],
}
_AUGMENTED = {
    "I": ["+=", "-=", "*=", "|="],
    "U": ["+=", "*=", "%="],
    "F": ["+=", "/="],
    "B": ["^="],
}
_COMPARE = ["<", "<=", ">", ">=", "==", "!="]


class Vectors:
    """Draws vectors over the expressions of numbers. They always have a type of their own."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.pick = expressions.pick
        self.number = expressions.number
        self.chance = expressions.chance

    # Expressions.

    def value(self, family: str, count: int, scope: Scope, depth: int) -> str:
        """A vector of ``count`` components of a family."""
        known = [each for each in scope.vectors if each.family == family]
        if depth <= 0 or self.expressions.budget <= 0 or self.chance(20):
            return self._leaf(known, family, count, scope)
        self.expressions.budget -= 1
        first = self.value(family, count, scope, depth - 1)
        kind = self.number(0, 5)
        if kind == 0:
            test = self.expressions.condition(scope, 1)
            return f"({first} if {test} else {self.value(family, count, scope, depth - 1)})"
        if kind == 1 and family != "B":
            return f"(-{first})" if self.chance(50) else f"abs({first})"
        if kind == 2 and family == "B":
            other = self.pick(["I", "F"])
            pair = [self.value(other, count, scope, depth - 1) for _ in range(2)]
            return f"({pair[0]} {self.pick(_COMPARE)} {pair[1]})"
        if self.chance(60):
            second = self.value(family, count, scope, depth - 1)
        else:
            second = self.expressions.strong(family, scope, 1).text
        if kind == 3 and family != "B":
            return f"{self.pick(['min', 'max'])}({first}, {second})"
        pair = (first, second) if self.chance(70) else (second, first)
        return f"({pair[0]} {self.pick(_OPERATORS[family])} {pair[1]})"

    def _leaf(self, known: list[VectorVariable], family: str, count: int, scope: Scope) -> str:
        same = [each for each in known if each.count == count]
        if same and self.chance(60):
            return self.pick(same).name
        if known and self.chance(60):
            variable = self.pick(known)
            letters = [self.pick(_LETTERS[: variable.count]) for _ in range(count)]
            return f"{variable.name}.{''.join(letters)}"
        name = f"tack.{self.pick(DTYPES_OF[family])}x{count}"
        if self.chance(30):
            return f"{name}({self.expressions.value(family, scope, 1).text})"
        depth = int(self.chance(30))
        parts = [self.expressions.value(family, scope, depth).text for _ in range(count)]
        return f"{name}({', '.join(parts)})"

    def component(self, family: str, scope: Scope, depth: int) -> Term | None:
        """A number of a vector that is known, if one is."""
        known = [each for each in scope.vectors if each.family == family]
        if not known:
            return None
        variable = self.pick(known)
        if self.chance(45):
            return Term(self._place(variable, scope, depth))
        if family == "B":
            return Term(f"{self.pick(['any', 'all'])}({self.value('B', 2, scope, depth)})")
        if family == "F" and self.chance(40):
            return Term(f"tack.length({variable.name})")
        other = self.value(family, variable.count, scope, depth)
        return Term(f"tack.dot({variable.name}, {other})")

    def place_of(self, family: str, scope: Scope) -> str | None:
        """A component of a vector that is known, if one is."""
        known = [each for each in scope.vectors if each.family == family]
        return self._place(self.pick(known), scope, 0) if known else None

    def _place(self, variable: VectorVariable, scope: Scope, depth: int) -> str:
        """One component, by name or by an index of run time."""
        if self.chance(60):
            return f"{variable.name}.{self.pick(_LETTERS[: variable.count])}"
        if self.chance(50):
            return f"{variable.name}[{self.number(0, variable.count - 1)}]"
        return f"{variable.name}[{self.expressions.index(scope, depth)} % {variable.count}]"

    # Statements.

    def statement(self, scope: Scope) -> list[str]:
        """Something that defines or changes a vector."""
        writable = [each for each in scope.vectors if each.family != "B"]
        if not writable or self.chance(35):
            return self._define(scope)
        variable = self.pick(writable)
        family, count, depth = variable.family, variable.count, self.number(1, 2)
        kind = self.number(0, 4)
        if kind == 0:
            return [f"{variable.name} = {self.value(family, count, scope, depth)}"]
        if kind == 1:
            op = self.pick(_AUGMENTED[family])
            return [f"{variable.name} {op} {self.value(family, count, scope, depth)}"]
        if kind == 2 and count > 2:
            letters = list(_LETTERS[:count])
            first = letters.pop(self.number(0, count - 1))
            names = first + letters.pop(self.number(0, count - 2))
            return [f"{variable.name}.{names} = {self.value(family, 2, scope, depth)}"]
        op = self.pick(["=", *_AUGMENTED[family]])
        value = self.expressions.strong(family, scope, depth).text
        return [f"{self._place(variable, scope, 1)} {op} {value}"]

    def _define(self, scope: Scope) -> list[str]:
        family, count = self.pick(["I", "F", "U", "B"]), self.number(2, 4)
        text = self.value(family, count, scope, self.number(0, 2))
        name = scope.fresh(self.pick(NAMES))
        scope.vectors.append(VectorVariable(name, family, count))
        return [f"{name} = {text}"]
