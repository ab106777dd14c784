"""Rows in random order, a batch at a time; and in their order, for everything but training."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from smalti.progress import progress_bar

# Images that are worked on together where nothing is learned.
BLOCK = 128


def shuffled(rows: int, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """The numbers of the rows of each batch of an epoch.

    Batches have the same size; what is left over waits for the next epoch. Only where there
    are fewer rows than a batch has, all of them are one.
    """
    order = torch.randperm(rows, generator=generator)
    size = min(rows, batch_size)
    batches: tuple[Tensor, ...] = order[: rows // size * size].split(size)
    return batches


def blocks(rows: Tensor, what: str, unit: str = "images") -> Iterator[Tensor]:
    """Rows in their order, some at a time, with a bar of progress."""
    with progress_bar(what, unit, total=len(rows)) as advance:
        for block in rows.split(BLOCK):
            yield block
            advance(len(block))
