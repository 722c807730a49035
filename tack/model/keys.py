"""The keys: SHA-256 over length-prefixed content.

- `source_key`: is this the code that is running? A call checks it.
- `build_key`: may this compile be reused? For build and JIT caches only.
- the ABI (`tack.model.abi`): may this runtime load it?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Options

__all__ = ["build_key", "digest", "digest_files", "sha256", "source_key"]

_SMALL: Final = 1 << 20


def sha256(content: bytes) -> str:
    """SHA-256 in hexadecimal.

    `hashlib` would load OpenSSL, which takes 3 ms of the 15 that a first call may take; its SHA-256
    is the faster one from about a megabyte on.
    """
    if len(content) < _SMALL:
        own = _own_sha256()
        if own is not None:
            found: str = own(content).hexdigest()
            return found
    import hashlib

    return hashlib.sha256(content).hexdigest()


@cache
def _own_sha256() -> Callable[[bytes], Any] | None:
    """Python's own SHA-256, if it was built with it."""
    for module in ("_sha2", "_sha256"):  # CPython from 3.12 on, and before
        try:
            found: Callable[[bytes], Any] = import_module(module).sha256
        except ImportError:
            continue
        return found
    return None


def digest(*parts: str | bytes) -> str:
    """SHA-256, in hexadecimal, over ``parts``, each preceded by its length."""
    contents = [part.encode() if isinstance(part, str) else part for part in parts]
    return sha256(b"".join(len(c).to_bytes(8, "little") + c for c in contents))


def source_key(
    fingerprint: str,
    signature: Signature,
    options: Options,
    files: Mapping[str, str] | None = None,
) -> str:
    """The key of the code of one instantiation.

    ``fingerprint`` is the digest of the kernel's canonical syntax and of everything it reaches,
    the methods of ``signature``'s templates included (`tack.lang.fingerprint`). ``files`` are those
    of a source kernel's template, each with the SHA-256 of its bytes; their names do not count,
    which the declaration and the templates themselves hold.
    """
    if files:
        contents = (content for _, content in sorted(files.items()))
        fingerprint = digest("tack own source", fingerprint, *contents)
    return digest("tack source", fingerprint, signature.content(), str(options))


def build_key(source: str, target: Target, generator: str, compiler: str) -> str:
    """The key of one compile.

    ``generator`` is the digest of the code generator, its templates and the renderer's tables;
    ``compiler`` identifies the compiler and its flags by content.
    """
    return digest("tack build", source, str(target), generator, compiler)


def digest_files(contents: Iterable[tuple[str, bytes]]) -> str:
    """One digest over named file contents, in the order of their names."""
    return digest(*(part for name, data in sorted(contents) for part in (name, data)))
