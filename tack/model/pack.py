"""A pack: the images of one GPU architecture, one for each unit, in a file with an index.

All numbers are little-endian.

| bytes | what |
|---|---|
| 8 | ``tackpack`` |
| 4 | the version of this format |
| 4 | how many images there are |
| 8 | the size of the index |
| 32 | the SHA-256 of the index |
| … | the index: for each image, in the order of their names, the size of the name (2 bytes), the \
  name in UTF-8, the image's offset from the beginning of the file (8), size (8), SHA-256 (32) |
| … | the images, one after the other in the order of the index, to the end of the file |

Nothing is between them, and every byte is a number that is checked or is covered by a digest. A
reader opens the file, reads the index, and later the bytes of the image that it needs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import BinaryIO, Final

from tack.model.errors import BundleError
from tack.model.keys import sha256
from tack.model.record import Record

__all__ = ["PACK_VERSION", "Image", "Pack", "pack_bytes", "read_pack"]

PACK_VERSION: Final = 1
"""The version of this tack; a pack of another one is not read."""

_MAGIC: Final = b"tackpack"
_HEADER: Final = struct.Struct("<8sIIQ32s")
_NAME: Final = struct.Struct("<H")
_ENTRY: Final = struct.Struct("<QQ32s")


class Image(Record):
    """Where the image of one unit lies in a pack, and the digest of its bytes."""

    name: str
    offset: int
    size: int
    sha256: str


class Pack(Record):
    """The index of a pack: its images by the names of their units."""

    images: Mapping[str, Image]

    def read(self, file: BinaryIO, place: str, name: str) -> bytes:
        """The image of the unit ``name`` from the pack's ``file``, which ``place`` calls.

        `BundleError` if the pack has none of that name, or its bytes are not those that were
        built.
        """
        image = self.images.get(name)
        if image is None:
            raise BundleError(f"{place}: the pack has no image of {name!r}; reinstall the package")
        file.seek(image.offset)
        content = file.read(image.size)
        if len(content) != image.size or sha256(content) != image.sha256:
            raise _damaged(place, f"the image of {name!r} is not the one that was built")
        return content


def pack_bytes(images: Mapping[str, bytes]) -> bytes:
    """The pack of ``images``, by the names of their units: the same bytes in any order."""
    rows = [(name.encode(), images[name]) for name in sorted(images, key=str.encode)]
    index_size = sum(_NAME.size + len(name) + _ENTRY.size for name, _ in rows)
    offset, index = _HEADER.size + index_size, b""
    for name, content in rows:
        digest = bytes.fromhex(sha256(content))
        index += _NAME.pack(len(name)) + name + _ENTRY.pack(offset, len(content), digest)
        offset += len(content)
    digest = bytes.fromhex(sha256(index))
    header = _HEADER.pack(_MAGIC, PACK_VERSION, len(rows), index_size, digest)
    return b"".join((header, index, *(content for _, content in rows)))


def read_pack(file: BinaryIO, place: str) -> Pack:
    """The index of the pack in ``file``, which ``place`` calls; none of its images is read.

    `BundleError` for a file that is none, is damaged or truncated, or is of another version.
    """
    size = file.seek(0, 2)
    file.seek(0)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[: len(_MAGIC)] != _MAGIC:
        raise _damaged(place, "it does not begin as a pack does")
    _, version, count, index_size, digest = _HEADER.unpack(header)
    if version != PACK_VERSION:
        raise BundleError(
            f"{place}: the pack is of version {version}, this tack reads {PACK_VERSION}; rebuild "
            "the package with this tack or install the tack that built it"
        )
    if index_size > size - _HEADER.size:
        raise _damaged(place, "its index is cut off")
    index = file.read(index_size)
    if len(index) != index_size or sha256(index) != digest.hex():
        raise _damaged(place, "its index is not the one that was built")
    try:
        images, end = _images(index, count, _HEADER.size + index_size)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise _damaged(place, f"its index has no sense: {error}") from None
    if end != size:
        raise _damaged(place, f"it has {size} bytes, and its images end at {end}")
    return Pack({image.name: image for image in images})


def _images(index: bytes, count: int, offset: int) -> tuple[list[Image], int]:
    """The rows of an index, and where the last image ends; the first begins at ``offset``."""
    images: list[Image] = []
    place, last = 0, None
    for _ in range(count):
        (length,) = _NAME.unpack_from(index, place)
        place += _NAME.size
        name = index[place : place + length]
        place += length
        start, size, digest = _ENTRY.unpack_from(index, place)
        place += _ENTRY.size
        if start != offset or (last is not None and name <= last):
            raise ValueError(f"the row of {name!r} is out of order")
        images.append(Image(name.decode(), start, size, digest.hex()))
        offset, last = start + size, name
    if place != len(index):
        raise ValueError(f"{len(index) - place} bytes are left")
    return images, offset


def _damaged(place: str, what: str) -> BundleError:
    return BundleError(
        f"{place}: the pack is damaged or truncated: {what}; reinstall or rebuild the package"
    )
