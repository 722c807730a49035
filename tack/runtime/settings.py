"""What environment variables say, read when it matters, so that a test or a notebook can set them.

| variable | values | meaning |
|---|---|---|
| ``TACK_JIT`` | ``allow``, ``warn``, ``forbid`` | may a miss be compiled; ``warn`` if not set |
| ``TACK_CACHE_DIR`` | a folder | where compiled variants are kept |
| ``TACK_RECORD`` | a file | notes each signature that was not prebuilt |
| ``TACK_LOG`` | ``debug``, ``info``, ``warning`` | tells on standard error what calls do |
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Final

from tack.model.spelling import advice

if TYPE_CHECKING:
    import logging

__all__ = ["JIT_POLICIES", "callers_level", "jit_policy", "log", "note_for_record"]

JIT_POLICIES: Final = ("allow", "warn", "forbid")
_LEVELS: Final = ("debug", "info", "warning")


def jit_policy() -> str:
    """``TACK_JIT``; ``ValueError`` for a value that it does not have."""
    return _choice("TACK_JIT", JIT_POLICIES, "warn")


def note_for_record(kernel: str, signature: str) -> None:
    """Adds a line to the file of ``TACK_RECORD``: a signature that was not prebuilt.

    The line is written in one piece, so that processes can share a file. Warns of a file that
    cannot be written; the call goes on.
    """
    path = os.environ.get("TACK_RECORD")
    if not path:
        return
    import json

    line = json.dumps({"kernel": kernel, "signature": signature}) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        import warnings

        warnings.warn(
            f"TACK_RECORD={path} cannot be written: {error.strerror}",
            RuntimeWarning,
            stacklevel=callers_level(),
        )


def callers_level() -> int:
    """The stack level, for whoever calls this, of the code that called the kernel."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - as warnings itself looks
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("tack."):
        level, frame = level + 1, frame.f_back
    return level


def _choice(name: str, values: tuple[str, ...], default: str) -> str:
    value = os.environ.get(name) or default
    if value not in values:
        raise ValueError(f"{name}={value!r}: {advice(value, values)}")
    return value


def log(level: str, message: str, *args: object) -> None:
    """Tells the logger ``tack``, where somebody may listen.

    Nobody does before `logging` is imported, and importing it costs more than a prebuilt call may.
    """
    if os.environ.get("TACK_LOG") or "logging" in sys.modules:
        getattr(_logger(), level)(message, *args)


@functools.cache
def _logger() -> logging.Logger:
    """The logger ``tack``; with ``TACK_LOG`` set it writes to standard error."""
    import logging

    found = logging.getLogger("tack")
    if os.environ.get("TACK_LOG"):
        level = _choice("TACK_LOG", _LEVELS, "warning")
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("tack: %(message)s"))
        found.addHandler(handler)
        found.setLevel(level.upper())
    return found
