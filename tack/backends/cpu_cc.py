"""Compiling for the CPU with a C compiler, for machines that have one and no llvmlite.

The text is that of the C renderer, the flags are those that wheels are built with, so the bits are
the same. A kernel library made here is a shared library, loaded as those in wheels are.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from tack import _core
from tack.backends.cpu import LoadError
from tack.model.errors import ToolchainError
from tack.model.keys import digest_files
from tack.model.record import Record
from tack.model.targets import Target
from tack.render.c_flags import COMPILE_FLAGS, LINK_FLAGS, target_flags

__all__ = ["CCompiler", "find"]

_NAMES: Final = ("cc", "gcc", "clang")
_SHARED: Final = ("-fPIC", "-shared")
_HEADER: Final = "tack_abi.h"
_SOURCE: Final = "kernel.c"
_LIBRARY: Final = "kernel.so"
_ENVIRONMENT: Final = {"LC_ALL": "C"}
"""What compilers say is read, and may be shown."""


def find() -> CCompiler | None:
    """The compiler that ``$CC`` names, else the first of cc, gcc and clang on PATH, or None.

    `ToolchainError` if ``$CC`` names something else than gcc or clang.
    """
    named = os.environ.get("CC", "").strip()
    if named:
        compiler = _compiler(_words(named))
        if compiler is None:
            raise ToolchainError(
                f"the environment variable CC names {named}, which is no gcc or clang "
                "that can be started; correct it or unset it"
            )
        return compiler
    candidates = (_compiler((path,)) for path in map(shutil.which, _NAMES) if path)
    return next((each for each in candidates if each is not None), None)


class CCompiler(Record):
    """A C compiler: the ``command`` that starts it and the first line it says of its version."""

    command: tuple[str, ...]
    version: str

    dialect = "c"

    def __str__(self) -> str:
        return self.version

    def identity(self) -> str:
        """What the bytes of a library depend on besides its text and its target, without paths."""
        options = [word for word in self.command[1:] if not os.path.isabs(word)]
        flags = (*COMPILE_FLAGS, *_SHARED, *LINK_FLAGS, *options)
        return f"{self.version}, {_content(self.command)[:16]}, {' '.join(flags)}"

    def compile(self, text: str, target: Target) -> bytes:
        """The shared library of a file of C; the same bytes in any folder.

        `ToolchainError` with the compiler's words if it fails.
        """
        with tempfile.TemporaryDirectory(prefix="tack-") as name:
            folder = Path(name)
            header = files("tack.templates").joinpath("c", _HEADER).read_text(encoding="utf-8")
            (folder / _HEADER).write_text(header, encoding="utf-8")
            (folder / _SOURCE).write_text(text, encoding="utf-8")
            flags = (*COMPILE_FLAGS, *_SHARED, *target_flags(target), *LINK_FLAGS)
            # Names without folders: none can get into the library.
            command = (*self.command, *flags, _SOURCE, "-o", _LIBRARY, "-lm")
            done = _run(command, folder)
            library = folder / _LIBRARY
            if done is None or done.returncode or not library.exists():
                said = "it cannot be started" if done is None else done.stderr.strip()
                raise ToolchainError(
                    f"{self.version} cannot compile for {target}: {said or 'it wrote no library'}"
                )
            return library.read_bytes()

    def load(self, image: bytes) -> _core.Library:
        """The functions of a shared library, in memory until the process ends.

        Raises `LoadError`.
        """
        with tempfile.TemporaryDirectory(prefix="tack-") as folder:
            try:
                with _placed(image, folder) as path:
                    return _core.Library(path)
            except OSError as error:
                raise LoadError(f"the library does not load: {error}") from None


@contextmanager
def _placed(image: bytes, folder: str) -> Iterator[str]:
    """A path in ``folder`` at which ``image`` can be read.

    It leads into memory where the system has files there: many machines let nothing run from the
    folder of temporary files. Its name is new, since loaders take a name that they have seen for
    the library that they have.
    """
    path = os.path.join(folder, _LIBRARY)
    if not hasattr(os, "memfd_create"):
        Path(path).write_bytes(image)
        yield path
        return
    number = os.memfd_create(_LIBRARY)
    with open(number, "wb", buffering=0) as file:
        file.write(image)
        os.symlink(f"/proc/self/fd/{number}", path)
        yield path


def _words(command: str) -> tuple[str, ...]:
    """The words of a command; none where its quotes do not match."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def _compiler(command: tuple[str, ...]) -> CCompiler | None:
    """A compiler if ``command`` starts gcc or clang."""
    done = _run((*command, "--version")) if command else None
    if done is None or done.returncode:
        return None
    lines = done.stdout.strip().splitlines()
    known = ("clang version", "Free Software Foundation")
    if not lines or not any(word in done.stdout for word in known):
        return None
    return CCompiler(command, lines[0])


def _run(
    command: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Runs a command to its end; None if it cannot be started."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **_ENVIRONMENT},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError:
        return None


@functools.cache
def _content(command: tuple[str, ...]) -> str:
    """The digest of the programs that a command starts: another compiler is another one."""
    paths = filter(None, map(shutil.which, command))
    return digest_files((str(k), Path(path).read_bytes()) for k, path in enumerate(paths))
