"""Compositional codes: a small autoencoder with Gumbel noise learns to add up codewords.

Reference:
    Shu, Nakayama, "Compressing Word Embeddings via Deep Compositional Code Learning", ICLR
    2018, arXiv:1711.01068, section 4.

Differs from the paper:
    Batches are larger and the learning rate higher (512 and 3e-3 instead of 64 and 1e-4), with
    a linear fall to zero, so that minutes are enough. Rows are learned less their mean (which
    the first codebook takes up) and in units of their spread, so that the settings suit any
    table, and may be weighted by their counts. When codes are found, the best codewords for
    them are computed in closed form (``refit``); the paper keeps the decoder's. Codes are the
    most likely ones, without noise.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.embeddings.base import BLOCK_ROWS, CompressedEmbedding, compressors
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.coding import CodeMethod
from smalti.embeddings.least_squares import refit
from smalti.embeddings.weighting import row_weights
from smalti.quantizers.settings import count, flag, number

# Against the logarithm of zero, as published.
TINY = 1e-8


@compressors.register("compositional")
class Compositional(CodeMethod):
    """Rows as sums of codewords, codes learned by a Gumbel-softmax autoencoder.

    Args:
        num_codebooks: Codewords added up for a row, M in the paper.
        codebook_size: Codewords of each codebook, K.
        steps: How many batches are learned from.
        batch: Rows of a batch.
        learning_rate: The highest, of Adam.
        temperature: Of the Gumbel softmax.
        refit: Whether codewords are computed anew when codes are found.
        power: How much token counts matter: 0 not at all, 1 fully.
        precision: What codebooks are saved as, ``"float16"`` or ``"float32"``.
    """

    example: ClassVar[dict[str, Any]] = {"num_codebooks": 6, "codebook_size": 8, "steps": 100}

    def __init__(
        self,
        num_codebooks: int = 32,
        codebook_size: int = 16,
        steps: int = 3000,
        batch: int = 512,
        learning_rate: float = 3e-3,
        temperature: float = 1.0,
        refit: bool = True,
        power: float = 0.5,
        precision: str = "float16",
    ) -> None:
        super().__init__(num_codebooks, codebook_size, power, precision)
        self.steps = count("steps", steps)
        self.batch = count("batch", batch)
        self.learning_rate = number("learning_rate", learning_rate, above=0)
        self.temperature = number("temperature", temperature, above=0)
        self.refit = flag("refit", refit)

    def _fit(
        self,
        table: Tensor,
        counts: Tensor | None,
        special: list[int],
        generator: torch.Generator,
    ) -> CompressedEmbedding:
        del special
        weights = row_weights(counts, len(table), self.power)
        mean = (weights[:, None] * table).mean(dim=0)
        spread = (table - mean).square().mean().sqrt().clamp(min=1e-12)
        codes, codebooks = self._learn((table - mean) / spread, weights, generator)
        codebooks = codebooks * spread
        codebooks[0] += mean
        if self.refit:
            codebooks = refit(table, codes, weights, codebooks)
        return CodedTable.holding(codes, codebooks.unsqueeze(0), precision=self.precision)

    def outline(self, rows: int, dim: int) -> CodedTable:
        """Sums of whole-row codewords."""
        return CodedTable(
            rows, dim, 1, self.num_codebooks, self.codebook_size, precision=self.precision
        )

    def _learn(
        self, table: Tensor, weights: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Codes ``(rows, num_codebooks)`` and codebooks ``(num_codebooks, size, dim)``."""
        rows, dim = table.shape
        places = self.num_codebooks * self.codebook_size
        encoder = nn.Sequential(
            nn.utils.skip_init(nn.Linear, dim, max(1, places // 2)),
            nn.Tanh(),
            nn.utils.skip_init(nn.Linear, max(1, places // 2), places),
        )
        codewords = nn.Parameter(torch.empty(places, dim))
        parameters = [*encoder.parameters(), codewords]
        for parameter in parameters:
            bound = 1 / max(parameter.shape[-1], 1) ** 0.5
            parameter.uniform_(-bound, bound, generator=generator)
        optimizer = torch.optim.Adam(parameters, lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / self.steps)
        with torch.enable_grad():
            for _ in range(self.steps):
                some = torch.randint(rows, (min(self.batch, rows),), generator=generator)
                logits = self._logits(encoder, table[some])
                noise = torch.empty_like(logits).exponential_(generator=generator).log()
                shares = functional.softmax((logits - noise) / self.temperature, dim=-1)
                error = table[some] - shares.flatten(1) @ codewords
                loss = 0.5 * (weights[some] * error.square().sum(dim=1)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        blocks = [self._logits(encoder, block).argmax(-1) for block in table.split(BLOCK_ROWS)]
        books = codewords.detach().view(self.num_codebooks, self.codebook_size, dim)
        return torch.cat(blocks), books

    def _logits(self, encoder: nn.Module, x: Tensor) -> Tensor:
        """Scores ``(n, num_codebooks, codebook_size)`` of the codes."""
        scores: Tensor = (functional.softplus(encoder(x)) + TINY).log()
        return scores.view(len(x), self.num_codebooks, self.codebook_size)
