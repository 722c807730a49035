"""The format of packs: every byte counts, and a damaged pack is one clear error."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tack.errors import BundleError
from tack.model.pack import PACK_VERSION, pack_bytes, read_pack

IMAGES = {"imagekit-kernels--tone": b"\x7fELF one", "a--b.2": b"", "ä": b"text" * 40}


def contents(pack: bytes) -> dict[str, bytes]:
    file = io.BytesIO(pack)
    index = read_pack(file, "a.pack")
    return {name: index.read(file, "a.pack", name) for name in index.images}


def result(read: Callable[[], Any]) -> Any:
    """What reading gives, or the words of its refusal."""
    try:
        return read()
    except BundleError as error:
        return str(error)


images = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=30), st.binary(max_size=99))


@given(images)
def test_a_pack_reads_back(written: dict[str, bytes]) -> None:
    assert contents(pack_bytes(written)) == written


@given(images, st.randoms())
def test_the_order_of_images_does_not_change_a_byte(written, random) -> None:
    names = list(written)
    random.shuffle(names)
    assert pack_bytes({name: written[name] for name in names}) == pack_bytes(written)


def test_the_bytes_are_those_of_the_documented_format() -> None:
    rows = sorted((name.encode(), content) for name, content in IMAGES.items())
    start = 56 + sum(2 + len(name) + 48 for name, _ in rows)
    index, offset = b"", start
    for name, content in rows:
        index += struct.pack("<H", len(name)) + name + struct.pack("<QQ", offset, len(content))
        index += hashlib.sha256(content).digest()
        offset += len(content)
    header = b"tackpack" + struct.pack("<IIQ", 1, len(rows), len(index))
    expected = header + hashlib.sha256(index).digest() + index + b"".join(c for _, c in rows)
    assert pack_bytes(IMAGES) == expected


@given(st.data())
def test_a_flipped_bit_is_an_error_of_what_it_is_in(data: st.DataObject) -> None:
    pack = bytearray(pack_bytes(IMAGES))
    place = data.draw(st.integers(0, len(pack) - 1))
    pack[place] ^= 1 << data.draw(st.integers(0, 7))
    file = io.BytesIO(bytes(pack))
    index = result(lambda: read_pack(file, "a.pack"))
    if isinstance(index, str):
        assert index.startswith("a.pack: the pack is ")
        return
    found = {name: result(lambda name=name: index.read(file, "a.pack", name)) for name in IMAGES}
    (error,) = (found[name] for name in IMAGES if found[name] != IMAGES[name])
    assert error.startswith("a.pack: the pack is damaged or truncated: the image of ")


@given(st.data())
def test_a_pack_of_another_length_is_an_error(data: st.DataObject) -> None:
    pack = pack_bytes(IMAGES)
    cut = pack[: data.draw(st.integers(0, len(pack) - 1))]
    for wrong in (cut, pack + data.draw(st.binary(min_size=1, max_size=50))):
        with pytest.raises(BundleError, match=r"^a\.pack: the pack is damaged or truncated: "):
            read_pack(io.BytesIO(wrong), "a.pack")


@given(st.binary(max_size=300))
def test_other_files_are_no_packs(content: bytes) -> None:
    for file in (content, b"tackpack" + content):
        with pytest.raises(BundleError, match=r"^a\.pack: the pack is "):
            read_pack(io.BytesIO(file), "a.pack")


INDEX = {
    "an index with an image at another place": lambda o: [(b"a", o + 1, 1)],
    "an image before the end of the last": lambda o: [(b"a", o, 1), (b"b", o, 1)],
    "names out of order": lambda o: [(b"b", o, 1), (b"a", o + 1, 0)],
    "a name twice": lambda o: [(b"a", o, 1), (b"a", o + 1, 0)],
    "a name that is no text": lambda o: [(b"\xff", o, 1)],
    "an image as large as can be": lambda o: [(b"a", o, 2**64 - 1)],
}


@pytest.mark.parametrize("case", INDEX)
def test_an_index_with_a_right_digest_and_no_sense_is_an_error(case: str) -> None:
    size = sum(50 + len(name) for name, *_ in INDEX[case](0))
    index = b"".join(
        struct.pack("<H", len(name)) + name + struct.pack("<QQ", offset, length) + bytes(32)
        for name, offset, length in INDEX[case](56 + size)
    )
    count = len(INDEX[case](0))
    for told in (count, count + 1, 2**32 - 1):
        header = b"tackpack" + struct.pack("<IIQ", 1, told, len(index))
        pack = header + hashlib.sha256(index).digest() + index + b"x"
        with pytest.raises(BundleError, match="the pack is damaged or truncated"):
            read_pack(io.BytesIO(pack), "a.pack")


def test_a_pack_of_another_version_says_what_to_do() -> None:
    pack = bytearray(pack_bytes(IMAGES))
    pack[8] = PACK_VERSION + 1
    with pytest.raises(BundleError, match="the pack is of version 2, this tack reads 1; rebuild"):
        read_pack(io.BytesIO(bytes(pack)), "a.pack")


def test_a_unit_that_is_not_there_is_an_error() -> None:
    file = io.BytesIO(pack_bytes(IMAGES))
    with pytest.raises(BundleError, match="the pack has no image of 'other'; reinstall"):
        read_pack(file, "a.pack").read(file, "a.pack", "other")


def test_reading_the_index_reads_no_image() -> None:
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            content = super().read(size)
            self.taken += len(content)
            return content

    file = Counting(pack_bytes({"small": b"1", "large": bytes(1 << 20)}))
    index = read_pack(file, "a.pack")
    assert file.taken < 300
    assert index.read(file, "a.pack", "small") == b"1"
    assert file.taken < 300
