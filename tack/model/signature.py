"""Signatures: one spec per parameter, with a text form that parses back.

>>> str(Signature.parse("f32,f32[:],u8[:,3]"))
'f32, f32[:], u8[:, 3]'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from tack.model.dtypes import ARRAY_DTYPES, DTYPES, DType
from tack.model.record import Record
from tack.model.spelling import advice
from tack.model.vectors import vector_type

__all__ = ["MAX_RANK", "ArraySpec", "Layout", "ScalarSpec", "Signature", "Spec"]

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


Spec = ScalarSpec | ArraySpec

_SPEC = re.compile(r"\s*(?P<dtype>[A-Za-z_]\w*)\s*(?:\[(?P<dims>[^\[\]]*)\])?\s*\Z")
_NO_DIMS = re.compile(r"\(\s*\)\Z")


class Signature(Record):
    """The specs of a kernel's parameters, in order."""

    specs: tuple[Spec, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """The signature that ``text`` writes; ``ValueError`` names the part that is wrong."""
        return cls(tuple(_parse_spec(part, text) for part in _split(text)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.specs))

    def __iter__(self) -> Iterator[Spec]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def has_f64_array(self) -> bool:
        """Whether an f64 array is among the parameters: then an unannotated float is f64."""
        return any(isinstance(s, ArraySpec) and s.dtype.name == "f64" for s in self.specs)

    @property
    def default_float(self) -> DType:
        """The type of a float that meets no other type."""
        return DTYPES["f64" if self.has_f64_array else "f32"]


def _split(text: str) -> Iterator[str]:
    """The parts of ``text`` between the commas that stand outside brackets."""
    if not text.strip():
        return
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
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
    if dtype.name not in ARRAY_DTYPES:
        raise ValueError(f"signature {text!r}: arrays of {name} are not built yet; use u8 arrays")
    inner, semicolon, layout = (piece.strip() for piece in match["dims"].partition(";"))
    if semicolon and layout != "strided":
        raise ValueError(f"signature {text!r}: after ';' stands 'strided', not {layout!r}")
    dims = () if _NO_DIMS.match(inner) else _parse_dims(inner, text)
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
