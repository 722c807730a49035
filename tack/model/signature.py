"""Signatures: one spec per parameter, with a text form that parses back.

>>> str(Signature.parse("f32,f32[:],u8[:,3]"))
'f32, f32[:], u8[:, 3]'
>>> str(Signature.parse("cells:Grid(n: i64, width=8), f32[:]"))
'cells:Grid(n: i64, width=8), f32[:]'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from tack.model.dtypes import DTYPES, DType
from tack.model.record import Record
from tack.model.spelling import advice
from tack.model.vectors import component_names, vector_type

__all__ = [
    "MAX_RANK",
    "ArraySpec",
    "FlatParameter",
    "Layout",
    "PlainSpec",
    "ScalarSpec",
    "Signature",
    "Spec",
    "TemplateSpec",
]

MAX_RANK: Final = 8
"""The greatest number of dimensions of an array parameter."""


Layout = Literal["contiguous", "strided"]
"""How the elements of an array lie in memory."""


class ScalarSpec(Record):
    """A scalar parameter of type ``dtype``; written as the type's name.

    With a ``shape`` it is a vector or matrix of those, such as ``f32x3``.
    """

    dtype: DType
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "x".join(map(str, (self.dtype, *self.shape)))


class ArraySpec(Record):
    """An array parameter; written ``f32[:, 3]``, ``f32[:, 3; strided]``, or ``f32x3[:]``.

    ``dims`` has one entry per dimension: None for any extent, a number for a pinned one. An array
    without dimensions is written ``f32[()]``, as its element is in NumPy. A ``contiguous`` one is
    C-contiguous and aligned; a ``strided`` one has any strides and any alignment. The vectors or
    matrices that are the elements have the shape ``element``, which are further dimensions of the
    NumPy array, the last ones.
    """

    dtype: DType
    dims: tuple[int | None, ...]
    layout: Layout = "contiguous"
    element: tuple[int, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(":" if dim is None else str(dim) for dim in self.dims) or "()"
        name = "x".join(map(str, (self.dtype, *self.element)))
        return f"{name}[{inner}{'; strided' * self.is_strided}]"

    @property
    def is_strided(self) -> bool:
        """Whether it takes any strides and any alignment."""
        return self.layout == "strided"

    @property
    def rank(self) -> int:
        """The number of dimensions, as a kernel indexes it."""
        return len(self.dims)

    @property
    def all_dims(self) -> tuple[int | None, ...]:
        """The dimensions of the NumPy array, those of its elements included."""
        return (*self.dims, *self.element)


PlainSpec = ScalarSpec | ArraySpec

Path = tuple[str, ...]
"""The attributes that lead from a template argument to a value; empty for the argument itself."""


class TemplateSpec(Record):
    """A template parameter: what a kernel compiles in of an object, and what the call passes.

    Written ``module:Class(connectivity: i32[:], n: i64, width=8, f=@module:func)``: what is passed
    follows a colon, what is compiled in an equals sign. Each field lists names in their order.

    ``type`` is the class by name. ``constants`` are Python literals, those with a dtype as
    ``u8(3)``, so that 1, 1.0 and True differ and -0.0 is not 0.0. ``functions`` are device
    functions that the object itself holds, by name. ``origin`` tells what the spec was made of in
    this process, where it was; a spec that was read has none.
    """

    type: str
    constants: tuple[tuple[str, str], ...] = ()
    arrays: tuple[tuple[str, ArraySpec], ...] = ()
    scalars: tuple[tuple[str, ScalarSpec], ...] = ()
    children: tuple[tuple[str, TemplateSpec], ...] = ()
    functions: tuple[tuple[str, str], ...] = ()
    origin: object = None

    def __post_init__(self) -> None:
        """``TypeError`` where two entries flatten to one name."""
        seen: dict[str, Path] = {}
        for path in self.leaves():
            other = seen.setdefault("__".join(path), path)
            if other is not path:
                raise TypeError(
                    f"{self.type}: the attributes {'.'.join(other)} and {'.'.join(path)} both "
                    f"flatten to {'__'.join(path)!r}; rename one"
                )

    def leaves(self) -> Iterator[Path]:
        """The paths of all attributes of the tree."""
        for field in (self.constants, self.arrays, self.scalars, self.functions):
            yield from ((name,) for name, _ in field)
        for name, child in self.children:
            yield from ((name, *path) for path in child.leaves())

    def __str__(self) -> str:
        return self.text()

    def text(self, *, content: bool = False) -> str:
        """The spec as text; with ``content`` without what names a module, as keys hold it."""
        passed: dict[str, str] = {name: str(spec) for name, spec in (*self.arrays, *self.scalars)}
        passed |= {name: child.text(content=content) for name, child in self.children}
        fixed = dict(self.constants)
        fixed |= {name: "@" if content else f"@{function}" for name, function in self.functions}
        parts = [f"{name}: {text}" for name, text in sorted(passed.items())]
        parts += [f"{name}={text}" for name, text in sorted(fixed.items())]
        owner = self.type.partition(":")[2] if content else self.type
        return f"{owner}({', '.join(parts)})"

    def passed(self) -> list[tuple[Path, PlainSpec]]:
        """What a call passes: the arrays of the whole tree by flattened name, then the scalars."""
        return [*_sorted(self.passed_as("arrays")), *_sorted(self.passed_as("scalars"))]

    def passed_as(self, field: str) -> Iterator[tuple[Path, PlainSpec]]:
        """The entries of one field, in the whole tree."""
        for name, spec in getattr(self, field):
            yield (name,), spec
        for name, child in self.children:
            yield from (((name, *path), spec) for path, spec in child.passed_as(field))

    def nodes(self, path: Path = ()) -> Iterator[tuple[Path, TemplateSpec]]:
        """This spec and those below it, each with its path, depth first."""
        yield path, self
        for name, child in self.children:
            yield from child.nodes((*path, name))


def _sorted(entries: Iterator[tuple[Path, PlainSpec]]) -> list[tuple[Path, PlainSpec]]:
    return sorted(entries, key=lambda entry: "__".join(entry[0]))


Spec = ScalarSpec | ArraySpec | TemplateSpec


class FlatParameter(Record):
    """One value that a compiled kernel is passed: an argument, or an attribute of one."""

    argument: int
    path: Path
    spec: PlainSpec
    component: str = ""
    """Of a vector: what its name ends with, such as ``.x``."""

    def name(self, parameters: Sequence[str]) -> str:
        """Its name in the IR; that of an attribute has one dot, so that no source name meets it."""
        own = parameters[self.argument]
        return f"{own}.{'__'.join(self.path)}" if self.path else own + self.component

    def label(self, parameters: Sequence[str]) -> str:
        """Its name as Python spells it, for errors."""
        return ".".join((parameters[self.argument], *self.path)) + self.component


_SPEC = re.compile(r"\s*(?P<dtype>[A-Za-z_]\w*)\s*(?:\[(?P<dims>[^\[\]]*)\])?\s*\Z")


class Signature(Record):
    """The specs of a kernel's parameters, in order."""

    specs: tuple[Spec, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """The signature that ``text`` writes; ``ValueError`` names the part that is wrong."""
        return cls(tuple(_parse_any(part, text) for part in _split(text)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.specs))

    def __iter__(self) -> Iterator[Spec]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def has_f64_array(self) -> bool:
        """Whether an f64 array is among the parameters: then an unannotated float is f64."""
        specs = (flat.spec for flat in self.flat())
        return any(isinstance(s, ArraySpec) and s.dtype.name == "f64" for s in specs)

    @property
    def default_float(self) -> DType:
        """The type of a float that meets no other type."""
        return DTYPES["f64" if self.has_f64_array else "f32"]

    @property
    def templates(self) -> tuple[tuple[int, TemplateSpec], ...]:
        """The template parameters, with their positions."""
        return tuple((k, s) for k, s in enumerate(self.specs) if isinstance(s, TemplateSpec))

    def flat(self) -> tuple[FlatParameter, ...]:
        """What a compiled kernel is passed.

        The parameters that are no templates, then what the templates hold, the last template first.
        """
        flat: list[FlatParameter] = []
        for k, spec in enumerate(self.specs):
            if isinstance(spec, ScalarSpec) and spec.shape:
                scalar = ScalarSpec(spec.dtype)
                names = component_names("", spec.shape)
                flat += [FlatParameter(k, (), scalar, name) for name in names]
            elif not isinstance(spec, TemplateSpec):
                flat.append(FlatParameter(k, (), spec))
        for position, template in reversed(self.templates):
            flat += [FlatParameter(position, path, spec) for path, spec in template.passed()]
        return tuple(flat)

    def content(self) -> str:
        """The text that keys hold: what names a module is left out."""
        return ", ".join(
            s.text(content=True) if isinstance(s, TemplateSpec) else str(s) for s in self.specs
        )


def _split(text: str) -> Iterator[str]:
    """The parts of ``text`` between the commas that stand outside brackets."""
    if not text.strip():
        return
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _parse_spec(part: str, text: str) -> Spec:
    match = _SPEC.match(part)
    if match is None:
        raise ValueError(
            f"signature {text!r}: {part.strip()!r} is neither a scalar such as f32 nor an array "
            "such as f32[:, :]"
        )
    name = match["dtype"]
    vector = vector_type(name)
    dtype = vector.dtype if vector is not None else DTYPES.get(name)
    if dtype is None:
        raise ValueError(f"signature {text!r}: unknown type {name!r}; {advice(name, DTYPES)}")
    if match["dims"] is None:
        return ScalarSpec(dtype, vector.shape if vector is not None else ())
    inner, semicolon, layout = (piece.strip() for piece in match["dims"].partition(";"))
    if semicolon and layout != "strided":
        raise ValueError(f"signature {text!r}: after ';' stands 'strided', not {layout!r}")
    dims = () if "".join(inner.split()) == "()" else _parse_dims(inner, text)
    element = vector.shape if vector is not None else ()
    if len(dims) + len(element) > MAX_RANK:
        those = ", those of its elements included" if element else ""
        raise ValueError(
            f"signature {text!r}: {part.strip()!r} has {len(dims) + len(element)} dimensions"
            f"{those}; at most {MAX_RANK}"
        )
    return ArraySpec(dtype, dims, "strided" if semicolon else "contiguous", element)


def _parse_dims(inner: str, text: str) -> tuple[int | None, ...]:
    return tuple(_parse_dim(dim.strip(), text) for dim in inner.split(","))


def _parse_dim(dim: str, text: str) -> int | None:
    if dim == ":":
        return None
    if re.fullmatch(r"0|[1-9][0-9]{0,17}", dim, re.ASCII):
        return int(dim)
    raise ValueError(f"signature {text!r}: a dimension is ':' or a number, not {dim!r}")


# Compiled when first used: most signatures have no templates.
_REFERENCE: Final = r"[^\s(),:=@]+:[^\s(),:=@]+"
_TEMPLATE: Final = rf"\s*(?P<type>{_REFERENCE})\((?P<inner>.*)\)\s*\Z"
_ENTRY: Final = r"\s*([^\W\d]\w*)\s*([:=])\s*(.*?)\s*\Z"
_NUMBER: Final = r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf|nan)"
_PART: Final = rf"(True|False|{_NUMBER})"
_SCALAR: Final = r"[a-z]+\d+(e\dm\d)?"
_VECTOR: Final = rf"({_SCALAR}|bool)(x[234]){{1,2}}\({_PART}(, {_PART})*\)"
_CONSTANT: Final = rf"True|False|{_NUMBER}|{_SCALAR}\({_NUMBER}\)|{_VECTOR}"


