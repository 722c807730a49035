"""What ``TACK_RECORD`` noted, as manifest rows."""

from __future__ import annotations

import json
from collections.abc import Iterable

import tomlkit

from tack.model.errors import ManifestError
from tack.model.signature import Signature

__all__ = ["manifest_rows", "read_notes"]


def read_notes(lines: Iterable[str], place: str) -> dict[str, list[str]]:
    """Kernel -> the signatures that calls asked for and nobody had prebuilt, sorted, each once.

    Raises `ManifestError` naming the line that is no note.
    """
    found: dict[str, set[str]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            note = json.loads(line)
            kernel, signature = note["kernel"], str(Signature.parse(note["signature"]))
        except (ValueError, TypeError, KeyError) as error:
            raise ManifestError(
                f"{place}:{number}: this is no note that TACK_RECORD writes ({error!r})"
            ) from None
        found.setdefault(str(kernel), set()).add(signature)
    return {kernel: sorted(found[kernel]) for kernel in sorted(found)}


def manifest_rows(notes: dict[str, list[str]]) -> str:
    """The notes as ``[[kernel]]`` tables for a manifest."""
    tables = []
    for kernel, signatures in notes.items():
        listed = "".join(f"    {_text(signature)},\n" for signature in signatures)
        tables.append(f"[[kernel]]\nname = {_text(kernel)}\nsignatures = [\n{listed}]\n")
    return "\n".join(tables)


def _text(value: str) -> str:
    return tomlkit.string(value).as_string()
