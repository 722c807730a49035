"""Expressions of a family, to a depth and within a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .operations import RING, Operations
from .scope import DTYPES_OF, FAMILIES, Array, Function, Scope, Term, family_and_shape
from .vectors import Vectors

__all__ = ["Choose", "Expressions"]

T = TypeVar("T")
Choose = Callable[[int, int], int]
"""An integer from the first to the second; everything that is drawn comes from these."""

_INTEGERS = [0, 1, 2, 3, 5, 7, -1, -2, 10, 100, 127, 128, -128, 255, 256, 300, -300, 32768, 65535]
_LARGE = [2**31 - 1, -(2**31), 2**31, 2**32 + 1, 2**63 - 1]
_NATURALS = [0, 1, 2, 3, 5, 7, 8, 63, 100, 127, 128, 200, 255]
_FLOATS = ["0.0", "1.0", "0.5", "2.5", "0.1", "3.7", "1e-3", "1e10", "1e300", "16777217.0"]
_COMPARE = ["<", "<=", ">", ">=", "==", "!="]


class Expressions(Operations):
    """Draws expressions.

    `budget` bounds how many operations the whole program has. A `careless` program mixes types that
    may have nothing in common, so that one side refusing it can be compared with the other.
    """

    def __init__(self, choose: Choose) -> None:
        self.number = choose
        self.functions: list[Function] = []
        self.budget = 200
        self.careless = False
        self.vectors = Vectors(self)
        tables: dict[str, list[tuple[Callable[[Scope, int], Term], int]]] = {
            "I": [
                *self._number("I"),
                (self._ring_i, 2),
                (self._floor_i, 2),
                (self._bits_i, 2),
                (self._shift_i, 2),
                (self._power_i, 1),
                (self._invert_i, 1),
                (self._cast_i, 2),
                (self._bool_i, 1),
                (self._shape, 1),
                (self._counted_i, 1),
                (self._drawn_i, 1),
            ],
            "U": [
                *self._number("U"),
                (self._ring_u, 2),
                (self._floor_u, 2),
                (self._bits_u, 2),
                (self._shift_u, 1),
                (self._power_u, 1),
                (self._invert_u, 1),
                (self._cast_u, 2),
                (self._counted_u, 1),
                (self._drawn_u, 1),
            ],
            "F": [
                *self._number("F"),
                (self._ring_f, 3),
                (self._floor_f, 2),
                (self._divide_f, 2),
                (self._divide_integers, 1),
                (self._mixed_f, 1),
                (self._rounded_f, 2),
                (self._root_f, 1),
                (self._square_f, 1),
                (self._fma_f, 2),
                (self._mix_f, 1),
                (self._copysign_f, 1),
                (self._drawn_f, 1),
                (self._cast_f, 2),
            ],
            "B": [
                (self._comparison, 3),
                (self._chain, 2),
                (self._junction, 3),
                (self._negation, 2),
                (self._bits_b, 1),
                (self._choice_b, 1),
                (self._cast_b, 1),
                (self._asked_b, 1),
                (self._call_b, 2),
                (self._component_b, 1),
            ],
        }
        self._kinds = {
            family: [method for method, count in table for _ in range(count)]
            for family, table in tables.items()
        }

    def _number(self, family: str) -> list[tuple[Callable[[Scope, int], Term], int]]:
        def of(method: Callable[[str, Scope, int], Term]) -> Callable[[Scope, int], Term]:
            return lambda scope, depth: method(family, scope, depth)

        return [
            (of(self._load), 2),
            (of(self._negative), 1),
            (of(self._absolute), 1),
            (of(self._extreme), 2),
            (of(self._limited), 1),
            (of(self._sign), 1),
            (of(self._choice), 2),
            (of(self._call), 3),
            (of(self._component), 2),
        ]

    # Choices.

    def pick(self, options: list[T] | tuple[T, ...]) -> T:
        """One of `options`; the first is the simplest."""
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True in about `percent` of the cases; shrinks to False."""
        return self.number(0, 99) >= 100 - percent

    # Entry points.

    def value(self, family: str, scope: Scope, depth: int) -> Term:
        """An expression of a family; of any, now and then, where the program is careless."""
        if self.careless and self.chance(4):
            family = self.pick(FAMILIES)
        if depth <= 0 or self.budget <= 0 or self.chance(15):
            return self._leaf(family, scope)
        self.budget -= 1
        return self.pick(self._kinds[family])(scope, depth - 1)

    def strong(self, family: str, scope: Scope, depth: int) -> Term:
        """An expression whose type does not come from literals alone."""
        return self._typed(family, self.value(family, scope, depth))

    def condition(self, scope: Scope, depth: int) -> str:
        """A test: mostly a bool, sometimes a number's truth."""
        family = self.pick(["B", "B", "B", "B", "I", "F", "U"])
        if self.chance(8):
            return self._component(family, scope, depth).text
        return self.value(family, scope, depth).text

    def anything(self, scope: Scope, depth: int) -> Term:
        """An expression of any family."""
        return self.value(self.pick(["I", "F", "U", "B"]), scope, depth)

    def _typed(self, family: str, term: Term) -> Term:
        if not term.weak or family == "B":
            return term
        return Term(f"tack.{self.pick(DTYPES_OF[family])}({term.text})")

    def _leaf(self, family: str, scope: Scope) -> Term:
        known = scope.of(family)
        if known and self.chance(70):
            variable = self.pick(known)
            return Term(variable.name, variable.weak)
        place = self.vectors.place_of(family, scope) if self.chance(40) else None
        if place is not None:
            return Term(place)
        arrays = [each for each in scope.arrays if each.family == family]
        if arrays and self.chance(60):
            return Term(self.element(self.pick(arrays), scope, 0))
        return self.literal(family)

    def literal(self, family: str) -> Term:
        """A literal of a family."""
        match family:
            case "I":
                number = self.pick(_LARGE) if self.chance(8) else self.pick(_INTEGERS)
                return Term(f"({number})" if number < 0 else str(number), weak=True)
            case "U":
                return Term(str(self.pick(_NATURALS)), weak=True)
            case "F":
                sign = "-" if self.chance(20) else ""
                text = f"({sign}{self.pick(_FLOATS)})"
                return Term(text, weak=True)
            case _:
                return Term(self.pick(["True", "False"]))

    # Arrays.

    def element(self, array: Array, scope: Scope, depth: int) -> str:
        """A load (or the target of a store) of an element that the iteration may touch."""
        if not array.own:
            index = [self._inside(array, axis, scope, depth) for axis in range(array.rank)]
        elif array.free == "axis":
            index = [*array.own, self._inside(array, array.rank - 1, scope, depth)]
        elif array.free == "segment":
            offset = self.index(scope, depth)
            index = [f"{array.own[0]} * {array.pitch} + {offset} % {array.width}"]
        else:
            index = list(array.own)
        if array.free != "axis" and self.chance(15):
            return f"{array.name}.flat[{self._flat(array, index, scope, depth)}]"
        return f"{array.name}[{', '.join(index) or '()'}]"

    def _flat(self, array: Array, index: list[str], scope: Scope, depth: int) -> str:
        """The flat index of the element with these indices, or of any where any may be read."""
        if not array.own:
            return f"{self.index(scope, depth)} % {array.name}.size"
        first, *rest = index
        for axis, each in enumerate(rest, start=1):
            first = f"({first}) * {array.name}.shape[{axis}] + {each}"
        return first

    def _inside(self, array: Array, axis: int, scope: Scope, depth: int) -> str:
        if self.chance(20):
            return str(self.number(0, 1))
        return f"{self.index(scope, depth)} % {array.name}.shape[{axis}]"

    def index(self, scope: Scope, depth: int) -> str:
        """An integer expression that `%` an i64 accepts."""
        known = scope.of("I")
        if depth <= 0:
            return self.pick(known).name if known else self.literal("I").text
        family = self.pick(["I", "I", "U"])
        text = self.value(family, scope, depth).text
        return f"({text})" if family == "I" else f"int({text})"

    def _load(self, family: str, scope: Scope, depth: int) -> Term:
        arrays = [each for each in scope.arrays if each.family == family]
        if not arrays:
            return self._leaf(family, scope)
        return Term(self.element(self.pick(arrays), scope, depth))

    def _shape(self, scope: Scope, _depth: int) -> Term:
        if not scope.all_arrays:
            return self._leaf("I", scope)
        array = self.pick(scope.all_arrays)
        if array.rank == 0 or self.chance(20):
            return Term(f"{array.name}.{self.pick(['size', 'ndim'])}")
        if self.chance(10):
            return Term(f"len({array.name})")
        return Term(f"{array.name}.shape[{self.number(0, array.rank - 1)}]")

    # Vectors.

    def _component(self, family: str, scope: Scope, depth: int) -> Term:
        return self.vectors.component(family, scope, depth) or self._leaf(family, scope)

    def _component_b(self, scope: Scope, depth: int) -> Term:
        return self._component("B", scope, depth)

    # Choices and logic.

    def _choice(self, family: str, scope: Scope, depth: int) -> Term:
        test = self.condition(scope, depth)
        left, right = self.value(family, scope, depth), self.value(family, scope, depth)
        return Term(f"({left.text} if {test} else {right.text})", left.weak and right.weak)

    def _choice_b(self, scope: Scope, depth: int) -> Term:
        return self._choice("B", scope, depth)

    def _comparison(self, scope: Scope, depth: int) -> Term:
        family = self.pick(["I", "F", "U", "B"])
        left, right = self.value(family, scope, depth), self.value(family, scope, depth)
        return Term(f"({left.text} {self.pick(_COMPARE)} {right.text})")

    def _chain(self, scope: Scope, depth: int) -> Term:
        family = self.pick(["I", "F", "U"])
        terms = [self.value(family, scope, depth).text for _ in range(self.number(3, 4))]
        text = terms[0] + "".join(f" {self.pick(_COMPARE)} {each}" for each in terms[1:])
        return Term(f"({text})")

    def _junction(self, scope: Scope, depth: int) -> Term:
        op = self.pick(["and", "or"])
        terms = [self.condition(scope, depth) for _ in range(self.pick([2, 2, 2, 3]))]
        return Term(f"({f' {op} '.join(terms)})")

    def _negation(self, scope: Scope, depth: int) -> Term:
        return Term(f"(not {self.condition(scope, depth)})")

    # Device functions.

    def _call(self, family: str, scope: Scope, depth: int) -> Term:
        known = [each for each in self.functions if each.results == (family,)]
        if not known:
            return self._leaf(family, scope)
        function = self.pick(known)
        array = self._array_for(function, scope)
        text = self.call(function, scope, depth, array)
        if text is None:
            return self._leaf(family, scope)
        loads = array is not None and array.own and not array.element
        if array is not None and loads and array.family == family and self.chance(75):
            # What is loaded before the call is not what is loaded after it.
            before, op = self.element(array, scope, 0), self.pick(RING)
            after = f" {self.pick(RING)} {self.element(array, scope, 0)}" * self.chance(50)
            return Term(f"({before} {op} {text}{after})")
        return Term(text)

    def _call_b(self, scope: Scope, depth: int) -> Term:
        return self._call("B", scope, depth)

    def _array_for(self, function: Function, scope: Scope) -> Array | None:
        """An array that a function can be given, if it takes one and there is one."""
        wanted = function.array
        arrays = [] if wanted is None else [e for e in scope.all_arrays if e.fits(wanted)]
        return self.pick(arrays) if arrays else None

    def call(
        self, function: Function, scope: Scope, depth: int, array: Array | None = None
    ) -> str | None:
        """A call of a device function, or `None` where no array or object fits it."""
        given: list[str] = []
        name = function.name
        if function.owner:
            objects = [each for each in scope.objects if each.cls == function.owner]
            if not objects:
                return None
            thing = self.pick(objects)
            if function.call == "parameter":
                given = [thing.text, *thing.own]
            else:
                name = f"{thing.text}.{name}"
                given = [*thing.own] if function.call == "method" else []
        if function.array is not None:
            array = array or self._array_for(function, scope)
            if array is None:
                return None
            given = [array.name, *array.own]
        names: list[str] = []
        count = len(function.parameters)
        positional = self.number(0, count)
        for at, (parameter, kind) in enumerate(function.parameters):
            if at >= count - function.defaults and self.chance(40):
                positional = min(positional, at)  # what follows is given by keyword
                continue
            family, shape = family_and_shape(kind)
            if shape:
                text = self.vectors.value(family, shape, scope, depth)
            else:
                text = self.value(family, scope, depth).text
            if at < positional:
                given.append(text)
            else:
                names.append(f"{parameter}={text}")
        if len(names) > 1 and self.chance(50):
            names.reverse()
        return f"{name}({', '.join([*given, *names])})"
