"""The file ``.smt``: a header in JSON and checked blocks, written whole or not at all.

All numbers are little-endian::

    magic         8 bytes   89 53 4D 54 0D 0A 1A 0A
    version       2 bytes
    header size   4 bytes
    header        JSON in UTF-8
    blocks, each:
        kind      4 bytes   CODE or PIXL
        images    4 bytes
        size      4 bytes
        check     8 bytes   the beginning of the SHA-256 of the decoded symbols, 32 bits each
        CRC-32    4 bytes   of the payload
        payload   32-bit words of a range coder of 24 bits precision
    end           4 bytes   END!
    SHA-256      32 bytes   of all before
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from smalti import artifacts
from smalti.codec.symbols import Stream
from smalti.errors import ArtifactError, require

# As in PNG: a first byte that is no text, and line ends that a transfer as text would change.
MAGIC = b"\x89SMT\r\n\x1a\n"
FORMAT_VERSION = 1
CODES, PIXELS = b"CODE", b"PIXL"
_PREFIX = struct.Struct("<HI")
_BLOCK = struct.Struct("<4sII8sI")
_END = b"END!"


class Block(NamedTuple):
    """Some images' codes or pixels."""

    kind: bytes
    images: int
    stream: Stream


def write_file(path: Path, header: Mapping[str, Any], blocks: Sequence[Block]) -> int:
    """Write a file; returns its length in bytes."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    parts = [MAGIC, _PREFIX.pack(FORMAT_VERSION, len(text)), text]
    for block in blocks:
        payload = block.stream.payload
        head = (block.kind, block.images, len(payload), block.stream.check, zlib.crc32(payload))
        parts += [_BLOCK.pack(*head), payload]
    content = b"".join([*parts, _END])
    content += hashlib.sha256(content).digest()
    require_place(path)
    artifacts.write_file(path, content)
    return len(content)


def require_place(path: Path) -> None:
    """Refuse a place that can't be written to, or where something else would be lost."""
    try:
        require(path.parent.is_dir(), f"can't write {path}: no such directory", ArtifactError)
        require(not path.is_dir(), f"can't write {path}: it is a directory", ArtifactError)
        if path.exists():
            with path.open("rb") as file:
                ours = file.read(len(MAGIC)) == MAGIC
            require(ours, f"{path} exists and is no .smt file; choose a new name", ArtifactError)
    except OSError as error:
        raise ArtifactError(f"can't write {path}: {error}") from error


def read_file(path: Path) -> tuple[dict[str, Any], list[Block]]:
    """The header and the blocks of a file, all checksums compared."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"can't read {path}: {error}") from error
    cursor = _Cursor(content, path)
    require(
        cursor.take(len(MAGIC), foreign=True) == MAGIC,
        f"{path} is no .smt file: it begins otherwise",
        ArtifactError,
    )
    version, size = _PREFIX.unpack(cursor.take(_PREFIX.size))
    require(
        version == FORMAT_VERSION,
        f"{path} has format version {version}, this smalti reads {FORMAT_VERSION}; "
        "decode it with the smalti that wrote it",
        ArtifactError,
    )
    text = cursor.take(size)
    blocks: list[Block] = []
    while cursor.peek(len(_END)) != _END:
        kind, images, length, check, crc = _BLOCK.unpack(cursor.take(_BLOCK.size))
        payload = cursor.take(length)
        require(
            zlib.crc32(payload) == crc,
            f"{path} is damaged: the checksum of block {len(blocks) + 1} is wrong",
            ArtifactError,
        )
        blocks.append(Block(kind, images, Stream(payload, check)))
    cursor.take(len(_END))
    digest = hashlib.sha256(content[: cursor.place]).digest()
    require(
        cursor.take(len(digest)) == digest,
        f"{path} was changed after it was written: its SHA-256 is wrong",
        ArtifactError,
    )
    rest = len(content) - cursor.place
    require(rest == 0, f"{path} has {rest} bytes behind its end", ArtifactError)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged: its header is not JSON: {error}") from error
    require(isinstance(header, dict), f"{path} is damaged: no header", ArtifactError)
    return header, blocks


class _Cursor:
    """Reads a file's bytes from the front; says where they end too early."""

    def __init__(self, content: bytes, path: Path) -> None:
        self.content, self.path, self.place = content, path, 0

    def peek(self, size: int) -> bytes:
        return self.content[self.place : self.place + size]

    def take(self, size: int, foreign: bool = False) -> bytes:
        found = self.peek(size)
        require(
            len(found) == size or foreign,
            f"{self.path} is cut off or damaged: it ends after {len(self.content)} bytes, in the "
            "middle of something",
            ArtifactError,
        )
        self.place += size
        return found
