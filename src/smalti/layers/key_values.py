"""The memory of a causal transformer that walks one position at a time."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValues:
    """What a transformer remembers of the positions it has seen, one step at a time.

    With a window only the latest positions are kept: the oldest is overwritten.

    Args:
        keys: ``(depth, batch, heads, room, width)``, empty.
        window: How many positions are kept; None for all.
        context: For each layer the keys and values of the context; empty without one.
    """

    def __init__(
        self, keys: Tensor, window: int | None, context: list[tuple[Tensor, Tensor]]
    ) -> None:
        self.keys, self.values = keys, torch.zeros_like(keys)
        self.window = window
        self.context = context
        self.position = 0

    def make_room(self) -> None:
        """Double the room where it is full and nothing may be forgotten."""
        if self.window is None and self.position == self.keys.shape[3]:
            self.keys = torch.cat([self.keys, torch.zeros_like(self.keys)], dim=3)
            self.values = torch.cat([self.values, torch.zeros_like(self.values)], dim=3)

    def put(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Remember this position's key and value; all that this position may look at.

        Args:
            layer: Which layer's.
            key: ``(batch, heads, 1, width)``.
            value: Likewise.
        """
        # Attention does not care about the order of what it sees, so a ring will do.
        slot = self.position if self.window is None else self.position % self.window
        self.keys[layer, :, :, slot] = key[:, :, 0]
        self.values[layer, :, :, slot] = value[:, :, 0]
        seen = min(self.position + 1, self.keys.shape[3])
        return self.keys[layer, :, :, :seen], self.values[layer, :, :, :seen]
