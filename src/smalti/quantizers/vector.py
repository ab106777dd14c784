"""Vector quantization: each vector becomes the nearest of K learned codewords.

Reference:
    van den Oord, Vinyals, Kavukcuoglu, "Neural Discrete Representation Learning",
    NeurIPS 2017, arXiv:1711.00937, section 3.2 and appendix A.1. Roy, Vaswani, Neelakantan,
    Parmar, "Theory and Experiments on Vector Quantized Autoencoders", arXiv:1805.11063,
    section 2 (the same read as hard expectation-maximisation).

Differs from the paper:
    Both loss terms are means, not sums, over a vector's coordinates, so one ``beta`` serves
    every ``dim``. Codewords start on data, lazily (``smalti.quantizers.learning``), and dead
    ones are revived.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from smalti.quantizers.base import Quantized, quantizers
from smalti.quantizers.choices import choose
from smalti.quantizers.gradients import GRADIENTS, Gradient
from smalti.quantizers.learning import LEARNING, Learning, MovingAverage
from smalti.quantizers.nearest import nearest
from smalti.quantizers.revival import DEAD, Dead
from smalti.quantizers.scatter import count_by_code, sum_by_code
from smalti.quantizers.settings import number
from smalti.quantizers.stacked import StackedQuantizer, mean_square, usage_metrics
from smalti.quantizers.starts import STARTS, Start


@quantizers.register("vector")
class VectorQuantizer(StackedQuantizer):
    """One codebook; a vector's code is its nearest codeword.

    Args:
        dim: Width of the vectors, in and out.
        codebook_size: Number of codewords, K in the paper.
        learning: ``"ema"``, ``"gradient"``, or one of ``smalti.quantizers.learning``.
        decay: Of the moving averages when ``learning`` is the word ``"ema"``.
        beta: How strongly an encoder is held to the codewords it chose.
        start: ``"data"``, ``"kmeans++"``, ``"random"``, or one of ``smalti.quantizers.starts``.
        dead: ``"revive"``, ``"keep"``, or one of ``smalti.quantizers.revival``.
        gradient: ``"straight-through"``, ``"rotation"``, or one of ``smalti.quantizers.gradients``.
        parts: Equal codebooks side by side, see ``StackedQuantizer``.

    Metrics: distortion, perplexity, batch_used_share, revived.

    Example:
        >>> import torch
        >>> layer = VectorQuantizer(dim=64, codebook_size=512)
        >>> layer(torch.randn(8, 16, 16, 64)).codes.shape
        torch.Size([8, 16, 16, 1])
    """

    def __init__(
        self,
        dim: int,
        codebook_size: int,
        *,
        learning: str | dict[str, Any] | Learning = "ema",
        decay: float = 0.99,
        beta: float = 0.25,
        start: str | dict[str, Any] | Start = "data",
        dead: str | dict[str, Any] | Dead = "revive",
        gradient: str | dict[str, Any] | Gradient = "straight-through",
        parts: int = 1,
    ) -> None:
        super().__init__(dim, codebook_size, parts)
        self.beta = number("beta", beta, least=0)
        decay = number("decay", decay, least=0, below=1)
        self.learning: Learning = (
            MovingAverage(decay) if learning == "ema" else choose("learning", learning, LEARNING)
        )
        self.decay = self.learning.decay
        self.start: Start = choose("start", start, STARTS)
        self.dead: Dead = choose("dead", dead, DEAD)
        self.gradient: Gradient = choose("gradient", gradient, GRADIENTS)
        self.book = self._new_book(self.learning, self.start, self.dead)

    def choose(self, x: Tensor) -> Tensor:
        """The nearest codewords' codes."""
        return nearest(x, self.book.codewords)

    def quantize(self, x: Tensor, mask: Tensor | None) -> Quantized:
        """Quantize a checked stack; see ``StackedQuantizer``."""
        if self.training:
            self.begin(x, mask)
        codes = self.choose(x)
        chosen = self.look_up(codes)
        commitment = mean_square(x - chosen.detach(), mask)
        loss = self.beta * commitment
        if not isinstance(self.learning, MovingAverage):
            loss = loss + mean_square(x.detach() - chosen, mask)
        vectors = self.gradient(x, chosen)
        distortion = commitment.detach().mean()

        if self.training and isinstance(self.learning, MovingAverage):
            counts, sums = sum_by_code(x.detach(), codes, self.codebook_size, mask)
        else:
            counts, sums = count_by_code(codes, self.codebook_size, mask), None
        metrics = {"distortion": distortion, **usage_metrics(counts)}
        if self.training:
            # After the look-up: vectors and loss belong to the old codewords.
            metrics["revived"] = self.book.learn(x, mask, counts, sums)
        return Quantized(vectors, codes, loss, metrics)
