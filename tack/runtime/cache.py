"""The disk cache of compiled variants.

For: not compiling twice what one user compiled already. An entry is named by its build key, which
covers everything that reaches the compiler; two entries of one key are interchangeable. It holds
the compiled code and the launch plan, as data: nothing in it is unpickled or imported.

- `get` gives an entry, or None. A missing, damaged or foreign entry is a miss; a damaged one is
  removed.
- `put` adds one. It is written aside and renamed, so nobody sees half of it; where somebody was
  faster, theirs stays. A full disk or a folder that cannot be written is no error.
- There are no locks, so nobody waits for the dead.

The folder is private to the user: made with mode 0700, and not used if somebody else owns it, if
others may write to it, or if it is a symbolic link. `Cache.reason` then says so, and the cache is
inert: every `get` is a miss and every `put` does nothing.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import stat
import time
from collections.abc import Iterator
from typing import Any, Final

from tack.model.keys import sha256

__all__ = ["Cache", "default_cache"]

_MAGIC: Final = b"tack cache 2\n"
_SUFFIX: Final = ".tack"
_DIGEST: Final = 32
_MEGABYTES: Final = 256
_DAYS: Final = 60
_PRUNE_IN_256: Final = 4
_STALE_SECONDS: Final = 3600
"""Age at which a file that was being written is taken for abandoned."""


class Cache:
    """Entries in one folder. ``reason`` is why it is inert, or None."""

    def __init__(self, folder: str, megabytes: int = _MEGABYTES, days: int = _DAYS) -> None:
        self.folder = folder
        self.megabytes, self.days = megabytes, days
        self.reason = _open_folder(folder)

    def get(self, key: str) -> tuple[dict[str, Any], bytes] | None:
        """The facts and the code stored under ``key``, or None."""
        if self.reason is not None:
            return None
        path = self._path(key)
        try:
            content = _read_own(path)
        except OSError:
            return None
        entry = _decode(content, key)
        if entry is None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # so that pruning by age keeps what is used
        return entry

    def put(self, key: str, facts: dict[str, Any], code: bytes) -> None:
        """Stores an entry, if that is possible."""
        if self.reason is not None:
            return
        aside = os.path.join(self.folder, f".{key[:16]}.{os.getpid()}.{os.urandom(8).hex()}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            with open(os.open(aside, flags, 0o600), "wb") as file:
                file.write(_encode(key, facts, code))
            if os.path.lexists(self._path(key)):
                os.unlink(aside)
            else:
                os.replace(aside, self._path(key))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside)
        self._prune_sometimes()

    def prune(self) -> None:
        """Removes abandoned files, entries unused for too long, then the oldest over the limit."""
        now, left = time.time(), self.megabytes << 20
        found = sorted(self._files(), key=lambda item: -item[1].st_mtime)
        for path, status in found:
            age = now - status.st_mtime
            if path.endswith(_SUFFIX):
                left -= status.st_size
                old = age > self.days * 86400 or left < 0
            else:
                old = age > _STALE_SECONDS
            if old:
                with contextlib.suppress(OSError):
                    os.unlink(path)

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        yield entry.path, status

    def _prune_sometimes(self) -> None:
        if os.urandom(1)[0] < _PRUNE_IN_256:
            self.prune()

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key + _SUFFIX)


@functools.cache
def default_cache() -> Cache | None:
    """The user's cache: ``TACK_CACHE_DIR``, else the platform's folder for caches.

    None where no folder is known: without platformdirs (extra ``jit``), or without a home.
    """
    folder = os.environ.get("TACK_CACHE_DIR")
    if not folder:
        try:
            import platformdirs

            folder = os.path.join(platformdirs.user_cache_dir("tack", appauthor=False), "jit")
        except (ImportError, OSError, RuntimeError, KeyError):
            return None
    return Cache(os.path.abspath(os.path.expanduser(folder)))


def _open_folder(folder: str) -> str | None:
    """Makes the folder if need be; why it is not to be used, or None."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
    except OSError as error:
        return f"{folder} cannot be made: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is a symbolic link or no folder"
    if hasattr(os, "geteuid"):
        if status.st_uid != os.geteuid():
            return f"{folder} belongs to another user"
        if status.st_mode & 0o022:
            return f"others may write to {folder}; make it private: chmod 700"
    return None


def _read_own(path: str) -> bytes:
    """The content of a regular file of this user; ``OSError`` for anything else."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a file")
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            raise OSError("of another user")
        return file.read()


def _encode(key: str, facts: dict[str, Any], code: bytes) -> bytes:
    """Magic, digest of the rest, then key, facts and code, each after its length.

    The facts are a literal of Python: whoever compiles a kernel has `ast`, and `json` takes 2 ms.
    """
    parts = [key.encode(), repr(facts).encode(), code]
    body = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return _MAGIC + _digest(body) + body


def _decode(content: bytes, key: str) -> tuple[dict[str, Any], bytes] | None:
    start = len(_MAGIC) + _DIGEST
    body = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _digest(body):
        return None
    parts, place = [], 0
    for _ in range(3):
        length = int.from_bytes(body[place : place + 8], "little")
        parts.append(body[place + 8 : place + 8 + length])
        place += 8 + length
    if place != len(body) or parts[0] != key.encode():
        return None
    facts = ast.literal_eval(parts[1].decode())
    return (facts, parts[2]) if isinstance(facts, dict) else None


def _digest(body: bytes) -> bytes:
    return bytes.fromhex(sha256(body))
