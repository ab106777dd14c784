"""The memory of a causal transformer that walks one position at a time."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValues:
    """What a transformer remembers of the positions it has seen, one step at a time.

    With a window only the latest positions are kept: the oldest is overwritten.

    Args:
        keys: For each layer ``(batch, heads, room, width)``, empty.
        window: How many positions are kept; None for all.
        context: For each layer the keys and values of the context; empty without one.
    """

    def __init__(
        self, keys: list[Tensor], window: int | None, context: list[tuple[Tensor, Tensor]]
    ) -> None:
        self.keys, self.values = keys, [torch.zeros_like(key) for key in keys]
        self.window = window
        self.context = context
        self.position = 0

    @property
    def batch(self) -> int:
        """How many sequences are walked at the same time."""
        return self.keys[0].shape[0]

    @property
    def room(self) -> int:
        """For how many positions there is memory."""
        return self.keys[0].shape[2]

    def make_room(self) -> None:
        """Double the room where it is full and nothing may be forgotten."""
        if self.window is None and self.position == self.room:
            self.keys = [_doubled(key) for key in self.keys]
            self.values = [_doubled(value) for value in self.values]

    def put(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Remember this position's key and value; all that this position may look at.

        Args:
            layer: Which layer's.
            key: ``(batch, heads, 1, width)``.
            value: Likewise.
        """
        keys, values = self.keys[layer], self.values[layer]
        # Attention does not care about the order of what it sees, so a ring will do.
        slot = self.position if self.window is None else self.position % self.window
        keys.narrow(2, slot, 1).copy_(key)
        values.narrow(2, slot, 1).copy_(value)
        seen = min(self.position + 1, self.room)
        return keys.narrow(2, 0, seen), values.narrow(2, 0, seen)


def _doubled(x: Tensor) -> Tensor:
    return torch.cat([x, torch.zeros_like(x)], dim=2)
