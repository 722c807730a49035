"""Arrays behind which memory ends: what reads or writes beyond them faults."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

import numpy as np

__all__ = ["guarded"]

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PAGE: Final = mmap.PAGESIZE


def guarded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that ends where a page ends behind which nothing can be read."""
    pages = -(-max(array.nbytes, 1) // _PAGE)
    memory = mmap.mmap(-1, (pages + 1) * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    last = ctypes.c_void_p(start + pages * _PAGE)
    assert _LIBC.mprotect(last, ctypes.c_size_t(_PAGE), 0) == 0
    whole = np.frombuffer(memory, np.uint8, pages * _PAGE)
    place = whole[whole.size - array.nbytes :]
    copied = place.view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied
