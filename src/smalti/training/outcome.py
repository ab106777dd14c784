"""How a training run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrainingOutcome:
    """How far a run came.

    Args:
        finished: Whether it came to its end; False when a signal stopped it.
        step: How many optimizer steps were made, those of earlier sittings included.
        epoch: The epoch it stands in, from 0 on; after the last, how many there were.
        metrics: The means that the last line of training reported.
        evaluation: The figures of the last evaluation.
        seconds: The time in steps, of all sittings.
        checkpoint: The latest checkpoint.
    """

    finished: bool
    step: int
    epoch: int
    metrics: Mapping[str, float]
    evaluation: Mapping[str, float]
    seconds: float
    checkpoint: Path | None
