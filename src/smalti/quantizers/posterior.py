"""Codes drawn from a softmax over distances, without a vectors x codewords matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.quantizers.nearest import BLOCK_SCORES


def sample_codes(
    x: Tensor, codebook: Tensor, log_prior: Tensor, temperature: Tensor, uniforms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw codes from p(code) ~ prior * exp(-squared distance / temperature).

    Args:
        x: ``(parts, n, dim)``.
        codebook: ``(parts, size, dim)``.
        log_prior: ``(parts, size)``.
        temperature: A scalar above 0.
        uniforms: ``(parts, n, samples)`` in [0, 1): the randomness, so that this is a function.

    Returns:
        The drawn codes ``(parts, n, samples)``, the most probable ones ``(parts, n)`` and the
        entropy of each posterior in nats ``(parts, n)``.
    """
    arguments = (x.detach(), codebook.detach(), log_prior.detach(), temperature.detach(), uniforms)
    if torch.compiler.is_compiling():
        drawn: tuple[Tensor, Tensor, Tensor] = torch.ops.smalti.sample_codes(*arguments)
        return drawn
    return _sample(*arguments)


def _sample(
    x: Tensor, codebook: Tensor, log_prior: Tensor, temperature: Tensor, uniforms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    parts, n, _ = x.shape
    size = codebook.shape[1]
    centre = codebook.mean(dim=1, keepdim=True)
    x, codebook = x - centre, codebook - centre
    columns = codebook.transpose(1, 2) * (2 / temperature)
    offsets = (log_prior - codebook.square().sum(-1) / temperature).unsqueeze(1)
    drawn = torch.empty(uniforms.shape, dtype=torch.int64, device=x.device)
    likeliest = drawn.new_empty(parts, n)
    entropy = x.new_empty(parts, n)
    rows = max(1, BLOCK_SCORES // size)
    for part in range(parts):
        for start in range(0, n, rows):
            some = (part, slice(start, start + rows))
            logits = torch.addmm(offsets[part], x[some], columns[part])
            top, likeliest[some] = logits.max(dim=1)
            logits.sub_(top.unsqueeze(1))
            weights = logits.exp()
            total = weights.sum(dim=1, keepdim=True)
            # H = log Z - E[logit], with logits shifted so that the largest is zero;
            # a weight of zero takes no part, also where its logit is minus infinity.
            expected = (weights * logits.clamp_(min=-1e4)).sum(dim=1, keepdim=True) / total
            entropy[some] = (total.log() - expected).squeeze(1)
            sums = weights.cumsum(dim=1)
            target = uniforms[some] * sums[:, -1:]
            codes = torch.searchsorted(sums, target, right=True)
            drawn[some] = codes.clamp_(max=size - 1)
    return drawn, likeliest, entropy


@torch.library.custom_op("smalti::sample_codes", mutates_args=())
def _operator(
    x: Tensor, codebook: Tensor, log_prior: Tensor, temperature: Tensor, uniforms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return _sample(x, codebook, log_prior, temperature, uniforms)


@_operator.register_fake
def _(
    x: Tensor, codebook: Tensor, log_prior: Tensor, temperature: Tensor, uniforms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    del codebook, log_prior, temperature
    codes = uniforms.new_empty(uniforms.shape, dtype=torch.int64)
    return codes, codes.new_empty(codes.shape[:2]), x.new_empty(x.shape[:2])
