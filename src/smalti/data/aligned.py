"""Two text files of which each line of one translates the same line of the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smalti.data.lines import read_lines
from smalti.errors import DataError, require

# Fewer lines do not show by their lengths where they part.
ENOUGH_LINES = 20
# How much nearer the lengths of lines must come by a shift before it is worth a word.
CLEAR_GAIN = 0.8
# Below this correlation lengths of lines look as if the lines were shuffled; so many must agree.
UNRELATED = 0.1
MANY_LINES = 200


@dataclass(frozen=True)
class AlignedTexts:
    """Sentences and their translations, in the order of the files.

    Args:
        source: A sentence each.
        target: What it means in the other language.
        names: The files that they were read from.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    names: tuple[str, str]

    def __len__(self) -> int:
        return len(self.source)

    def fingerprint(self) -> str:
        """The SHA-256 of all texts in their order."""
        digest = hashlib.sha256()
        for text in (*self.source, *self.target):
            digest.update(text.encode())
            digest.update(b"\n")
        return digest.hexdigest()

    def doubt(self) -> str:
        """A word where the lengths of many lines look as if the lines did not belong together.

        There are texts of which that is true: a dictionary's words and their explanations. So it
        is a word of warning, and not an error.
        """
        sides = (self.source, self.target)
        lengths = np.log1p(np.array([[len(text) for text in side] for side in sides], dtype=float))
        if len(self) < MANY_LINES or not lengths.std(axis=1).all():
            return ""
        found = float(np.corrcoef(lengths[0], lengths[1])[0, 1])
        if found >= UNRELATED:
            return ""
        return (
            f"long lines of {self.names[0]} do not have long translations in {self.names[1]} "
            f"(correlation of lengths {found:.2f}): do the lines belong together?"
        )


def read_aligned(source: str | Path, target: str | Path) -> AlignedTexts:
    """Read two files, plain or gzipped, that must have the same number of lines.

    Args:
        source: Sentences, one a line.
        target: Their translations, one a line.
    """
    texts = [tuple(line for _, line in read_lines(Path(path))) for path in (source, target)]
    counts = [len(lines) for lines in texts]
    require(
        min(counts) > 0,
        f"{(source, target)[counts.index(min(counts))]} holds no lines",
        DataError,
    )
    require(
        counts[0] == counts[1],
        f"expected two files with the same number of lines, got {counts[0]:,} in {source} and "
        f"{counts[1]:,} in {target}{_where_they_part(*texts)}",
        DataError,
    )
    return AlignedTexts(texts[0], texts[1], (str(source), str(target)))


def _where_they_part(source: Sequence[str], target: Sequence[str]) -> str:
    """A word about the line from which on two files no longer belong together."""
    short = min(len(source), len(target))
    line = parting_line([len(text) for text in source], [len(text) for text in target])
    if line is None:
        return ""
    if line >= short:
        return "; the lines of the shorter seem to match as far as it goes: is it cut off?"
    return f"; by their lengths they match up to about line {line:,}: look there first"


def parting_line(source: Sequence[int], target: Sequence[int]) -> int | None:
    """How many lines match before some are missing in one of two files, by their lengths.

    Long sentences have long translations. From the line on where some are missing, lengths
    agree only when one file is shifted by as many lines; the cut is where agreement before it
    without a shift, and after it with one, is best in sum.

    Args:
        source: Lengths of the lines of one file.
        target: Those of the other, which has more or fewer.

    Returns:
        None where lengths do not tell.

    Example:
        >>> lengths = [10, 50, 20, 90, 30, 70, 15, 60] * 4
        >>> parting_line(lengths, lengths[:12] + lengths[13:])
        12
    """
    short, missing = min(len(source), len(target)), abs(len(source) - len(target))
    if short < ENOUGH_LINES or not missing:
        return None
    pair = [np.log1p(np.asarray(lengths, dtype=np.float64)) for lengths in (source, target)]
    centred = [lengths - lengths.mean() for lengths in pair]
    longer, shorter = sorted(centred, key=len, reverse=True)
    together = np.abs(longer[:short] - shorter)
    shifted = np.abs(longer[missing:] - shorter)
    before = np.concatenate([[0.0], np.cumsum(together)])
    after = np.concatenate([np.cumsum(shifted[::-1])[::-1], [0.0]])
    costs = before + after
    cut = int(costs.argmin())
    chance = float(np.abs(longer[:short] - shorter[np.arange(short) - short // 2]).sum())
    return cut if costs[cut] < CLEAR_GAIN * chance else None
