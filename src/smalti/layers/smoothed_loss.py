"""Cross-entropy with smoothed labels over a large vocabulary, in one pass and little memory.

Reference:
    Szegedy, Vanhoucke, Ioffe, Shlens, Wojna, "Rethinking the Inception Architecture for Computer
    Vision", CVPR 2016, arXiv:1512.00567, section 7.

Differs from the paper:
    Smoothed labels are never written out: what they add is the mean of a row's logits. Where
    logits are products with a table, they are made and used up block by block, and the
    gradients are found on the way forward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smalti.layers.applying import applied

# Logits of so many rows at a time stay in a processor's cache with a few thousand words.
BLOCK_ROWS = 256


def smoothed_loss(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The sum over rows of the smoothed cross-entropy, and of the plain one, in nats.

    Args:
        logits: ``(n, words)``.
        labels: ``(n,)``.
        smoothing: The share of a label that is spread over all words.
    """
    logits = logits.float()
    normaliser = logits.logsumexp(dim=-1)
    plain = normaliser - logits.gather(1, labels[:, None])[:, 0]
    even = normaliser - logits.mean(dim=-1)
    return ((1 - smoothing) * plain + smoothing * even).sum(), plain.detach().sum()


def smoothed_loss_of_products(
    hidden: Tensor, table: Tensor, labels: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """``smoothed_loss`` of the logits ``hidden @ table.T``, which are never held as a whole.

    Args:
        hidden: ``(n, dim)``.
        table: ``(words, dim)``.
        labels: ``(n,)``.
        smoothing: The share of a label that is spread over all words.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    with torch.autocast(device, enabled=False):
        smoothed, plain = applied(_Products, hidden, table, labels, smoothing, dtype)
    return smoothed, plain


class _Products(torch.autograd.Function):
    """Both losses; the gradients of the first are ready when backward asks for them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        table: Tensor,
        labels: Tensor,
        smoothing: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        small_hidden, small_table = hidden.to(dtype), table.to(dtype)
        learns_hidden, learns_table = ctx.needs_input_grad[:2]
        to_hidden = torch.empty_like(small_hidden) if learns_hidden else None
        to_table = torch.zeros_like(table, dtype=torch.float32) if learns_table else None
        smoothed = hidden.new_zeros((), dtype=torch.float32)
        plain = torch.zeros_like(smoothed)
        words = len(table)
        for start in range(0, len(hidden), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            logits = (small_hidden[rows] @ small_table.T).float()
            even = logits.mean(dim=1)
            normaliser = logits.logsumexp(dim=1)
            chosen = labels[rows, None]
            own = normaliser - logits.gather(1, chosen)[:, 0]
            plain += own.sum()
            smoothed += ((1 - smoothing) * own + smoothing * (normaliser - even)).sum()
            if to_hidden is None and to_table is None:
                continue
            # What is left of the logits is the gradient: probabilities minus labels.
            logits.sub_(normaliser[:, None]).exp_().sub_(smoothing / words)
            logits.scatter_add_(1, chosen, logits.new_full(chosen.shape, smoothing - 1))
            gradient = logits.to(dtype)
            if to_hidden is not None:
                to_hidden[rows] = gradient @ small_table
            if to_table is not None:
                to_table += gradient.T @ small_hidden[rows]
        ctx.save_for_backward(
            None if to_hidden is None else to_hidden.to(hidden.dtype),
            None if to_table is None else to_table.to(table.dtype),
        )
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        scaled = [None if saved is None else saved * gradients[0] for saved in ctx.saved_tensors]
        return scaled[0], scaled[1], None, None, None
