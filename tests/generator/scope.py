"""What generated code can name at a point: variables by family, arrays by how they may be touched.

A family is a set of types that combine without ever being refused: `I` are the integers but u64,
`U` the unsigned ones, `F` the floats, `B` is bool. The generator reasons about families only; exact
types are the oracle's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

__all__ = [
    "DTYPES_OF",
    "FAMILIES",
    "NAMES",
    "Array",
    "Function",
    "Object",
    "Scope",
    "Shape",
    "Term",
    "Variable",
    "VectorVariable",
    "family_and_shape",
    "kind_of",
]

FAMILIES = ("I", "F", "U", "B")
DTYPES_OF = {
    "I": ("i64", "i32", "u8", "i8", "i16", "u16", "u32"),
    "U": ("u64", "u32", "u8", "u16"),
    "F": ("f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2"),
    "B": ("bool",),
}
# fmt: off
NAMES = (
    "a", "b", "c", "d", "e", "g", "h", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z",
    "double", "char", "long", "register", "restrict", "auto", "struct", "volatile", "switch",
    "main", "größe", "Δ", "tack_slot", "ctx", "args", "NULL", "inline", "static_", "unsigned",
    "x_1", "x__1", "INT_MAX",
)
# fmt: on


Shape = tuple[int, ...]
"""The sides of a vector or a matrix."""


def kind_of(family: str, shape: Shape) -> str:
    """How a function's parameters and results are told: `F`, `F3` for a vector, `F2x2`."""
    return family + "x".join(map(str, shape))


def family_and_shape(kind: str) -> tuple[str, Shape]:
    """The family and the shape of a kind."""
    return kind[0], tuple(int(each) for each in kind[1:].split("x") if each)


@dataclass(frozen=True)
class Term:
    """The text of an expression; `weak` if its type may come from literals alone."""

    text: str
    weak: bool = False


@dataclass
class Variable:
    """A local or a scalar parameter. Definitely assigned while it is in scope."""

    name: str
    family: str
    weak: bool = False
    writable: bool = True


@dataclass(frozen=True)
class VectorVariable:
    """A local or parameter that is a vector or a matrix: its components are of one family."""

    name: str
    family: str
    shape: Shape
    writable: bool = True


@dataclass(frozen=True)
class Array:
    """An array parameter.

    `own` is empty for one that nothing writes and that is read anywhere. Otherwise it is the
    leading index of what the iteration owns, as text: complete if `free` is "", else followed by
    any index into the last axis ("axis"), or multiplied by `pitch` with an offset below `width`
    added ("segment"). A `local` one belongs to the iteration, every element of it. An
    `atomic` one takes atomics, which a `strided` one does not. One with an `element` is an array of
    vectors or matrices of that shape.
    """

    name: str
    family: str
    rank: int
    own: tuple[str, ...] = ()
    free: str = ""
    width: int = 0
    pitch: int = 0
    local: bool = False
    strided: bool = False
    atomic: bool = False
    element: Shape = ()

    @property
    def writable(self) -> bool:
        """Whether the iteration may store to it."""
        return self.local or self.own != ()

    def fits(self, wanted: Array) -> bool:
        """Whether a device function that takes `wanted` can be given this one."""
        one, other = (
            (
                each.family,
                each.rank,
                bool(each.own),
                each.free,
                each.width,
                each.pitch,
                each.strided,
                each.atomic,
                each.element,
            )
            for each in (self, wanted)
        )
        return one == other and (self.local or not wanted.local)


@dataclass(frozen=True)
class Function:
    """A device function that is already written."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    """Name and kind of the scalars and vectors, after the array and its index."""
    defaults: int
    results: tuple[str, ...]
    """The kinds of what it returns: families, `F3` for a vector of three."""
    array: Array | None = None
    indices: tuple[str, ...] = ()
    owner: str = ""
    """The class of the object that it is called through, or is given."""
    call: str = ""
    """How: as its `method`, a `static` one, `held` by the object; with it as a `parameter`."""


@dataclass(frozen=True)
class Object:
    """An object of a device class that is in reach as `text`.

    `own` is the leading index of what the iteration owns of the arrays in it, if it owns any.
    """

    cls: str
    text: str
    own: tuple[str, ...] = ()


@dataclass
class Scope:
    """Variables and arrays in reach. A block works on a copy, so what it defines ends with it."""

    variables: list[Variable] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    vector_arrays: list[Array] = field(default_factory=list)
    vectors: list[VectorVariable] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    """Names in use anywhere in the function: shared by all copies."""

    def nested(self) -> Scope:
        """A scope for a block."""
        lists = (self.variables, self.arrays, self.vector_arrays, self.vectors, self.objects)
        return Scope(*map(list, lists), self.taken)  # type: ignore[arg-type]

    def add(self, array: Array) -> None:
        """Puts an array in reach."""
        (self.vector_arrays if array.element else self.arrays).append(array)

    @property
    def all_arrays(self) -> list[Array]:
        """Arrays of numbers and of vectors."""
        return self.arrays + self.vector_arrays

    def of(self, family: str, *, writable: bool = False) -> list[Variable]:
        """The variables of a family."""
        return [
            each
            for each in self.variables
            if each.family == family and (each.writable or not writable)
        ]

    def hold(self, other: Scope, text: str, name: str, own: tuple[str, ...]) -> None:
        """Puts what is in an object of `other`, there `text`, in reach as of `name` here."""

        def renamed(found: str) -> str:
            return name + found.removeprefix(text)

        for variable in other.variables:
            if variable.name.startswith(f"{text}."):
                self.variables.append(replace(variable, name=renamed(variable.name)))
        for array in other.arrays:
            if array.name.startswith(f"{text}."):
                self.add(replace(array, name=renamed(array.name), own=own if array.own else ()))
        for each in other.objects:
            if f"{each.text}.".startswith(f"{text}."):
                self.objects.append(Object(each.cls, renamed(each.text), own if each.own else ()))

    def fresh(self, hint: str) -> str:
        """A name that the function does not use yet, `hint` if it is free."""
        name, number = hint, 2
        while name in self.taken:
            name, number = f"{hint}{number}", number + 1
        self.taken.add(name)
        return name