def _parse_any(part: str, text: str) -> Spec:
    match = re.match(_TEMPLATE, part, re.DOTALL) if "(" in part else None
    if match is None:
        return _parse_spec(part, text)
    fields: dict[str, list[tuple[str, Any]]] = {
        name: [] for name in ("constants", "arrays", "scalars", "children", "functions")
    }
    seen: set[str] = set()
    for entry in _split(match["inner"]):
        name, field, value = _parse_entry(entry, text)
        if name in seen:
            raise ValueError(f"signature {text!r}: {name!r} stands twice in {match['type']}")
        seen.add(name)
        fields[field].append((name, value))
    entries = {field: tuple(sorted(f, key=lambda e: e[0])) for field, f in fields.items()}
    try:
        return TemplateSpec(match["type"], **entries)
    except TypeError as error:
        raise ValueError(f"signature {text!r}: {error}") from None


def _parse_entry(entry: str, text: str) -> tuple[str, str, Any]:
    """Name, field and value of one attribute of a template."""
    match = re.match(_ENTRY, entry, re.DOTALL)
    if match is None or match[1].startswith("_"):
        raise ValueError(
            f"signature {text!r}: {entry.strip()!r} is no attribute; write n: i64, or width=8"
        )
    name, sign, value = match.groups()
    if sign == ":":
        spec = _parse_any(value, text)
        if isinstance(spec, ScalarSpec) and spec.shape:  # a vector lies in memory of its own
            spec = ArraySpec(spec.dtype, (), element=spec.shape)
        kinds = {ScalarSpec: "scalars", ArraySpec: "arrays", TemplateSpec: "children"}
        return name, kinds[type(spec)], spec
    if re.fullmatch(f"@{_REFERENCE}", value):
        return name, "functions", value[1:]
    if re.fullmatch(_CONSTANT, value, re.ASCII):
        return name, "constants", value
    raise ValueError(f"signature {text!r}: {value!r} is neither a number nor @module:function")
