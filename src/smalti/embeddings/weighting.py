"""How much a row counts in a fit: something between every row alike and every use alike."""

from __future__ import annotations

import torch
from torch import Tensor

# A row that was never seen still counts a little: the text is a sample, not the world.
UNSEEN = 0.5


def row_weights(counts: Tensor | None, rows: int, power: float = 0.5) -> Tensor:
    """Weights ``(rows,)`` float32 with mean 1.

    Args:
        counts: How often each row is used, or None when nothing is known.
        rows: How many rows.
        power: 0 weights rows alike, 1 by their use. In between the commonest rows, which
            have the most say, do not have all of it.

    Example:
        >>> row_weights(torch.tensor([3.5, 0.0]), 2, power=1.0)
        tensor([1.7778, 0.2222])
    """
    if counts is None:
        return torch.ones(rows)
    weights = (counts.double() + UNSEEN) ** power
    return (weights / weights.mean()).float()
