"""Networks that read word vectors in order, and the layer that gives words their chances."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from smalti.layers.attention import CausalTransformer
from smalti.layers.positions import Sinusoids
from smalti.layers.transformer import Transformer

# What a network remembers of the words before; nothing, where it sees its window alone.
State = tuple[Tensor, Tensor] | None


class Recurrent(nn.Module):
    """An LSTM, which carries its state from window to window.

    Args:
        dim: Width of the word vectors.
        hidden: Width of the layers.
        depth: How many layers.
        dropout: Share of numbers that are dropped between layers.
    """

    def __init__(self, dim: int, hidden: int, depth: int, dropout: float) -> None:
        super().__init__()
        between = dropout if depth > 1 else 0.0
        self.lstm = nn.LSTM(dim, hidden, depth, batch_first=True, dropout=between)

    def forward(self, x: Tensor, state: State = None) -> tuple[Tensor, State]:
        """Hidden vectors ``(rows, window, hidden)``, and the state after the window."""
        hidden, (short, long) = self.lstm(x, state)
        return hidden, (short.detach(), long.detach())


class Attending(nn.Module):
    """A transformer, which sees the words of its window.

    Args:
        dim: Width of the word vectors.
        hidden: Width of the layers, which word vectors are projected to.
        depth: How many layers.
        heads: Views that attention takes.
        dropout: Share of numbers that are dropped.
        causal: Whether no word sees a later one.
    """

    def __init__(
        self, dim: int, hidden: int, depth: int, heads: int, dropout: float, causal: bool
    ) -> None:
        super().__init__()
        self.inward = nn.Linear(dim, hidden)
        self.positions = Sinusoids(hidden)
        kind = CausalTransformer if causal else Transformer
        self.layers = kind(hidden, depth, heads, dropout=dropout)

    def forward(self, x: Tensor, state: State = None) -> tuple[Tensor, State]:
        """Hidden vectors ``(rows, window, hidden)``; there is no state."""
        del state
        placed = self.inward(x) + self.positions(x.shape[1])
        return self.layers(placed), None


class WordChances(nn.AdaptiveLogSoftmaxWithLoss):
    """An output layer with a probability for every word, at less cost for rare ones.

    It is full, whatever the input table is: only the latter is coded, as in the paper on
    differentiable product quantization.

    Args:
        hidden: Width of the hidden vectors.
        words: How many words there are; their numbers must fall with frequency.
    """

    def __init__(self, hidden: int, words: int) -> None:
        cutoffs = [max(1, words // 20), max(2, 3 * words // 10)]
        super().__init__(hidden, words, cutoffs, div_value=2.0)

    def forward(self, hidden: Tensor, targets: Tensor) -> Any:
        """Log-probabilities of the targets, and minus their mean, in float32."""
        # torch's own layer can't collect what autocast computes in half of the bits.
        with torch.autocast(hidden.device.type, enabled=False):
            return super().forward(hidden.float(), targets)
