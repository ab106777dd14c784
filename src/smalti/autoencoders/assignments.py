"""Soft labels for a prior: which codes a position's vector was shared among.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, section 3.2 (the latent predictor's labels).

Differs from the paper:
    Nothing; they are drawn as in evaluation, so that nothing learns from a draw twice.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.autoencoders.coded import CodedAutoencoder
from smalti.autoencoders.shared_codebook import SharedCodebook
from smalti.quantizers.base import Quantizer
from smalti.quantizers.soft_em import SoftEM


@torch.no_grad()
def assignments(autoencoder: CodedAutoencoder, pixels: Tensor) -> tuple[Tensor | None, ...]:
    """The share of each codeword in each position's vector, a level each, top first.

    Returns:
        ``(batch, height, width, num_codebooks, codebook_size)`` for a level whose quantizer
        samples (``soft_em``); None for others, whose codes say all.
    """
    vectors = autoencoder.vectors(pixels)
    levels = zip(autoencoder.levels(), vectors, strict=True)
    return tuple(_shares(quantizer, one) for quantizer, one in levels)


def _shares(quantizer: Quantizer, vectors: Tensor) -> Tensor | None:
    inner, slices = quantizer, 1
    if isinstance(quantizer, SharedCodebook):
        inner, slices = quantizer.inner, quantizer.slices
    if not isinstance(inner, SoftEM):
        return None
    learning = inner.training
    inner.eval()
    samples = inner.sample(vectors.unflatten(-1, (slices, inner.dim))).samples
    inner.train(learning)
    counts = vectors.new_zeros((*samples.shape[:-1], inner.codebook_size), dtype=torch.float32)
    counts.scatter_add_(-1, samples, torch.ones_like(samples, dtype=torch.float32))
    return counts / inner.samples
