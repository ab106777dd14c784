"""Codes as tiles of glass: the picture at the head of a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from smalti.analysis import CodeGroup
from smalti.analysis.figures import encoded

COLUMNS, ROWS = 96, 10
GLASS = (
    (13, 148, 136),
    (240, 165, 48),
    (60, 95, 196),
    (194, 65, 107),
    (95, 141, 46),
    (20, 60, 62),
    (232, 220, 196),
    (64, 175, 190),
)


def mosaic(groups: Sequence[CodeGroup]) -> str | None:
    """A PNG file in base64: a column is a coded vector, a tile one of its codes."""
    if not groups:
        return None
    largest = max(groups, key=lambda group: group.codes.shape[-1])
    codes = largest.codes.reshape(len(largest.codes), -1)[:, :ROWS].long()
    chosen = codes[torch.linspace(0, len(codes) - 1, COLUMNS).long()].T
    tiles = np.array(GLASS, np.uint8)[(chosen % len(GLASS)).numpy()]
    return encoded(np.ascontiguousarray(tiles))
