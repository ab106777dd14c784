"""A translator that writes one token after the other: the teacher, and what others are held to.

Reference:
    Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, "Attention Is All
    You Need", NeurIPS 2017, arXiv:1706.03762.

Differs from the paper:
    Norms stand before the parts of a layer, and hidden units are GELU. A finished hypothesis is
    judged by its log-probability over a power of its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.layers.attention import CausalTransformer
from smalti.layers.dropout import Dropout
from smalti.layers.positions import Sinusoids
from smalti.translation.base import Translator, translators
from smalti.translation.beam import beam_search
from smalti.translation.decoding import Decoding
from smalti.translation.encoding import Encoded
from smalti.translation.greedy import greedy_search
from smalti.translation.ids import BEGIN, PAD
from smalti.translation.walks import CachedWalk, RepeatedWalk, Walk

# So many tokens are scored at a time.
SCORED = 1024


@translators.register("autoregressive")
class Autoregressive(Translator):
    """Each token given the source and all tokens before it; greedy or beam search.

    Args:
        vocabulary: How many tokens there are.
        dim: Width of the vectors.
        depth: Layers that read the source.
        decoder_depth: Layers that write the target.
        heads: Views that attention takes; must divide ``dim``.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
        label_smoothing: The share of a label that is spread over all tokens.
        tied: Whether source, target and output share one table.
        tables: Tables in the place of full ones: ``{"shared": table}``, or where not tied
            ``"source"``, ``"target"`` and ``"output"``.

    Metrics of the loss: token_nats, the plain cross-entropy.

    Example:
        >>> model = Autoregressive(vocabulary=100, dim=32, depth=1, decoder_depth=1)
        >>> source = torch.tensor([[7, 9, 4, 1], [8, 1, 0, 0]])
        >>> model.score(source, target=torch.tensor([[5, 1], [6, 1]])).shape
        torch.Size([2])
    """

    example: ClassVar[Mapping[str, Any]] = {
        "dim": 32,
        "depth": 1,
        "decoder_depth": 2,
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
        dropout: float = 0.1,
        label_smoothing: float = 0.1,
        tied: bool = True,
        tables: Mapping[str, nn.Module] | None = None,
    ) -> None:
        shape = (vocabulary, dim, depth, decoder_depth, heads, ratio)
        super().__init__(*shape, dropout, label_smoothing, tied, tables)
        self.positions = Sinusoids(dim)
        self.drop = Dropout(self.dropout)
        self.decoder = CausalTransformer(
            dim, decoder_depth, heads, ratio=ratio, dropout=self.dropout, context_dim=dim
        )

    def decode(self, encoded: Encoded, before: Tensor) -> Tensor:
        """Hidden vectors ``(batch, length, dim)`` of what comes after each of some tokens.

        Args:
            encoded: The sources.
            before: ``(batch, length)``, BEGIN and the tokens so far. Padding comes last, where
                no token sees it.
        """
        x = self.words.read("target", before) + self.positions(before.shape[1])
        hidden: Tensor = self.decoder(
            self.drop(x), encoded.vectors, context_mask=encoded.needed_mask()
        )
        return hidden

    def score(self, source: Tensor, target: Tensor) -> Tensor:
        """The log-probability ``(batch,)`` of each target, its end included."""
        self._check(source, target)
        with torch.inference_mode():
            encoded = self.encoder.lean(self.words, source, half=False)
            before = shifted(target)
            x = self.words.read("target", before) + self.positions(before.shape[1])
            decoder = self.decoder.lean()
            hidden = decoder.whole(x, encoded.vectors, context_mask=encoded.mask)
            real = target != PAD
            logits = self.words.lean_logits()
            # A few rows at a time: all logits of many sentences would not fit into memory.
            parts = zip(hidden[real].split(SCORED), target[real].split(SCORED), strict=True)
            nats = [
                functional.cross_entropy(logits(rows), labels, reduction="none")
                for rows, labels in parts
            ]
            found = torch.zeros(target.shape, device=target.device)
            found[real] = torch.cat(nats)
            scores = -found.sum(dim=1)
        # Outside of inference mode a copy is an ordinary tensor.
        return scores.clone()

    def _loss(
        self, source: Tensor, target: Tensor, progress: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        del progress
        hidden = self.decode(self.encoder(self.words, source), shifted(target))
        real = target != PAD
        labels = target[real]
        smoothed, plain = self.words.loss(hidden[real], labels, self.label_smoothing)
        return smoothed / len(labels), {"token_nats": plain / len(labels)}

    def _translate(
        self, source: Tensor, options: Decoding, rescore_with: Translator | None
    ) -> list[list[int]]:
        del rescore_with
        encoded = self.encoder.lean(self.words, source, half=options.half)
        limits = [options.longest(length) for length in encoded.lengths()]
        walk: Walk
        if options.cached:
            walk = CachedWalk(self, encoded, options.beam, max(limits))
        else:
            walk = RepeatedWalk(self, encoded, options.beam)
        if options.beam == 1:
            return greedy_search(walk, limits)
        return beam_search(walk, limits, options.beam, options.length_penalty)


def shifted(target: Tensor) -> Tensor:
    """Targets ``(batch, length)`` one place later: what is known when each token is written."""
    begin = target.new_full((len(target), 1), BEGIN)
    return torch.cat([begin, target[:, :-1]], dim=1)
