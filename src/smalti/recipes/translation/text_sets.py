"""Which texts a model is trained on, and which it is judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from smalti.data import AlignedTexts, Subwords, TokenPairs, locate, read_aligned
from smalti.errors import DataError, require
from smalti.recipes.translation.config import TextSettings


@dataclass(frozen=True)
class TrainingTexts:
    """The texts of a training run.

    Args:
        train: To learn from.
        valid: Held out.
        vocabulary: The texts that the vocabulary is learned from.
        fingerprint: Of all of them together.
    """

    train: AlignedTexts
    valid: AlignedTexts
    vocabulary: tuple[str, ...]
    fingerprint: str


def find_file(name: str | Path) -> Path:
    """The file of that path, or of that name in the folder of data sets."""
    path = Path(name)
    if path.exists() or path.is_absolute():
        return path
    try:
        return locate(str(name))
    except DataError as error:
        raise DataError(f"there is no file {name}, and no data set of that name: {error}") from None


def read_training_texts(settings: TextSettings) -> TrainingTexts:
    """Read the pairs that settings name, and hold some out; what is blank on a side is left out."""
    known = read_aligned(find_file(settings.source), find_file(settings.target))
    pairs = known
    if settings.distilled is not None:
        distilled = read_aligned(find_file(settings.source), find_file(settings.distilled))
        pairs = replace(known, target=distilled.target)
    if settings.valid_source is not None and settings.valid_target is not None:
        train = pairs
        valid = read_aligned(find_file(settings.valid_source), find_file(settings.valid_target))
    else:
        generator = torch.Generator().manual_seed(settings.split_seed)
        order = torch.randperm(len(pairs), generator=generator).tolist()
        held_out = max(1, round(settings.valid_share * len(pairs)))
        # A model is judged by what people wrote, whatever it learns from.
        valid = _chosen(known, sorted(order[:held_out]))
        train = _chosen(pairs, sorted(order[held_out:]))
    if settings.more_source is not None and settings.more_distilled is not None:
        # Behind the held-out pairs' choice, which stays the same with them and without.
        more = read_aligned(find_file(settings.more_source), find_file(settings.more_distilled))
        train = replace(train, source=train.source + more.source, target=train.target + more.target)
    fingerprint = train.fingerprint() + valid.fingerprint()
    train, valid = _without_blanks(train), _without_blanks(valid)
    for part, what in ((train, "to learn from"), (valid, "held out")):
        require(
            len(part) > 0,
            f"expected pairs of sentences {what} in {' and '.join(part.names)}, got none",
            DataError,
        )
    return TrainingTexts(train, valid, (*known.source, *known.target), fingerprint)


def as_tokens(pairs: AlignedTexts, subwords: Subwords, longest: int) -> TokenPairs:
    """The pairs as numbers of tokens; those that are too long on a side are left out."""
    both = zip(subwords.encode(pairs.source), subwords.encode(pairs.target), strict=True)
    kept = [pair for pair in both if max(map(len, pair)) <= longest]
    require(
        bool(kept),
        f"none of {len(pairs):,} pairs has at most {longest} tokens on each side; raise "
        "data.longest, or break the lines into sentences",
        DataError,
    )
    return TokenPairs([source for source, _ in kept], [target for _, target in kept])


def find_pair(
    data: str | Path, reference: str | Path | None, settings: TextSettings
) -> tuple[Path, Path]:
    """The files of sentences and of their translations to judge a model by.

    Args:
        data: The file of sentences; or the common beginning of both names, such as
            ``multi30k:test_2016_flickr``, where the ends are those of the training files.
        reference: The file of translations; None where ``data`` stands for both.
        settings: What the model was trained on.
    """
    if reference is not None:
        return find_file(data), find_file(reference)
    name = str(data).replace(":", "/", 1)
    languages = [_language(file) for file in (settings.source, settings.target)]
    require(
        all(languages) and languages[0] != languages[1],
        f"say where the translations of {data} are: --reference FILE",
        DataError,
    )
    begin = name.removesuffix(".gz").removesuffix(languages[0])
    source, target = (_either(f"{begin}{language}") for language in languages)
    return source, target


def _either(name: str) -> Path:
    zipped = Path(f"{name}.gz")
    return zipped if zipped.is_file() and not Path(name).is_file() else find_file(name)


def _language(file: str) -> str:
    """The end of a name that says its language, such as ``.en``."""
    return Path(file.removesuffix(".gz")).suffix


def _chosen(pairs: AlignedTexts, rows: Iterable[int]) -> AlignedTexts:
    rows = list(rows)
    return replace(
        pairs,
        source=tuple(pairs.source[row] for row in rows),
        target=tuple(pairs.target[row] for row in rows),
    )


def _without_blanks(pairs: AlignedTexts) -> AlignedTexts:
    both = zip(pairs.source, pairs.target, strict=True)
    return _chosen(
        pairs, (row for row, (one, other) in enumerate(both) if one.strip() and other.strip())
    )
