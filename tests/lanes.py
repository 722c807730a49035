"""What kernels with workgroups mean, in plain Python: a thread of Python for each iteration.

The text of a kernel is run once for each iteration, with names of ``tack`` that are about groups
bound to that iteration: barriers are those of `threading`, shared arrays belong to a group. Lanes
beyond the end of the loop do not exist here. Nothing of tack's compiler takes part.
"""

from __future__ import annotations

import builtins
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

import tack

__all__ = ["run_lanes"]


class _Group:
    """What the iterations of one group have in common; ``lanes`` are their numbers in it."""

    def __init__(self, lanes: Sequence[int], size: int) -> None:
        self.lanes = lanes
        self.size = size
        self.barrier = threading.Barrier(len(lanes), timeout=_PATIENCE)
        self.lock = threading.Lock()
        self.arrays: dict[int, np.ndarray[Any, Any]] = {}
        self.values: dict[int, Any] = {}

    def shared(self, number: int, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
        """The array that is made by the call of that number, of garbage."""
        with self.lock:
            if number not in self.arrays:
                array = tack.local_array(dtype, shape)
                array[...] = 7
                self.arrays[number] = array
            return self.arrays[number]

    def combined(self, lane: int, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """The value of all lanes: each takes that of the lane half a group ahead, and so on."""
        self.values[lane] = value
        self.barrier.wait()
        if lane == self.lanes[0]:
            step = 1 << max(self.size - 1, 0).bit_length()
            while step := step >> 1:
                for each in range(step):
                    if each + step in self.values:
                        other = self.values[each + step]
                        known = each in self.values
                        self.values[each] = combine(self.values[each], other) if known else other
            self.result = self.values[0]
            self.values = {}
        self.barrier.wait()
        result = self.result
        self.barrier.wait()
        return result


_PATIENCE: Final = 60
"""Seconds after which iterations that wait for each other are taken to wait for ever."""

_ONE_AT_A_TIME: Final = threading.Lock()


def _alone(change: Callable[..., Any], *arguments: Any) -> Any:
    with _ONE_AT_A_TIME:
        return change(*arguments)


def _number(x: Any) -> Any:
    """A bool counts as 0 or 1."""
    return np.int64(x) if isinstance(x, np.bool_) else x


class _Words:
    """``tack``, with some names of its own."""

    def __init__(self, own: dict[str, Any]) -> None:
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(tack, name)


def run_lanes(
    text: str, name: str, group: tuple[int, ...], extents: tuple[int, ...], arguments: Sequence[Any]
) -> None:
    """Runs the kernel ``name`` of a module's text, over so many iterations, in groups."""
    counts = [-(-extent // size) for extent, size in zip(extents, group, strict=True)]
    for place in itertools.product(*map(range, counts)):
        members = {
            lane: tuple(p * s + k for p, s, k in zip(place, group, inside, strict=True))
            for lane, inside in enumerate(itertools.product(*map(range, group)))
        }
        living = {
            lane: index
            for lane, index in members.items()
            if all(i < extent for i, extent in zip(index, extents, strict=True))
        }
        together = _Group(list(living), math.prod(group))
        failed: list[BaseException] = []
        threads = [
            threading.Thread(
                target=_lane,
                args=(text, name, together, lane, index, place, group, arguments, failed),
            )
            for lane, index in living.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]


def _lane(
    text: str,
    name: str,
    together: _Group,
    lane: int,
    index: tuple[int, ...],
    place: tuple[int, ...],
    group: tuple[int, ...],
    arguments: Sequence[Any],
    failed: list[BaseException],
) -> None:
    inside = tuple(i - p * s for i, p, s in zip(index, place, group, strict=True))
    made = itertools.count()

    def number(of: tuple[int, ...], whole: int, axis: int | None) -> int:
        return whole if axis is None else of[axis]

    first = [index[0] if len(index) == 1 else index]

    def iterations(*bounds: Any) -> Iterator[Any]:
        """The one iteration of the parallel loop; of loops inside it all of them."""
        values = builtins.range(*map(int, bounds))
        return iter([values[first.pop()]] if first else values)

    def nested(*bounds: Any) -> Iterator[Any]:
        return iter([first.pop()]) if first else tack.ndrange(*bounds)

    def smaller(a: Any, b: Any) -> Any:
        return b if b < a or a != a else a

    def greater(a: Any, b: Any) -> Any:
        return b if a < b or a != a else a

    own: dict[str, Any] = {
        "kernel": lambda function=None, **_: function or (lambda inner: inner),
        "func": lambda function: function,
        "ndrange": nested,
        "barrier": together.barrier.wait,
        "shared": lambda dtype, shape: together.shared(next(made), shape, dtype),
        "shared_like": lambda array, dtype: together.shared(next(made), array.shape, dtype),
        "thread_id": lambda axis=None: number(inside, lane, axis),
        "group_id": lambda axis=0: place[axis],
        "group_size": lambda axis=None: number(group, math.prod(group), axis),
        "block_sum": lambda x: together.combined(lane, _number(x), lambda a, b: a + b),
        "block_min": lambda x: together.combined(lane, x, smaller),
        "block_max": lambda x: together.combined(lane, x, greater),
    }
    for each in tack.__all__:
        if each.startswith("atomic_"):
            own[each] = partial(_alone, getattr(tack, each))
    scope = {"tack": _Words(own), "range": iterations}
    lines = [line for line in text.splitlines() if line != "import tack"]
    try:
        exec("\n".join(lines), scope)
        with np.errstate(all="ignore"):
            scope[name](*arguments)
    except BaseException as error:  # noqa: BLE001 - it is raised again where threads are joined
        failed.append(error)
        together.barrier.abort()
