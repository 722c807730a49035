"""What generated code can name at a point: variables by family, arrays by how they may be touched.

A family is a set of types that combine without ever being refused: `I` are the integers but u64,
`U` the unsigned ones, `F` the floats, `B` is bool. The generator reasons about families only; exact
types are the oracle's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "DTYPES_OF",
    "FAMILIES",
    "NAMES",
    "Array",
    "Function",
    "Scope",
    "Term",
    "Variable",
    "VectorVariable",
]

FAMILIES = ("I", "F", "U", "B")
DTYPES_OF = {
    "I": ("i64", "i32", "u8", "i8", "i16", "u16", "u32"),
    "U": ("u64", "u32", "u8", "u16"),
    "F": ("f32", "f64", "f16", "bf16"),
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
    """A local vector: its components are of one family."""

    name: str
    family: str
    count: int


@dataclass(frozen=True)
class Array:
    """An array parameter.

    `own` is empty for one that nothing writes and that is read anywhere. Otherwise it is the
    leading index of what the iteration owns, as text: complete if `free` is "", else followed by
    any index into the last axis ("axis"), or multiplied by `pitch` with an offset below `width`
    added ("segment"). A `local` one belongs to the iteration, every element of it. A `strided` one
    takes no atomics.
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
            )
            for each in (self, wanted)
        )
        return one == other and (self.local or not wanted.local)


@dataclass(frozen=True)
class Function:
    """A device function that is already written."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    """Name and family of the scalar parameters, after the array and its index."""
    defaults: int
    results: tuple[str, ...]
    array: Array | None = None
    indices: tuple[str, ...] = ()


@dataclass
class Scope:
    """Variables and arrays in reach. A block works on a copy, so what it defines ends with it."""

    variables: list[Variable] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    vectors: list[VectorVariable] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    """Names in use anywhere in the function: shared by all copies."""

    def nested(self) -> Scope:
        """A scope for a block."""
        return Scope(list(self.variables), list(self.arrays), list(self.vectors), self.taken)

    def of(self, family: str, *, writable: bool = False) -> list[Variable]:
        """The variables of a family."""
        return [
            each
            for each in self.variables
            if each.family == family and (each.writable or not writable)
        ]

    def fresh(self, hint: str) -> str:
        """A name that the function does not use yet, `hint` if it is free."""
        name, number = hint, 2
        while name in self.taken:
            name, number = f"{hint}{number}", number + 1
        self.taken.add(name)
        return name
