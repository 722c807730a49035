"""Tensor cores: which products of small matrices a target has, and which lane holds which element.

A `TensorCore` multiplies fragments of 16 x 16 elements that the lanes of a warp hold between them:
``c += a @ b``. How is one or several instructions of the hardware, which the dialects' templates
spell; what is here is where the elements are, since the lanes load and store them.

Sources. CUDA: "PTX ISA", "Matrix Fragments for mma.m16n8k8" and "... m16n8k16". AMD: "CDNA3
Instruction Set Architecture", "Matrix fused-multiply-add"; "RDNA3" and "RDNA4 Instruction Set
Architecture", "Wave Matrix Multiply Accumulate"; AMD's ``amd_matrix_instruction_calculator``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tack.model.record import Record
from tack.model.targets import Target

__all__ = ["SIDE", "Layout", "TensorCore", "Term", "tensor_cores_of"]

SIDE: Final = 16
"""Rows and columns of a fragment."""


class Term(NamedTuple):
    """``number // divisor % modulus * factor``, of the number of a lane or of its element."""

    number: str
    divisor: int
    modulus: int
    factor: int

    def of(self, lane: int, element: int) -> int:
        """Its value for an element of a lane."""
        number = lane if self.number == "lane" else element
        return number // self.divisor % self.modulus * self.factor


class Layout(Record):
    """Where the elements of a fragment are: each lane has so many ``elements``.

    Element ``e`` of lane ``l`` stands in the row, and in the column, that the sum of these terms
    is. Lanes may hold copies of one element.
    """

    elements: int
    row: tuple[Term, ...]
    column: tuple[Term, ...]

    def place(self, lane: int, element: int) -> tuple[int, int]:
        """The row and the column of an element of a lane."""
        row, column = (sum(t.of(lane, element) for t in each) for each in (self.row, self.column))
        return row, column


class TensorCore(Record):
    """A product ``c += a @ b`` of fragments: of their types, by ``lanes`` together."""

    operand: str
    result: str
    lanes: int
    a: Layout
    b: Layout
    c: Layout

    @property
    def name(self) -> str:
        """The stem of the function that the dialects have for it."""
        return f"mma_{self.operand}_{self.result}"


def _lane(divisor: int, modulus: int, factor: int = 1) -> Term:
    return Term("lane", divisor, modulus, factor)


def _element(divisor: int, modulus: int, factor: int = 1) -> Term:
    return Term("element", divisor, modulus, factor)


def _cores(
    operands: tuple[str, ...], lanes: int, a: Layout, b: Layout, c: Layout
) -> tuple[TensorCore, ...]:
    return tuple(TensorCore(operand, "f32", lanes, a, b, c) for operand in operands)


def _transposed(layout: Layout) -> Layout:
    return Layout(layout.elements, layout.column, layout.row)


def _nvidia(*operands: str) -> tuple[TensorCore, ...]:
    """``mma.sync`` of 16 x 8 x 16, or 16 x 8 x 8, for each half of the columns."""
    pair = _lane(1, 4, 2), _element(1, 2)
    row, half = _lane(4, 8), _element(2, 2, 8)
    a = Layout(8, (row, half), (*pair, _element(4, 2, 8)))
    b = Layout(8, (*pair, half), (row, _element(4, 2, 8)))
    return _cores(operands, 32, a, b, a)


def _along(elements: int, first: Term, *more: Term) -> Layout:
    """An operand whose lanes hold runs of a row."""
    return Layout(elements, (_lane(1, 16),), (first, *more))


def _cdna(*operands: str) -> tuple[TensorCore, ...]:
    """``v_mfma_f32_16x16x16``, of waves of 64 lanes."""
    a = _along(4, _lane(16, 4, 4), _element(1, 4))
    return _cores(operands, 64, a, _transposed(a), _transposed(a))


_RDNA3_A: Final = _along(16, _element(1, 16))
_RDNA3_C: Final = Layout(8, (_element(1, 8, 2), _lane(16, 2)), (_lane(1, 16),))
_RDNA4_A: Final = _along(8, _lane(16, 2, 8), _element(1, 8))

_BOTH: Final = ("f16", "bf16")
_RDNA3: Final = _cores(_BOTH, 32, _RDNA3_A, _transposed(_RDNA3_A), _RDNA3_C)
_RDNA4: Final = _cores(_BOTH, 32, _RDNA4_A, _transposed(_RDNA4_A), _transposed(_RDNA4_A))
"""``v_wmma_f32_16x16x16``, of waves of 32 lanes; those of RDNA 3 hold each operand twice."""

_OF_AMD: Final = {
    "gfx908": _cdna("f16"),
    **dict.fromkeys(("gfx90a", "gfx942", "gfx950", "gfx9-4-generic"), _cdna(*_BOTH)),
}


def tensor_cores_of(target: Target) -> tuple[TensorCore, ...]:
    """The products that code for ``target`` can use, all by warps of one size."""
    if target.backend == "cuda":
        older = target.arch.removesuffix("a").endswith("_75")
        return _nvidia("f16") if older else _nvidia(*_BOTH)
    if target.arch.startswith("gfx11"):
        return _RDNA3
    if target.arch.startswith("gfx12"):
        return _RDNA4
    return _OF_AMD.get(target.arch, ())
