"""Blocks of statements: control flow, assignments, stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .expressions import Expressions
from .scope import (
    DTYPES_OF,
    FAMILIES,
    NAMES,
    Array,
    Scope,
    Variable,
    VectorVariable,
    family_and_shape,
)
from .vectors import type_name

__all__ = ["Place", "Statements"]

Lines = list[str]
_AUGMENTED = {
    "I": ["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**="],
    "U": ["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>="],
    "F": ["+=", "-=", "*=", "/=", "//=", "%="],
    "B": ["&=", "|=", "^="],
}


@dataclass(frozen=True)
class Place:
    """Where a block stands: how deep, and what may leave it."""

    depth: int = 0
    loops: int = 0
    """Sequential loops around it: `continue` works, and `break` unless the nearest is several."""
    several: bool = False
    iteration: bool = False
    """In the parallel loop of a kernel: `continue` works there too."""
    results: tuple[str, ...] | None = None
    """In a device function: the families that it returns."""


def _runs(bounds: str) -> bool:
    """Whether a range of literals is not empty, so that its index has a value afterwards."""
    numbers = bounds.split(", ")
    literal = all(each.removeprefix("-").isdigit() for each in numbers)
    return literal and bool(range(*map(int, numbers)))


def indent(lines: Lines) -> Lines:
    """The lines one level deeper."""
    return [f"    {line}" for line in lines]


class Statements:
    """Draws statements over expressions."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.pick = expressions.pick
        self.number = expressions.number
        self.chance = expressions.chance

    def block(self, scope: Scope, place: Place, most: int) -> Lines:
        """One statement or more. `scope` gets what they define."""
        lines: Lines = []
        for _ in range(self.number(1, most)):
            lines += self.statement(scope, place)
        return lines

    def nested(self, scope: Scope, place: Place) -> Lines:
        """An indented block whose definitions end with it."""
        lines = self.block(scope.nested(), replace(place, depth=place.depth + 1), 3)
        if self.chance(30):
            lines += self.leave(scope, place)
        return indent(lines)

    def statement(self, scope: Scope, place: Place) -> Lines:
        """One statement."""
        simple: list[Callable[[Scope, Place], Lines]] = [
            self.store,
            self.store,
            self._augmented_store,
            self._atomic,
            self._define,
            self._define,
            self._assign,
            self._augmented,
            self._augmented,
            self._tuple,
            self._annotated,
            self._call,
            self._constant,
            self._chained,
            self._idle,
            self._local_array,
            self._vector,
            self._vector,
        ]
        nested: list[Callable[[Scope, Place], Lines]] = [
            self._if,
            self._if,
            self._if,
            self._for,
            self._for,
            self._while,
            self._guard,
        ]
        deep = place.depth >= 3 or self.expressions.budget <= 0 or place.loops >= 3
        if not deep and self.chance(40):
            return self.pick(nested)(scope, place)
        return self.pick(simple)(scope, place)

    def leave(self, scope: Scope, place: Place) -> Lines:
        """The end of a block that something leaves: break, continue, return, or nothing."""
        options: list[str] = []
        if place.loops:
            options += ["continue"] if place.several else ["continue", "break"]
        elif place.iteration:
            options.append("continue")
        if place.results is not None and not place.loops:
            options.append("return")
        if not options:
            return []
        chosen = self.pick(options)
        return self.returns(scope, place) if chosen == "return" else [chosen]

    def returns(self, scope: Scope, place: Place) -> Lines:
        """A return of the families that the function gives."""
        values: list[str] = []
        for kind in place.results or ():
            family, shape = family_and_shape(kind)
            if shape:
                values.append(self.expressions.vectors.value(family, shape, scope, 1))
            else:
                values.append(self.expressions.strong(family, scope, 2).text)
        return [f"return {', '.join(values)}".rstrip()]

    # Assignments.

    def _depth(self) -> int:
        return self.number(1, 3)

    def _define(self, scope: Scope, _place: Place) -> Lines:
        family = self.pick(FAMILIES)
        term = self.expressions.value(family, scope, self._depth())
        if family == "U" and term.weak:
            term = self.expressions.strong(family, scope, 1)
        name = scope.fresh(self.pick(NAMES))
        # An I or F local that starts from literals gets its type from what follows.
        scope.variables.append(Variable(name, family, term.weak))
        return [f"{name} = {term.text}"]

    def _constant(self, scope: Scope, _place: Place) -> Lines:
        """A local that only ever holds literals, and so stays weak."""
        family = self.pick(["I", "U", "F"])
        name = scope.fresh(self.pick(NAMES))
        text = self.expressions.literal(family).text
        lines = [f"{name} = {text}"]
        if self.chance(30):
            test = self.expressions.condition(scope, 1)
            lines += [f"if {test}:", f"    {name} = {self.expressions.literal(family).text}"]
        scope.variables.append(Variable(name, family, weak=True, writable=False))
        return lines

    def _assign(self, scope: Scope, place: Place) -> Lines:
        families = [each for each in FAMILIES if scope.of(each, writable=True)]
        if not families:
            return self._define(scope, place)
        family = self.pick(families)
        variable = self.pick(scope.of(family, writable=True))
        value = self._assigned(family, scope)
        return [f"{variable.name} = {value}"]

    def _assigned(self, family: str, scope: Scope) -> str:
        if family == "U":
            return self.expressions.strong(family, scope, self._depth()).text
        return self.expressions.value(family, scope, self._depth()).text

    def _augmented(self, scope: Scope, place: Place) -> Lines:
        families = [each for each in FAMILIES if scope.of(each, writable=True)]
        if not families:
            return self._define(scope, place)
        family = self.pick(families)
        variable = self.pick(scope.of(family, writable=True))
        op = self.pick(_AUGMENTED[family])
        return [f"{variable.name} {op} {self._operand(family, op, scope)}"]

    def _operand(self, family: str, op: str, scope: Scope) -> str:
        """The right side of an augmented assignment."""
        if op == "**=":
            return str(self.number(0, 3))
        if family in ("I", "F") and op in ("+=", "-=", "*=") and self.chance(30):
            return self.expressions.literal(family).text
        if family != "B" and self.chance(25):
            family = self.pick(["B", "I", "U"] if family == "F" else ["B"])
        return self.expressions.strong(family, scope, self._depth()).text

    def _tuple(self, scope: Scope, place: Place) -> Lines:
        functions = [each for each in self.expressions.functions if len(each.results) > 1]
        if functions and self.chance(60):
            function = self.pick(functions)
            text = self.expressions.call(function, scope, 2)
            if text is not None:
                return [f"{self._targets(function.results, scope)} = {text}"]
        for family in FAMILIES:
            known = scope.of(family, writable=True)
            if len(known) > 1 and self.chance(40):
                a, b = known[0].name, known[-1].name
                return [f"{a}, {b} = {b}, {a}"]
        families = [self.pick(FAMILIES) for _ in range(self.number(2, 3))]
        values = ", ".join(self._assigned(each, scope) for each in families)
        return [f"{self._targets(tuple(families), scope)} = {values}"]

    def _targets(self, families: tuple[str, ...], scope: Scope) -> str:
        """Names to unpack into: fresh ones, one that is known, an element of an array."""
        names: list[str] = []
        for kind in families:
            family, shape = family_and_shape(kind)
            if shape:
                names.append(scope.fresh(self.pick(NAMES)))
                scope.vectors.append(VectorVariable(names[-1], family, shape))
                continue
            known = [each for each in scope.of(family, writable=True) if each.name not in names]
            if known and self.chance(40):
                names.append(self.pick(known).name)
                continue
            owned = [each for each in scope.arrays if each.writable and each.family == family]
            if owned and self.chance(30):
                names.append(self.expressions.element(self.pick(owned), scope, 1))
                continue
            names.append(scope.fresh(self.pick(NAMES)))
        for name, family in zip(names, families, strict=True):
            if len(family) > 1:
                continue
            if name.isidentifier() and all(each.name != name for each in scope.variables):
                scope.variables.append(Variable(name, family, weak=True))
        return ", ".join(names)

    def _chained(self, scope: Scope, place: Place) -> Lines:
        """One value for several targets."""
        families = [each for each in FAMILIES if scope.of(each, writable=True)]
        if not families:
            return self._define(scope, place)
        family = self.pick(families)
        known = self.pick(scope.of(family, writable=True)).name
        value = self._assigned(family, scope)
        return [f"{known} = {self._targets((family,), scope)} = {value}"]

    def _local_array(self, scope: Scope, _place: Place) -> Lines:
        """An array of the iteration, or of the round: zeros, until something is stored."""
        name = scope.fresh(self.pick(NAMES))
        local = [each for each in scope.arrays if each.local]
        family = self.pick(["I", "F", "I", "U"])
        dtype = "u64" if family == "U" else self.pick(DTYPES_OF[family])
        if local and self.chance(30):
            like = self.pick(local)
            scope.add(Array(name, family, like.rank, local=True))
            return [f"{name} = tack.local_array_like({like.name}, tack.{dtype})"]
        element = self.expressions.vectors.shape() if self.chance(25) else ()
        dtype = type_name(dtype, element)
        extents = [str(self.number(2, 4)) for _ in range(self.pick([1, 1, 2, 3]))]
        extents[0] = self.pick([extents[0], f"{extents[0]} + 1", f"2 * {extents[0]} - 1"])
        shape = extents[0] if len(extents) == 1 else f"({', '.join(extents)})"
        scope.add(Array(name, family, len(extents), local=True, element=element))
        return [f"{name} = tack.local_array(tack.{dtype}, {shape})"]

    def _idle(self, scope: Scope, _place: Place) -> Lines:
        """What does nothing; an assert is for debug mode only."""
        if self.chance(50):
            return ["pass"]
        return [f"assert {self.expressions.condition(scope, 2)}, 'not checked here'"]

    def _annotated(self, scope: Scope, _place: Place) -> Lines:
        family = self.pick(FAMILIES)
        dtype = self.pick(DTYPES_OF[family])
        spelled = "bool_" if dtype == "bool" else dtype
        value = self.expressions.value(family, scope, self._depth()).text
        if family == "B" or self.chance(30):
            value = f"tack.{spelled}({value})"
        name = scope.fresh(self.pick(NAMES))
        scope.variables.append(Variable(name, family))
        return [f"{name}: tack.{spelled} = {value}"]

    def _vector(self, scope: Scope, _place: Place) -> Lines:
        return self.expressions.vectors.statement(scope)

    # Stores and procedures.

    def store(self, scope: Scope, place: Place) -> Lines:
        """A store to an array that the iteration owns part of."""
        owned = [each for each in scope.arrays if each.writable]
        if not owned:
            return self._define(scope, place)
        array = self.pick(owned)
        source = array.family
        if source != "B" and self.chance(20):
            source = self.pick(["I", "U", "B"] if array.family != "F" else ["I", "U", "F", "B"])
        value = self.expressions.value(source, scope, self._depth()).text
        return [f"{self.expressions.element(array, scope, 1)} = {value}"]

    def _augmented_store(self, scope: Scope, place: Place) -> Lines:
        owned = [each for each in scope.arrays if each.writable]
        if not owned:
            return self._define(scope, place)
        array = self.pick(owned)
        op = self.pick(_AUGMENTED[array.family])
        target = self.expressions.element(array, scope, 1)
        return [f"{target} {op} {self._operand(array.family, op, scope)}"]

    def _atomic(self, scope: Scope, place: Place) -> Lines:
        """An atomic on an element that is the iteration's own, so that the old one is settled."""
        owned = [each for each in scope.arrays if each.own and each.atomic]
        if not owned:
            return self._define(scope, place)
        array = self.pick(owned)
        element = self.expressions.element(array, scope, 1).removesuffix("]")
        if not element.startswith(f"{array.name}["):  # x.flat[i]
            return self._define(scope, place)
        index = element.removeprefix(f"{array.name}[")
        index = f"({index})" if array.rank > 1 else index
        # The bits of a NaN, which cas of floats compares, are open.
        op = self.pick(["add", "sub", "min", "max", "exchange"])
        if array.family != "F":
            op = self.pick([op, op, "and", "or", "xor", "cas"])
        count = 1 + (op == "cas")
        family = array.family
        values = [self.expressions.value(family, scope, self._depth()).text for _ in range(count)]
        call = f"tack.atomic_{op}({array.name}, {index}, {', '.join(values)})"
        known = scope.of(family, writable=True)
        if not known or self.chance(50):
            return [call]
        op = self.pick(["=", "+=", "-="]) if family != "U" else "="
        return [f"{self.pick(known).name} {op} {call}"]

    def _call(self, scope: Scope, place: Place) -> Lines:
        for function in self.expressions.functions:
            if not function.results:
                text = self.expressions.call(function, scope, 2)
                if text is not None:
                    return [text]
        return self.store(scope, place)

    # Control flow.

    def _if(self, scope: Scope, place: Place) -> Lines:
        lines = [f"if {self.expressions.condition(scope, 2)}:", *self.nested(scope, place)]
        while self.chance(25):
            lines += [f"elif {self.expressions.condition(scope, 2)}:", *self.nested(scope, place)]
        if self.chance(50):
            lines += ["else:", *self.nested(scope, place)]
        return lines

    def _guard(self, scope: Scope, place: Place) -> Lines:
        leave = self.leave(scope, place)
        if not leave:
            return self._if(scope, place)
        return [f"if {self.expressions.condition(scope, 2)}:", *indent(leave)]

    def _for(self, scope: Scope, place: Place) -> Lines:
        if self.chance(20):
            return self._ndrange(scope, place)
        known = scope.of("I", writable=True)
        bounds = self._bounds(scope)
        inner = scope.nested()
        if known and self.chance(30):
            name = self.pick(known).name
        else:
            name = scope.fresh(self.pick(NAMES))
            inner.variables.append(Variable(name, "I", writable=self.chance(30)))
        body = self.nested(inner, replace(place, loops=place.loops + 1, several=False))
        if all(name != each.name for each in scope.variables) and _runs(bounds):
            scope.variables.append(Variable(name, "I"))
        return [f"for {name} in range({bounds}):", *body]

    def _ndrange(self, scope: Scope, place: Place) -> Lines:
        """Nested loops with one head; no break leaves them."""
        inner, names = scope.nested(), [scope.fresh(self.pick(NAMES)) for _ in range(2)]
        inner.variables += [Variable(name, "I", writable=self.chance(30)) for name in names]
        extents = f"{self.number(0, 3)}, {self._small(scope)} % {self.number(1, 3)}"
        inside = replace(place, loops=place.loops + 1, several=True)
        return [
            f"for {', '.join(names)} in tack.ndrange({extents}):",
            *self.nested(inner, inside),
        ]

    def _bounds(self, scope: Scope) -> str:
        """A few rounds: literals, or an integer expression reduced to a small count."""
        small = f"{self._small(scope)} % {self.number(1, 4)}"
        match self.number(0, 5):
            case 0:
                return str(self.number(0, 4))
            case 1:
                return small
            case 2:
                return f"{self.number(-2, 2)}, {small}"
            case 3:
                return f"{self.number(-1, 3)}, {self.number(0, 7)}, {self.number(1, 3)}"
            case 4:
                return f"{small}, {self.number(-4, 1)}, {self.number(-3, -1)}"
            case _:
                return f"{self.number(0, 1)}, {small}, 1 + {self._small(scope)} % 2"

    def _small(self, scope: Scope) -> str:
        return f"({self.expressions.strong('I', scope, 2).text})"

    def _while(self, scope: Scope, place: Place) -> Lines:
        """A loop that a counter of its own ends."""
        count = scope.fresh(self.pick(NAMES))
        limit = self.number(1, 4)
        inner = scope.nested()
        inner.variables.append(Variable(count, "I", writable=False))
        test = f"{count} < {limit}"
        lines: Lines = []
        match self.number(0, 5):
            case 5:
                start, step = 0, f"{count} += 1"
                lines = [f"if {count} >= {limit}:", "    break"]
                test = self.pick(["True", "1"])
            case 0:
                start, step = 0, f"{count} += 1"
            case 1:
                start, step = 0, f"{count} += 1"
                lines = [f"if {count} >= {limit}:", "    break"]
                test = self.expressions.condition(inner, 3)
            case 2:
                start, step = 0, f"{count} += 1"
                test = f"{test} and {self.expressions.condition(inner, 2)}"
            case 3:
                start, step = 0, f"{count} = {count} + 1"
                test = f"{self.expressions.condition(inner, 2)} and {test}"
            case _:
                start, step, test = limit, f"{count} -= 1", count
        lines.append(step)
        inside = replace(place, loops=place.loops + 1, several=False)
        body = indent(lines) + self.nested(inner, inside)
        scope.variables.append(Variable(count, "I", writable=False))
        return [f"{count} = {start}", f"while {test}:", *body]
