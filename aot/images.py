"""Packs of images: written from what compilers made, and checked by what the images say.

Nothing that tack noted while it built is believed: the architecture of an image, its entry points
and what they take are read from its bytes.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tack.aot.amdgpu_image import read_code_object
from tack.aot.cuda_image import read_cubin, read_ptx
from tack.aot.image_facts import ImageFacts
from tack.aot.units import image_path
from tack.model.bundle import Artifact, Bundle, Resources
from tack.model.errors import ToolchainError
from tack.model.gpus import GPUS
from tack.model.pack import pack_bytes, read_pack
from tack.model.targets import Target
from tack.render.renderer import renderer_for

__all__ = ["Checked", "check_pack", "read_image", "read_images", "write_packs"]

Checked = tuple[str, Mapping[str, Resources]]
"""What an artifact needs, and what each entry point takes."""


def write_packs(record: Bundle, work: Path, folder: Path) -> None:
    """Writes the pack of each GPU architecture into ``folder`` from the images below ``work``.

    What is there with the same bytes is left alone. `ToolchainError` for a missing image.
    """
    for artifact in record.artifacts:
        if artifact.target.backend != "cpu":
            content = pack_bytes(_built(record, artifact.target, work))
            path = folder / artifact.path
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def _built(record: Bundle, target: Target, work: Path) -> dict[str, bytes]:
    suffix = renderer_for(target).suffix
    images: dict[str, bytes] = {}
    for unit in _units(record, target):
        path = work / image_path(target, unit, suffix)
        try:
            images[unit] = path.read_bytes()
        except OSError as error:
            raise ToolchainError(f"{path}: the image cannot be read: {error.strerror}") from None
    return images


def _units(record: Bundle, target: Target) -> list[str]:
    """The names of a target's units."""
    variants = (variant for kernel in record.kernels for variant in kernel.variants)
    return sorted({variant.unit for variant in variants if variant.target == target})


def check_pack(record: Bundle, artifact: Artifact, path: Path, content: bytes) -> Checked:
    """What the images of a pack say, compared with what ``record`` says of the target.

    `ToolchainError` for an image of another architecture, one without one of its entry points, and
    a pack with other units.
    """
    images = read_images(artifact.target, str(path), content)
    units = _units(record, artifact.target)
    if sorted(images) != units:
        differ = ", ".join(sorted(set(images) ^ set(units)))
        raise ToolchainError(f"{path}: it has not the units that were rendered, but for {differ}")
    for kernel in record.kernels:
        for variant in kernel.variants:
            if variant.target == artifact.target:
                for _, symbol in variant.launch.entries:
                    if symbol not in images[variant.unit].entries:
                        raise ToolchainError(
                            f"{path}: {variant.unit}: the image has no {symbol}, an entry point of "
                            f"{kernel.name}({variant.signature}); was it made from another file?"
                        )
    resources = {name: row for facts in images.values() for name, row in facts.entries.items()}
    needs = dict.fromkeys(facts.needs for facts in images.values())
    return ", ".join([artifact.target.arch, *sorted(filter(None, needs))]), resources


def read_images(target: Target, place: str, content: bytes) -> dict[str, ImageFacts]:
    """The facts of every image of a pack, by unit.

    `BundleError` for a damaged pack; `ToolchainError` for an image that is not one for ``target``.
    """
    file = io.BytesIO(content)
    pack = read_pack(file, place)
    return {
        unit: read_image(target, f"{place}: {unit}", pack.read(file, place, unit))
        for unit in pack.images
    }


def read_image(target: Target, place: str, content: bytes) -> ImageFacts:
    """The facts of an image for ``target``; `ToolchainError` if it is none, or for another one."""
    form = target.arch.partition("_")[0] if target.backend == "cuda" else target.backend
    try:
        facts = _READERS[form](target, content)
    except (ValueError, LookupError, struct.error) as error:
        raise ToolchainError(f"{place}: the image is damaged, or is none: {error}") from None
    if facts.arch != target.arch:
        raise ToolchainError(
            f"{place}: declared {target.arch}, and the image is for {facts.arch}; look for flags "
            "in the environment and in the toolchain file"
        )
    return facts


_KERNEL: Final = re.compile(r"(?:\bkernel|\[\[\s*kernel\s*\]\])\s+void\s+(\w+)\s*\(")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _read_metal(target: Target, content: bytes) -> ImageFacts:
    """Text says nothing of a version: it is compiled for the one that it is shipped for."""
    text = _COMMENT.sub(" ", content.decode())
    entries = {name: Resources(name) for name in _KERNEL.findall(text)}
    return ImageFacts(target.arch, GPUS["metal"][target.arch].least_os, entries)


_READERS: Final[Mapping[str, Callable[[Target, bytes], ImageFacts]]] = {
    "sm": lambda _, content: read_cubin(content),
    "compute": lambda _, content: read_ptx(content),
    "hip": lambda _, content: read_code_object(content),
    "metal": _read_metal,
}
