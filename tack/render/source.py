"""What rendering one variant gives."""

from __future__ import annotations

from dataclasses import dataclass

from tack.model.bundle import Captured
from tack.model.launch import Launch
from tack.model.variant import Variant

__all__ = ["Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """The code of one variant, to be laid out in a file by the renderer's ``assemble``.

    ``text`` holds the variant's functions, entry points included. ``launch`` tells the launcher
    which values to pack and which symbols to call, ``source_key`` which code this is. ``modules``
    and ``captured`` are what the variant's templates add to those of its kernel. The text is the
    same for all targets of a dialect that agree in ``facts``: in how they convert the floats of
    these names, and, if ``"warps"`` is among them, in their tensor cores; with ``"target"``, which
    templates of authors are told, it is that of one target. ``shared`` is how
    many bytes the arrays have that a workgroup shares, which not every target may have.
    """

    variant: Variant
    text: str
    launch: Launch
    source_key: str
    modules: tuple[str, ...] = ()
    captured: tuple[Captured, ...] = ()
    facts: frozenset[str] = frozenset()
    shared: int = 0

    @property
    def title(self) -> str:
        """Kernel and signature: what is the same for every target that shares the text."""
        return f"{self.variant.kernel.name}({self.variant.signature})"
