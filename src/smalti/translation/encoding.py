"""The source's side: ids become vectors that a decoder attends to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn

from smalti.layers.dropout import Dropout
from smalti.layers.positions import Sinusoids
from smalti.layers.transformer import Transformer
from smalti.translation.ids import PAD
from smalti.translation.tables import WordTables


@dataclass(frozen=True)
class Encoded:
    """Sources that were read.

    Args:
        vectors: ``(batch, length, dim)``.
        mask: ``(batch, length)`` bool, False where there is padding.
    """

    vectors: Tensor
    mask: Tensor

    def needed_mask(self) -> Tensor | None:
        """The mask, or None where nothing is padding: attention is faster without."""
        return self._needed_mask

    @cached_property
    def _needed_mask(self) -> Tensor | None:
        # All who attend to a source ask for it.
        return None if bool(self.mask.all()) else self.mask

    def repeated(self, times: int) -> Encoded:
        """Each source so many times in a row."""
        return Encoded(
            self.vectors.repeat_interleave(times, dim=0), self.mask.repeat_interleave(times, dim=0)
        )

    def chosen(self, rows: Tensor) -> Encoded:
        """Some of the sources."""
        return Encoded(self.vectors[rows], self.mask[rows])

    def lengths(self) -> list[int]:
        """How many tokens each source has."""
        found: list[int] = self.mask.sum(dim=1).tolist()
        return found


class SourceEncoder(nn.Module):
    """Layers that read a source as a whole; every token sees all others.

    Args:
        dim: Width of the vectors.
        depth: How many layers.
        heads: How many views attention takes.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
    """

    def __init__(self, dim: int, depth: int, heads: int, ratio: int, dropout: float) -> None:
        super().__init__()
        self.positions = Sinusoids(dim)
        self.dropout = Dropout(dropout)
        self.layers = Transformer(dim, depth, heads, ratio=ratio, dropout=dropout)

    def forward(self, words: WordTables, source: Tensor) -> Encoded:
        """Read sources ``(batch, length)`` with the tables of ``words``."""
        mask = source != PAD
        x = self._marked(words, source)
        return Encoded(self.layers(self.dropout(x), mask=None if mask.all() else mask), mask)

    def lean(self, words: WordTables, source: Tensor, *, half: bool) -> Encoded:
        """``forward`` for inference, rounded to bfloat16 on request."""
        mask = source != PAD
        x = self._marked(words, source)
        needed = None if bool(mask.all()) else mask
        return Encoded(self.layers.lean(half=half).whole(x, mask=needed), mask)

    def _marked(self, words: WordTables, source: Tensor) -> Tensor:
        positions: Tensor = self.positions(source.shape[1])
        return words.read("source", source) + positions
