"""Vectors and matrices: expressions, what numbers are made of them, their statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scope import DTYPES_OF, NAMES, Scope, Shape, Term, VectorVariable

if TYPE_CHECKING:
    from .expressions import Expressions

__all__ = ["Vectors", "type_name"]

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
_MATRICES: list[Shape] = [(2, 2), (2, 2), (2, 3), (3, 2), (3, 3), (4, 2)]


def type_name(dtype: str, shape: Shape) -> str:
    """`f32` and `(2, 3)` as `f32x2x3`."""
    return "x".join(map(str, (dtype, *shape)))


class Vectors:
    """Draws vectors over the expressions of numbers. They always have a type of their own."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.pick = expressions.pick
        self.number = expressions.number
        self.chance = expressions.chance

    def shape(self) -> Shape:
        """That of a vector, now and then of a matrix."""
        return self.pick(_MATRICES) if self.chance(25) else (self.number(2, 4),)

    # Expressions.

    def value(self, family: str, shape: Shape, scope: Scope, depth: int) -> str:
        """A vector or a matrix whose components are of a family."""
        if depth <= 0 or self.expressions.budget <= 0 or self.chance(20):
            return self._leaf(family, shape, scope)
        self.expressions.budget -= 1
        if family != "B" and self.chance(20):
            return self._product(family, shape, scope, depth - 1)
        first = self.value(family, shape, scope, depth - 1)
        kind = self.number(0, 5)
        if kind == 0:
            test = self.expressions.condition(scope, 1)
            return f"({first} if {test} else {self.value(family, shape, scope, depth - 1)})"
        if kind == 1 and family != "B":
            return f"(-{first})" if self.chance(50) else f"abs({first})"
        if kind == 2 and family == "B":
            other = self.pick(["I", "F"])
            pair = [self.value(other, shape, scope, depth - 1) for _ in range(2)]
            return f"({pair[0]} {self.pick(_COMPARE)} {pair[1]})"
        if self.chance(60):
            second = self.value(family, shape, scope, depth - 1)
        else:
            second = self.expressions.strong(family, scope, 1).text
        if kind == 3 and family != "B":
            return f"{self.pick(['min', 'max'])}({first}, {second})"
        pair = (first, second) if self.chance(70) else (second, first)
        return f"({pair[0]} {self.pick(_OPERATORS[family])} {pair[1]})"

    def _product(self, family: str, shape: Shape, scope: Scope, depth: int) -> str:
        """What linear algebra has for a shape."""

        def of(*shape: int) -> str:
            return self.value(family, shape, scope, depth)

        inner, kind = self.number(2, 3), self.number(0, 2)
        if len(shape) == 2:
            if kind == 0:
                return f"tack.transpose({of(*reversed(shape))})"
            if kind == 1 and family == "F" and shape in ((2, 2), (3, 3)):
                return f"tack.inverse({self._leaf('F', shape, scope)})"
            return f"({of(shape[0], inner)} @ {of(inner, shape[1])})"
        if kind == 0 and shape == (3,):
            return f"tack.cross({of(3)}, {of(3)})"
        if kind == 1 and family == "F":
            return f"tack.normalize({of(*shape)})"
        if self.chance(50):
            return f"({of(*shape, inner)} @ {of(inner)})"
        return f"({of(inner)} @ {of(inner, *shape)})"

    def _known(self, family: str, scope: Scope, *, writable: bool = False) -> list[VectorVariable]:
        """The vectors of a family: variables, and an element of each array of them."""
        found = [
            each
            for each in scope.vectors
            if each.family == family and (each.writable or not writable)
        ]
        for array in scope.vector_arrays:
            if array.family == family and (array.writable or not writable):
                name = self.expressions.element(array, scope, 0)
                found.append(VectorVariable(name, family, array.element))
        return found

    def _leaf(self, family: str, shape: Shape, scope: Scope) -> str:
        known = self._known(family, scope)
        same = [each for each in known if each.shape == shape]
        if same and self.chance(60):
            return self.pick(same).name
        kind = f"{family}{'x'.join(map(str, shape))}"
        functions = [each for each in self.expressions.functions if each.results == (kind,)]
        if functions and self.expressions.budget > 0 and self.chance(60):
            self.expressions.budget -= 1
            text = self.expressions.call(self.pick(functions), scope, 1)
            if text is not None:
                return text
        rows = [each for each in known if len(each.shape) == 2 and each.shape[1:] == shape]
        if rows and self.chance(60):
            row = self.pick(rows)
            return f"{row.name}[{self._position(row.shape[0], scope, 0)}]"
        others = [each for each in known if len(each.shape) == 1]
        if others and len(shape) == 1 and self.chance(60):
            variable = self.pick(others)
            letters = [self.pick(_LETTERS[: variable.shape[0]]) for _ in range(shape[0])]
            return f"{variable.name}.{''.join(letters)}"
        return self._made(family, shape, scope)

    def _made(self, family: str, shape: Shape, scope: Scope) -> str:
        """A constructor: of one number, of all components, or of rows."""
        name = f"tack.{type_name(self.pick(DTYPES_OF[family]), shape)}"
        if self.chance(30):
            return f"{name}({self.expressions.value(family, scope, 1).text})"
        if len(shape) == 2 and self.chance(30):
            rows = [self._leaf(family, shape[1:], scope) for _ in range(shape[0])]
            return f"{name}({', '.join(rows)})"
        depth, count = int(self.chance(30)), 1
        for each in shape:
            count *= each
        parts = [self.expressions.value(family, scope, depth).text for _ in range(count)]
        return f"{name}({', '.join(parts)})"

    def component(self, family: str, scope: Scope, depth: int) -> Term | None:
        """A number of a vector that is known, if one is."""
        known = self._known(family, scope)
        if not known:
            return None
        variable = self.pick(known)
        if self.chance(45):
            return Term(self._place(variable, scope, depth))
        if family == "B":
            return Term(f"{self.pick(['any', 'all'])}({self.value('B', (2,), scope, depth)})")
        if len(variable.shape) == 2:
            size = self.number(2, 3)
            return Term(f"tack.determinant({self._leaf(family, (size, size), scope)})")
        if family == "F" and self.chance(40):
            return Term(f"tack.length({variable.name})")
        other = self.value(family, variable.shape, scope, depth)
        return Term(f"tack.dot({variable.name}, {other})")

    def place_of(self, family: str, scope: Scope) -> str | None:
        """A component of a vector that is known, if one is."""
        known = self._known(family, scope)
        return self._place(self.pick(known), scope, 0) if known else None

    def _place(self, variable: VectorVariable, scope: Scope, depth: int) -> str:
        """One component, by name or by an index, of run time too."""
        if len(variable.shape) == 2:
            at = [self._position(each, scope, depth) for each in variable.shape]
            if self.chance(40):
                return f"{variable.name}[{at[0]}].{self.pick(_LETTERS[: variable.shape[1]])}"
            return f"{variable.name}[{', '.join(at)}]"
        if self.chance(60):
            return f"{variable.name}.{self.pick(_LETTERS[: variable.shape[0]])}"
        return f"{variable.name}[{self._position(variable.shape[0], scope, depth)}]"

    def _position(self, count: int, scope: Scope, depth: int) -> str:
        if self.chance(50):
            return str(self.number(0, count - 1))
        return f"{self.expressions.index(scope, depth)} % {count}"

    # Statements.

    def statement(self, scope: Scope) -> list[str]:
        """Something that defines or changes a vector."""
        families = [each for each in "IFUB" if self._known(each, scope, writable=True)]
        if not families or self.chance(35):
            return self._define(scope)
        family = self.pick(families)
        variable = self.pick(self._known(family, scope, writable=True))
        shape, depth = variable.shape, self.number(1, 2)
        kind = self.number(0, 4)
        if kind == 0:
            return [f"{variable.name} = {self.value(family, shape, scope, depth)}"]
        if kind == 1:
            op = self.pick(_AUGMENTED[family])
            return [f"{variable.name} {op} {self.value(family, shape, scope, depth)}"]
        if kind == 2 and len(shape) == 1 and shape[0] > 2:
            letters = list(_LETTERS[: shape[0]])
            first = letters.pop(self.number(0, shape[0] - 1))
            names = first + letters.pop(self.number(0, shape[0] - 2))
            return [f"{variable.name}.{names} = {self.value(family, (2,), scope, depth)}"]
        op = self.pick(["=", *_AUGMENTED[family]])
        value = self.expressions.strong(family, scope, depth).text
        return [f"{self._place(variable, scope, 1)} {op} {value}"]

    def _define(self, scope: Scope) -> list[str]:
        family, shape = self.pick(["I", "F", "U", "B"]), self.shape()
        text = self.value(family, shape, scope, self.number(0, 2))
        name = scope.fresh(self.pick(NAMES))
        scope.vectors.append(VectorVariable(name, family, shape))
        return [f"{name} = {text}"]
