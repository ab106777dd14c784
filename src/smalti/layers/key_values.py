"""The memory of a causal transformer that walks one position at a time."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValues:
    """What a transformer remembers of the positions it has seen, one step at a time.

    With a window only the latest positions are kept: the oldest is overwritten.

    Args:
        memory: ``(layers, batch, 2, heads, room, width)``, empty: keys and values.
        window: How many positions are kept; None for all.
        context: For each layer the keys and values of the context; empty without one. The
            context may have fewer rows than the batch: rows that follow each other then share
            one, as the hypotheses of a beam do.
        context_bias: Hides what is not there in the context; see ``attending.hiding``.
    """

    def __init__(
        self,
        memory: Tensor,
        window: int | None,
        context: list[tuple[Tensor, Tensor]],
        context_bias: Tensor | None = None,
    ) -> None:
        self.window = window
        self.context, self.context_bias = context, context_bias
        self.position = 0
        self._take(memory)

    @property
    def batch(self) -> int:
        """How many sequences are walked at the same time."""
        return self.memory.shape[1]

    @property
    def room(self) -> int:
        """For how many positions there is memory."""
        return self.memory.shape[4]

    def make_room(self) -> None:
        """Double the room where it is full and nothing may be forgotten."""
        if self.window is None and self.position == self.room:
            self._take(torch.cat([self.memory, torch.zeros_like(self.memory)], dim=4))

    def put(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Remember this position's key and value; all that this position may look at.

        Args:
            layer: Which layer's.
            key: ``(batch, heads, 1, width)``.
            value: Likewise.
        """
        return self.put_both(layer, torch.stack([key[:, :, 0], value[:, :, 0]], dim=1))

    def put_both(self, layer: int, pair: Tensor) -> tuple[Tensor, Tensor]:
        """``put`` of key and value ``(batch, 2, heads, width)``, one after the other."""
        # Attention does not care about the order of what it sees, so a ring will do.
        slot = self.position if self.window is None else self.position % self.window
        self.slots[layer].select(3, slot).copy_(pair)
        if self.position + 1 >= self.room:
            return self.keys[layer], self.values[layer]
        seen = self.position + 1
        return self.keys[layer].narrow(2, 0, seen), self.values[layer].narrow(2, 0, seen)

    def follow(self, rows: Tensor) -> None:
        """Go on with other rows, each of which may be taken any number of times.

        Args:
            rows: As many as there are; each shares the context of those in whose place it is.
        """
        seen = self.memory.narrow(4, 0, min(self.position, self.room))
        seen.copy_(seen.index_select(1, rows))

    def keep(self, rows: Tensor, contexts: Tensor) -> None:
        """Go on with fewer rows, and with fewer contexts.

        Args:
            rows: Which rows stay.
            contexts: Which contexts stay.
        """
        self._take(self.memory.index_select(1, rows))
        self.context = [
            (key.index_select(0, contexts), value.index_select(0, contexts))
            for key, value in self.context
        ]
        # A bias that is the same for all has one row.
        if self.context_bias is not None and self.context_bias.shape[0] > 1:
            self.context_bias = self.context_bias.index_select(0, contexts)

    def _take(self, memory: Tensor) -> None:
        self.memory = memory
        self.slots = memory.unbind()
        self.keys = [slots[:, 0] for slots in self.slots]
        self.values = [slots[:, 1] for slots in self.slots]
