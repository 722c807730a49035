"""The keys: SHA-256 over length-prefixed content.

- `source_key`: is this the code that is running? A call checks it.
- `build_key`: may this compile be reused? For build and JIT caches only.
- the ABI (`tack.model.abi`): may this runtime load it?
"""

from __future__ import annotations

from collections.abc import Iterable

from tack.model.signature import Signature
from tack.model.targets import Target
from tack.model.variant import Options

__all__ = ["build_key", "digest", "digest_files", "source_key"]


def digest(*parts: str | bytes) -> str:
    """SHA-256, in hexadecimal, over ``parts``, each preceded by its length."""
    import hashlib  # 2 ms that an import of tack need not pay

    state = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        state.update(len(content).to_bytes(8, "little"))
        state.update(content)
    return state.hexdigest()


def source_key(fingerprint: str, signature: Signature, options: Options) -> str:
    """The key of the code of one instantiation.

    ``fingerprint`` is the digest of the kernel's canonical syntax and of everything it reaches
    (`tack.lang.fingerprint`).
    """
    return digest("tack source", fingerprint, str(signature), str(options))


def build_key(source: str, target: Target, generator: str, compiler: str) -> str:
    """The key of one compile.

    ``generator`` is the digest of the code generator, its templates and the renderer's tables;
    ``compiler`` identifies the compiler and its flags by content.
    """
    return digest("tack build", source, str(target), generator, compiler)


def digest_files(contents: Iterable[tuple[str, bytes]]) -> str:
    """One digest over named file contents, in the order of their names."""
    return digest(*(part for name, data in sorted(contents) for part in (name, data)))
