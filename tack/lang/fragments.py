"""Tensor cores of the kernel language: products of 16 x 16 fragments, by the lanes of a warp.

A warp is what a GPU runs in step: 32 neighbouring iterations of a group, or 64 (`warp_size`). Its
lanes hold a fragment between them, and come together to each of these functions. In plain Python
iterations run one after the other, so that nothing of this has a meaning there.
"""

from __future__ import annotations

from typing import Any

from tack.lang.groups import run_in_turn
from tack.model.dtypes import DType

__all__ = [
    "fragment_a",
    "fragment_b",
    "fragment_c",
    "mma",
    "store_fragment",
    "warp_id",
    "warp_size",
]


def warp_size() -> int:
    """How many iterations a warp has; a number of the target, known while compiling."""
    run_in_turn("warp_size")


def warp_id() -> int:
    """The number of this iteration's warp in its group."""
    run_in_turn("warp_id")


def fragment_a(array: Any, row: int, column: int) -> Any:  # noqa: ARG001
    """The left operand of a product: ``array[row : row + 16, column : column + 16]``.

    The array has two dimensions, shared or a parameter, and elements of f16 or bf16. The whole
    block lies inside of it. Row and column are the same for every iteration of a warp.
    """
    run_in_turn("fragment_a")


def fragment_b(array: Any, row: int, column: int) -> Any:  # noqa: ARG001
    """The right operand of a product; otherwise as `fragment_a`."""
    run_in_turn("fragment_b")


def fragment_c(dtype: DType) -> Any:  # noqa: ARG001
    """An accumulator of 16 x 16 zeros of ``dtype``, which is f32."""
    run_in_turn("fragment_c")


def mma(c: Any, a: Any, b: Any) -> None:  # noqa: ARG001
    """``c += a @ b``, by the tensor cores of the target.

    The products are exact. How their sum is rounded, and in which order it is made, is the
    hardware's affair: results differ between architectures in their last bits.
    """
    run_in_turn("mma")


def store_fragment(c: Any, array: Any, row: int, column: int) -> None:  # noqa: ARG001
    """``array[row : row + 16, column : column + 16] = c``, converted as a store converts."""
    run_in_turn("store_fragment")
