"""A plain parallel translator: a length is predicted, then all tokens are written at once.

Reference:
    Gu, Bradbury, Xiong, Li, Socher, "Non-Autoregressive Neural Machine Translation", ICLR 2018,
    arXiv:1711.02281, sections 3 and 4.

Differs from the paper:
    There are no fertilities: the length is predicted from the mean of the source's vectors, as
    what it differs from the source's, and source tokens are copied evenly over it. Several
    lengths, the likeliest ones, are what is rescored in the place of sampled fertilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.quantizers.settings import count
from smalti.translation.autoregressive import Autoregressive
from smalti.translation.base import Translator, translators
from smalti.translation.decoding import Decoding
from smalti.translation.encoding import Encoded
from smalti.translation.ids import PAD
from smalti.translation.rescoring import best_of
from smalti.translation.warm_start import start_from
from smalti.translation.writer import ParallelWriter, read_off


@translators.register("parallel")
class Parallel(Translator):
    """All tokens at once from copies of the source's, without latents.

    Args:
        vocabulary: How many tokens there are.
        dim: Width of the vectors.
        depth: Layers that read the source.
        decoder_depth: Layers that write the target.
        heads: Views that attention takes; must divide ``dim``.
        ratio: How many times wider the hidden dense layers are.
        most_difference: By how many tokens source and target differ in length at most.
        dropout: Share of each part's output that is dropped in training.
        label_smoothing: The share of a label that is spread over all tokens.
        tied: Whether source, target and output share one table.
        tables: Tables in the place of full ones, see ``WordTables``.

    Metrics of the loss: token_nats, length_nats.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "dim": 32,
        "depth": 1,
        "decoder_depth": 1,
        "heads": 2,
        "ratio": 2,
        "dropout": 0.0,
    }

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 256,
        depth: int = 3,
        decoder_depth: int = 3,
        heads: int = 4,
        ratio: int = 4,
        most_difference: int = 20,
        dropout: float = 0.1,
        label_smoothing: float = 0.1,
        tied: bool = True,
        tables: Mapping[str, nn.Module] | None = None,
    ) -> None:
        shape = (vocabulary, dim, depth, decoder_depth, heads, ratio)
        super().__init__(*shape, dropout, label_smoothing, tied, tables)
        self.most_difference = count("most_difference", most_difference, least=0)
        self.writer = ParallelWriter(dim, decoder_depth, heads, ratio, self.dropout, causal=False)
        self.length = nn.Linear(dim, 2 * most_difference + 1)

    def start_from_teacher(self, teacher: Autoregressive) -> None:
        """Take over the tables, the encoder and the decoder's layers of a trained model."""
        start_from(teacher, self.words, self.encoder, [self.writer.layers])

    def _loss(
        self, source: Tensor, target: Tensor, progress: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        del progress
        encoded = self.encoder(self.words, source)
        real = target != PAD
        lengths = real.sum(dim=1)
        differences = (lengths - encoded.mask.sum(dim=1)).clamp(
            -self.most_difference, self.most_difference
        )
        length_nats = functional.cross_entropy(
            self._differences(encoded).float(), differences + self.most_difference
        )
        x, mask = self._copied(source, encoded, lengths)
        hidden = self.writer(x, mask, encoded)
        smoothed, plain = self.words.loss(hidden[mask], target[real], self.label_smoothing)
        tokens = real.sum()
        return smoothed / tokens + length_nats, {
            "token_nats": plain / tokens,
            "length_nats": length_nats.detach(),
        }

    def _translate(
        self, source: Tensor, options: Decoding, rescore_with: Translator | None
    ) -> list[list[int]]:
        encoded = self.encoder.lean(self.words, source, half=options.half)
        tried = min(options.lengths, 2 * self.most_difference + 1)
        likeliest = self._differences(encoded).topk(tried, dim=1).indices - self.most_difference
        here = encoded.mask.sum(dim=1, keepdim=True)
        limits = torch.tensor([[options.longest(n)] for n in encoded.lengths()])
        lengths = torch.minimum((here + likeliest).clamp(min=1), limits.to(here.device)).flatten()
        encoded = encoded.repeated(tried) if tried > 1 else encoded
        x, mask = self._copied(source.repeat_interleave(tried, dim=0), encoded, lengths)
        hidden = self.writer.lean(x, mask, encoded, half=options.half)
        found = read_off(self.words, hidden, lengths.tolist(), half=options.half)
        if tried == 1:
            return found
        return best_of(rescore_with, source, found, options.length_penalty)

    def _differences(self, encoded: Encoded) -> Tensor:
        """Logits of target lengths minus source lengths."""
        real = encoded.mask[:, :, None]
        mean = (encoded.vectors * real).sum(dim=1) / real.sum(dim=1)
        logits: Tensor = self.length(mean)
        return logits

    def _copied(self, source: Tensor, encoded: Encoded, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of source tokens copied evenly over targets of these lengths, and a mask."""
        places = torch.arange(int(lengths.max()), device=source.device)
        here = encoded.mask.sum(dim=1, keepdim=True)
        # The middle of a target's place, as a place in the source.
        copied = ((2 * places + 1) * here // (2 * lengths[:, None])).minimum(here - 1)
        return self.words.read("source", source.gather(1, copied)), places < lengths[:, None]
