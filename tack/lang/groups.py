"""Workgroups of the kernel language: what the iterations of a group share, and wait for.

A kernel with ``@tack.kernel(group=256)`` runs its iterations in groups of that many neighbours, at
the same time: they have arrays in common, and wait for each other at barriers. In plain Python
iterations run one after the other, so that nothing of this has a meaning there but the arrays.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tack.lang.builtins import local_array, local_array_like
from tack.model.dtypes import DType
from tack.model.vectors import VectorType

__all__ = [
    "barrier",
    "block_max",
    "block_min",
    "block_sum",
    "group_id",
    "group_size",
    "shared",
    "shared_like",
    "thread_id",
]


def run_in_turn(name: str) -> NoReturn:
    """Says that a function is for kernels with workgroups, for it to raise nothing else."""
    raise RuntimeError(
        f"tack.{name}() is about iterations that run at the same time, and in plain Python they "
        "run one after the other; call the kernel"
    )


def shared(dtype: DType | VectorType, shape: int | tuple[int, ...]) -> Any:
    """An array that the iterations of a group share; its size is known while compiling.

    It holds nothing in particular until an iteration stores to it, and what one has stored the
    others see behind a `barrier`. Each group has its own.
    """
    return local_array(dtype, shape)


def shared_like(array: Any, dtype: DType | None = None) -> Any:
    """A shared array with the shape of ``array``, and with its dtype unless another is given."""
    return local_array_like(array, dtype)


def barrier() -> None:
    """Waits until every iteration of the group has come here; each sees what all have stored.

    All iterations of a group come to the same barriers: it stands in no branch and no loop that
    some of them take and others do not. Lanes beyond the end of the parallel loop, which fill up
    the last group, take part in barriers and in nothing else.
    """
    run_in_turn("barrier")


def thread_id(axis: int | None = None) -> int:  # noqa: ARG001
    """The number of this iteration in its group, along an axis of the parallel loop.

    Without an axis it counts through the whole group, the last index fastest.
    """
    run_in_turn("thread_id")


def group_id(axis: int | None = None) -> int:  # noqa: ARG001
    """The number of this iteration's group along an axis; a loop of one index needs no axis."""
    run_in_turn("group_id")


def group_size(axis: int | None = None) -> int:  # noqa: ARG001
    """How many iterations a group has along an axis, or in all; known while compiling."""
    run_in_turn("group_size")


def block_sum(x: Any) -> Any:  # noqa: ARG001
    """The sum of ``x`` over the iterations of the group, for each of them, in the type of ``x``.

    Each iteration adds the value of the one that is half a group ahead, then a quarter of a group,
    and so on; groups are filled up to a power of two with -0.0, which changes no sum. So the result
    does not depend on the target.
    """
    run_in_turn("block_sum")


def block_min(x: Any) -> Any:  # noqa: ARG001
    """The least ``x`` of the group's iterations, as ``min`` chooses it, for each of them."""
    run_in_turn("block_min")


def block_max(x: Any) -> Any:  # noqa: ARG001
    """The greatest ``x`` of the group's iterations, as ``max`` chooses it, for each of them."""
    run_in_turn("block_max")
