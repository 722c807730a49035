"""Locks that a forked child can take.

A lock that another thread holds at a fork stays held in the child, where that thread is not.
"""

from __future__ import annotations

import _thread
import os

__all__ = ["fork_safe_lock"]


def fork_safe_lock() -> _thread.LockType:
    """A lock that is free in a forked child, whoever held it."""
    lock = _thread.allocate_lock()  # threading.Lock, whose module takes 0.7 ms to import
    if hasattr(os, "register_at_fork"):
        # As logging and concurrent.futures do it.
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined] # noqa: SLF001
    return lock
