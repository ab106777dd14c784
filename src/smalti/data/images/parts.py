"""The parts that a set comes in: what its makers call them, and what they are called here."""

from __future__ import annotations

from collections.abc import Iterable

from smalti.errors import DataError, require

# By our word: the words of others, in any case of letters.
PARTS = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "validation", "dev"),
    "test": ("test", "testing", "t10k"),
}
WORDS = {word for words in PARTS.values() for word in words}


def is_part(name: str) -> bool:
    """Whether a name is one that parts have."""
    return name.casefold() in WORDS


def checked_split(split: str) -> str:
    """One of our words."""
    require(
        isinstance(split, str) and split in PARTS,
        f"expected a split of {', '.join(PARTS)}, got {split!r}",
    )
    return split


def part_of(names: Iterable[str], split: str, where: str) -> str:
    """Which of a set's own parts is meant.

    Of a set that has a validation part and no test part, the former is also its ``test``:
    it is all that its makers held out.

    Args:
        names: The parts that there are, in the set's own words.
        split: ``train``, ``valid`` or ``test``.
        where: The set, for messages.
    """
    there = {name.casefold(): name for name in names}
    wanted = [*PARTS[split], *(PARTS["valid"] if split == "test" else ())]
    found = [there[word] for word in wanted if word in there]
    require(
        bool(found),
        f"there is no part {split!r} of {where}; it has: {', '.join(sorted(there.values()))}",
        DataError,
    )
    return found[0]


def require_whole(split: str, where: str) -> None:
    """Refuse to look for other parts than ``train`` in a set that comes in one piece."""
    require(
        split == "train",
        f"{where} comes in one piece and has no part {split!r}; "
        "read it as 'train' and cut it with split(images, valid_share, seed)",
        DataError,
    )
