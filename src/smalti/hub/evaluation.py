"""What an evaluation found, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Footprint:
    """A model and its bytes.

    Args:
        name: What was opened.
        kind: What the model is for.
        architecture: Its class.
        table: Bytes of its table as it is saved, by part.
        memory: Bytes of its parameters and buffers, loaded.
        disk: Bytes of its files, None where they are not known.
    """

    name: str
    kind: str
    architecture: str
    table: dict[str, int]
    memory: dict[str, int]
    disk: int | None


@dataclass(frozen=True)
class Task:
    """The figures of a model, and of another beside it, on the same data.

    Args:
        task: ``"similarity"``, ``"regression"``, ``"classification"`` or ``"perplexity"``.
        source: Where the data comes from.
        examples: How many pairs, texts or tokens.
        figures: Of the model.
        against: Of the other one, None without one.
        settings: With which they were measured.
    """

    task: str
    source: str
    examples: int
    figures: dict[str, float | None]
    against: dict[str, float | None] | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """All that was measured of a model.

    Args:
        model: The model and its bytes.
        against: The same of the one that it is compared with, if there is one.
        fidelity: How closely it does what the other does, without labels.
        tasks: How well it does on labelled sets and running text.
        speed: Its time as a share of the other's.
        notes: What a reader of the figures should know.
    """

    model: Footprint
    against: Footprint | None = None
    fidelity: dict[str, Any] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    speed: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)
