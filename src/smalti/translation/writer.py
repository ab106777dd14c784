"""Who writes all tokens of a translation at the same time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smalti.layers.attention import CausalTransformer
from smalti.layers.dropout import Dropout
from smalti.layers.largest import largest
from smalti.layers.positions import Sinusoids
from smalti.layers.transformer import Transformer
from smalti.translation.encoding import Encoded
from smalti.translation.ids import EOS
from smalti.translation.tables import WordTables


class ParallelWriter(nn.Module):
    """Layers that see the source and each other, or each other's earlier positions alone.

    Args:
        dim: Width of the vectors.
        depth: How many layers.
        heads: How many views attention takes.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
        causal: Whether no position sees a later one.
    """

    def __init__(
        self, dim: int, depth: int, heads: int, ratio: int, dropout: float, causal: bool
    ) -> None:
        super().__init__()
        self.positions = Sinusoids(dim)
        self.drop = Dropout(dropout)
        kind = CausalTransformer if causal else Transformer
        self.layers = kind(dim, depth, heads, ratio=ratio, dropout=dropout, context_dim=dim)

    def forward(self, x: Tensor, mask: Tensor | None, encoded: Encoded) -> Tensor:
        """Hidden vectors of all tokens.

        Args:
            x: What is known of each, ``(batch, length, dim)``.
            mask: ``(batch, length)``, False where there is padding, which comes last.
            encoded: The sources.
        """
        x = self.drop(x + self.positions(x.shape[1]))
        # Where no token sees a later one, none sees the padding.
        mask = None if self.layers.causal else mask
        hidden: Tensor = self.layers(
            x, encoded.vectors, mask=mask, context_mask=encoded.needed_mask()
        )
        return hidden

    def lean(self, x: Tensor, mask: Tensor | None, encoded: Encoded, *, half: bool) -> Tensor:
        """``forward`` for inference, rounded to bfloat16 on request."""
        return self.layers.lean(half=half).whole(
            x + self.positions(x.shape[1]),
            encoded.vectors,
            mask=mask,
            context_mask=encoded.needed_mask(),
        )


def partly_known(x: Tensor, known: Tensor, share: float) -> Tensor:
    """Vectors of which a random share is replaced by what is known.

    Args:
        x: ``(batch, length, dim)``.
        known: Likewise.
        share: Which share.
    """
    shows = torch.rand(x.shape[:2], device=x.device) < share
    return torch.where(shows[:, :, None], known.to(x.dtype), x)


def read_off(
    words: WordTables, hidden: Tensor, lengths: list[int], *, half: bool
) -> list[list[int]]:
    """The likeliest tokens of each row up to its end.

    Args:
        words: Where tokens have their vectors.
        hidden: ``(batch, length, dim)``.
        lengths: How many tokens each row has at most.
        half: Whether products are rounded to bfloat16; of equal ones the first is taken.
    """
    batch, length, dim = hidden.shape
    best = largest(words.lean_logits(half=half)(hidden.reshape(-1, dim)))
    rows = best.view(batch, length).tolist()
    cut = [row[:length] for row, length in zip(rows, lengths, strict=True)]
    return [row[: row.index(EOS)] if EOS in row else row for row in cut]
