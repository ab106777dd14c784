"""The file: whatever is wrong with it is found and said; it is written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from smalti.codec.container import CODES, PIXELS, Block, read_file, write_file
from smalti.codec.header import read_header
from smalti.codec.symbols import Stream
from smalti.errors import ArtifactError

HEADER = {"count": 3, "model": "ab", "text": "ä"}
BLOCKS = [
    Block(CODES, 2, Stream(b"12345678", b"checksum")),
    Block(PIXELS, 2, Stream(b"", b"\0" * 8)),
    Block(CODES, 1, Stream(b"abcd", b"another.")),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with three blocks."""
    path = tmp_path / "images.smt"
    assert write_file(path, HEADER, BLOCKS) == path.stat().st_size
    return path


def test_what_was_written_is_read(file: Path) -> None:
    header, blocks = read_file(file)
    assert header == HEADER
    assert blocks == BLOCKS


def test_the_bytes_are_those_of_the_documentation(file: Path) -> None:
    text = json.dumps(HEADER, sort_keys=True, separators=(",", ":")).encode()
    expected = bytes.fromhex("89534D540D0A1A0A") + struct.pack("<HI", 1, len(text)) + text
    for kind, images, payload, check in (
        (b"CODE", 2, b"12345678", b"checksum"),
        (b"PIXL", 2, b"", b"\0" * 8),
        (b"CODE", 1, b"abcd", b"another."),
    ):
        expected += kind + struct.pack("<II", images, len(payload)) + check
        expected += struct.pack("<I", zlib.crc32(payload)) + payload
    expected += b"END!"
    assert file.read_bytes() == expected + hashlib.sha256(expected).digest()


def test_a_file_cut_anywhere_is_refused(file: Path) -> None:
    content = file.read_bytes()
    for size in range(len(content)):
        file.write_bytes(content[:size])
        with pytest.raises(ArtifactError, match=r"cut off|no \.smt file"):
            read_file(file)


def test_any_changed_byte_is_found(file: Path) -> None:
    content = file.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x41
        file.write_bytes(changed)
        with pytest.raises(ArtifactError, match=r"images\.smt"):
            read_file(file)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no .smt file"),
        (b"\x89PNG\r\n\x1a\n and so on", "no .smt file"),
        (b"\x89SMT\r\n\x1a\n\x02\x00\x00\x00\x00\x00", "format version 2"),
    ],
)
def test_foreign_files_are_named_so(content: bytes, word: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign.smt"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=word):
        read_file(path)


def test_damage_is_told_by_the_block(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content.replace(b"abcd", b"abce"))
    with pytest.raises(ArtifactError, match="block 3"):
        read_file(file)
    file.write_bytes(content.replace(b'"count":3', b'"count":4'))
    with pytest.raises(ArtifactError, match="changed after it was written"):
        read_file(file)
    file.write_bytes(content + b"more")
    with pytest.raises(ArtifactError, match="4 bytes behind"):
        read_file(file)


@pytest.mark.parametrize("path", ["nothing.smt", "."])
def test_what_can_not_be_read_is_said(path: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="can't read"):
        read_file(tmp_path / path)


def test_headers_that_lack_something_are_refused() -> None:
    whole = {
        **{"model": "ab", "count": 2, "shape": [1, 8, 8], "bits": 8},
        **{"mode": "lossy", "prior": ["uniform"], "versions": {}},
    }
    assert read_header(whole, Path("file")).shape == (1, 8, 8)
    for name in whole:
        with pytest.raises(ArtifactError, match="header"):
            read_header({key: value for key, value in whole.items() if key != name}, Path("file"))
    for bad in ({"count": -1}, {"shape": [8, 8]}, {"mode": "best"}, {"bits": True}):
        with pytest.raises(ArtifactError, match="header"):
            read_header({**whole, **bad}, Path("file"))


def test_a_full_disk_leaves_what_was_there(file: Path, small_disk: Any) -> None:
    before = file.read_bytes()
    with small_disk(100), pytest.raises(ArtifactError, match="can't write"):
        write_file(file, {**HEADER, "count": 9}, BLOCKS)
    with small_disk(100), pytest.raises(ArtifactError, match="can't write"):
        write_file(file.with_name("new.smt"), HEADER, BLOCKS)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_only_smt_files_are_replaced(file: Path) -> None:
    write_file(file, {**HEADER, "count": 9}, BLOCKS)
    assert read_file(file)[0]["count"] == 9
    other = file.with_name("photo.png")
    other.write_bytes(b"precious")
    for place in (other, file.parent, file.parent / "missing" / "a.smt"):
        with pytest.raises(ArtifactError, match=r"no \.smt file|can't write"):
            write_file(place, HEADER, BLOCKS)
    assert other.read_bytes() == b"precious"
    assert sorted(file.parent.iterdir()) == sorted([file, other])
