"""Aligned files: what belongs together, and what is said when it does not."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from smalti.data import AlignedTexts, read_aligned
from smalti.data.aligned import parting_line
from smalti.errors import DataError


def written(path: Path, lines: list[str]) -> Path:
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def pairs(count: int) -> tuple[list[str], list[str]]:
    """Sentences of random lengths, and translations that are about as long."""
    chance = random.Random(3)
    lengths = [chance.randint(2, 40) for _ in range(count)]
    return (
        [" ".join(["word"] * length) for length in lengths],
        [" ".join(["Wort!"] * (length + chance.randint(-1, 1))) for length in lengths],
    )


def test_lines_of_plain_and_gzipped_files_stand_side_by_side(tmp_path: Path) -> None:
    source = written(tmp_path / "a.en", ["one", "", "three"])
    target = written(tmp_path / "a.de.gz", ["eins", "zwei", "drei"])
    found = read_aligned(source, target)
    assert found.source == ("one", "", "three")
    assert found.target == ("eins", "zwei", "drei")
    assert len(found) == 3
    other = read_aligned(source, written(tmp_path / "b.de", ["eins", "zwei", "vier"]))
    assert found.fingerprint() != other.fingerprint()
    # Where a line ends is part of what is read.
    moved = written(tmp_path / "c.en", ["one", "three", ""])
    assert read_aligned(moved, target).fingerprint() != found.fingerprint()


@pytest.mark.parametrize("missing", [40, 150, 260])
def test_files_of_different_lengths_are_refused_with_both_counts_and_the_place(
    tmp_path: Path, missing: int
) -> None:
    english, german = pairs(300)
    source = written(tmp_path / "a.en", english)
    target = written(tmp_path / "a.de", german[:missing] + german[missing + 1 :])
    with pytest.raises(DataError, match=r"got 300 in .*a\.en and 299 in .*a\.de") as caught:
        read_aligned(source, target)
    line = int(str(caught.value).partition("about line ")[2].partition(":")[0])
    assert abs(line - missing) <= 3


def test_a_file_that_is_cut_off_is_told_from_one_with_a_gap(tmp_path: Path) -> None:
    english, german = pairs(200)
    target = written(tmp_path / "a.de", german[:120])
    with pytest.raises(DataError, match="cut off"):
        read_aligned(written(tmp_path / "a.en", english), target)


def test_nothing_is_said_about_the_place_where_lengths_do_not_tell(tmp_path: Path) -> None:
    english, german = pairs(200)
    random.Random(1).shuffle(german)
    assert parting_line([len(text) for text in english], [len(text) for text in german[1:]]) is None
    few = written(tmp_path / "a.en", ["one", "two"])
    with pytest.raises(DataError, match=r"got 2 in .* and 1 in .*a\.de$"):
        read_aligned(few, written(tmp_path / "a.de", ["eins"]))


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    source = written(tmp_path / "a.en", ["one"])
    with pytest.raises(DataError, match=r"b\.de holds no lines"):
        read_aligned(source, written(tmp_path / "b.de", []))


def test_lines_that_do_not_belong_together_raise_a_doubt() -> None:
    english, german = pairs(300)
    names = ("a.en", "a.de")
    assert AlignedTexts(tuple(english), tuple(german), names).doubt() == ""
    moved = (*german[1:], german[0])
    assert "belong together?" in AlignedTexts(tuple(english), moved, names).doubt()
    # Lines of one length say nothing, nor do few lines.
    assert AlignedTexts(("one",) * 300, tuple(german), names).doubt() == ""
    assert AlignedTexts(tuple(english[:50]), moved[:50], names).doubt() == ""
