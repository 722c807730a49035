"""Rows: the signatures of a manifest, multiplied out over the names in ``where``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tack.aot.manifest import ListedKernel, Manifest
from tack.model.signature import Signature

__all__ = ["Row", "expand"]


@dataclass(frozen=True, slots=True)
class Row:
    """One signature that a manifest asks for, and the place that asks for it."""

    place: str
    signature: Signature


def expand(manifest: Manifest, kernel: ListedKernel) -> tuple[Row, ...]:
    """Every row of one kernel of ``manifest``, in its order.

    `ManifestError` for a signature that does not parse, one that two places ask for, and a name
    in ``where`` that no signature uses.
    """
    return tuple(_expand(manifest, kernel))


def _expand(manifest: Manifest, kernel: ListedKernel) -> Iterator[Row]:
    _check_names(manifest, kernel)
    seen: dict[Signature, str] = {}
    for index, text in enumerate(kernel.signatures):
        for chosen in _choices(kernel, text):
            note = ", ".join(f"{name} = {value}" for name, value in chosen.items())
            place = f"{kernel.place}.signatures[{index}]" + (f" with {note}" if note else "")
            try:
                signature = Signature.parse(_substitute(text, chosen))
            except ValueError as error:
                raise manifest.refuse(place, f"{error} (kernel {kernel.name!r})") from None
            if signature in seen:
                raise manifest.refuse(
                    place,
                    f"{str(signature)!r} of {kernel.name!r} was asked for by {seen[signature]}; "
                    "remove one",
                )
            seen[signature] = place
            yield Row(place, signature)


def _check_names(manifest: Manifest, kernel: ListedKernel) -> None:
    used = {word for text in kernel.signatures for word in _words(text)}
    for name, _ in kernel.where:
        if name not in used:
            raise manifest.refuse(
                f"{kernel.place}.where.{name}",
                f"no signature of {kernel.name!r} uses {name!r}; use it or remove it",
            )


def _choices(kernel: ListedKernel, text: str) -> Iterator[dict[str, str]]:
    """Every choice of a value for each name that ``text`` uses."""
    words = set(_words(text))
    names = [(name, values) for name, values in kernel.where if name in words]
    for values in itertools.product(*(values for _, values in names)):
        yield dict(zip((name for name, _ in names), values, strict=True))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d]\w*", text)


def _substitute(text: str, chosen: dict[str, str]) -> str:
    return re.sub(r"[^\W\d]\w*", lambda match: chosen.get(match[0], match[0]), text)
