"""What a ``.smt`` file says of itself before its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalti.errors import ArtifactError, require

MODES = ("lossy", "lossless")


@dataclass(frozen=True)
class Header:
    """What a reader must know.

    Args:
        model: The fingerprint of the model that the file was written with.
        count: How many images.
        shape: Channels, height and width of each.
        bits: Of a subpixel.
        lossless: Whether pixels are kept beside the codes.
        prior: The name of each level's prior, top first.
        versions: What wrote it.
    """

    model: str
    count: int
    shape: tuple[int, int, int]
    bits: int
    lossless: bool
    prior: Sequence[str]
    versions: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """The header as plain data."""
        return {
            "model": self.model,
            "count": self.count,
            "shape": list(self.shape),
            "bits": self.bits,
            "mode": MODES[self.lossless],
            "prior": list(self.prior),
            "versions": dict(self.versions),
        }


def read_header(plain: Mapping[str, Any], path: Path) -> Header:
    """The header from plain data; an error where it lacks something.

    Args:
        plain: What the file holds.
        path: Which file, for messages.
    """
    shape, versions = plain.get("shape"), plain.get("versions")
    names = plain.get("prior")
    fits = (
        isinstance(plain.get("model"), str)
        and isinstance(shape, list)
        and len(shape) == 3
        and all(_counts(item) for item in (*shape, plain.get("count"), plain.get("bits")))
        and plain.get("mode") in MODES
        and isinstance(names, list)
        and isinstance(versions, dict)
    )
    require(fits, f"{path} is damaged: its header lacks something: {plain!r:.200}", ArtifactError)
    assert isinstance(shape, list)
    assert isinstance(names, list)
    assert isinstance(versions, dict)
    return Header(
        model=plain["model"],
        count=plain["count"],
        shape=(shape[0], shape[1], shape[2]),
        bits=plain["bits"],
        lossless=plain["mode"] == "lossless",
        prior=names,
        versions=versions,
    )


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
