"""Atomics of the kernel language: changes of an array's element that no other can come between.

Each gives the element as it was. The order of changes, and of an atomic with plain loads and stores
of other iterations, is open. In plain Python they do the same, one after the other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
]

Index = int | tuple[int, ...]


def _change(array: Any, index: Index, value: Any, change: Callable[[Any, Any], Any]) -> Any:
    import numpy as np

    old = array[index]
    with np.errstate(over="ignore", invalid="ignore"):
        array[index] = change(old, np.asarray(value).astype(_dtype(array))[()])
    return old


def _dtype(array: Any) -> Any:
    """The dtype of an array, or of its flat view."""
    import numpy as np

    return array.base.dtype if isinstance(array, np.flatiter) else array.dtype


def atomic_add(array: Any, index: Index, value: Any) -> Any:
    """``array[index] += value``; gives the old element."""
    return _change(array, index, value, operator.add)


def atomic_sub(array: Any, index: Index, value: Any) -> Any:
    """``array[index] -= value``; gives the old element."""
    return _change(array, index, value, operator.sub)


def atomic_and(array: Any, index: Index, value: Any) -> Any:
    """``array[index] &= value``, of integers or bools; gives the old element."""
    return _change(array, index, value, operator.and_)


def atomic_or(array: Any, index: Index, value: Any) -> Any:
    """``array[index] |= value``, of integers or bools; gives the old element."""
    return _change(array, index, value, operator.or_)


def atomic_xor(array: Any, index: Index, value: Any) -> Any:
    """``array[index] ^= value``, of integers or bools; gives the old element."""
    return _change(array, index, value, operator.xor)


def atomic_min(array: Any, index: Index, value: Any) -> Any:
    """``array[index] = min(array[index], value)``, by the kernel's min; gives the old element."""
    return _change(
        array, index, value, lambda old, new: new if new < old or math.isnan(old) else old
    )


def atomic_max(array: Any, index: Index, value: Any) -> Any:
    """``array[index] = max(array[index], value)``, by the kernel's max; gives the old element."""
    return _change(
        array, index, value, lambda old, new: new if new > old or math.isnan(old) else old
    )


def atomic_exchange(array: Any, index: Index, value: Any) -> Any:
    """``array[index] = value``; gives the old element."""
    return _change(array, index, value, lambda old, new: new)


def atomic_cas(array: Any, index: Index, expected: Any, value: Any) -> Any:
    """``array[index] = value`` if the element has the bits of ``expected``; gives the old element.

    Every NaN of a float of 16 bits has the same bits here.

    >>> import numpy as np
    >>> lock = np.zeros(1, np.int32)
    >>> int(atomic_cas(lock, 0, 0, 5)), int(atomic_cas(lock, 0, 0, 7)), int(lock[0])
    (0, 5, 5)
    """
    import numpy as np

    dtype = _dtype(array)
    wanted = np.asarray(expected).astype(dtype)[()]

    def alike(old: Any) -> bool:
        if old.tobytes() == wanted.tobytes():
            return True
        short = dtype.itemsize == 2 and dtype.kind not in "iu"
        return short and math.isnan(old) and math.isnan(wanted)

    return _change(array, index, value, lambda old, new: new if alike(old) else old)
