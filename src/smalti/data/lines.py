"""Lines of a text file, plain or gzipped; what is wrong with a file is said by name and line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from smalti.artifacts import write_file
from smalti.errors import DataError, require

# Keeps memory bounded: a line is tokenized as a whole.
LONGEST_LINE = 1 << 24
GZIP = b"\x1f\x8b"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and content of each line, without its end; the first number is 1."""
    with opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            require(
                len(line) <= LONGEST_LINE,
                f"line {number} of {path} is longer than {LONGEST_LINE >> 20} MB; "
                "break it into lines, for example with fold -s",
                DataError,
            )
            require(
                b"\0" not in line,
                f"expected text in UTF-8, but line {number} of {path} holds zero bytes: "
                "a binary file, or text in UTF-16",
                DataError,
            )
            try:
                # A byte order mark is no part of the text.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"expected text in UTF-8, but line {number} of {path} is not: {error.reason} "
                    f"at byte {error.start + 1}; convert it, for example with iconv"
                ) from error
            yield number, text.rstrip("\r\n")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """A file's bytes, unpacked where they are gzipped, whatever its name says."""
    require(not path.is_dir(), f"{path} is a directory; name the files in it", DataError)
    require(path.is_file(), f"there is no file {path}", DataError)
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(GZIP)) == GZIP
            raw.seek(0)
            if not packed:
                yield raw
                return
            with gzip.open(raw) as unpacked:
                yield unpacked
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}; fetch it again") from error
    except OSError as error:
        raise DataError(f"can't read {path}: {error}") from error


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text a line, whole or not at all; gzipped where the name ends in ``.gz``."""
    content = "".join(f"{line}\n" for line in lines).encode()
    # Without a time in it: the same lines are the same bytes.
    write_file(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def check_apart(source: Path, output: Path, purpose: str) -> None:
    """An error where a file that is written would replace the one that is read for a purpose."""
    require(
        not (output.exists() and source.exists() and output.samefile(source)),
        f"{output} is the file to {purpose}; write to another",
        DataError,
    )
