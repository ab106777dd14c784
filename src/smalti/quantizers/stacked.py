"""Quantizers that can work on a stack of equal parts in one batched operation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from smalti.layers.applying import applied
from smalti.quantizers.base import Quantized, Quantizer
from smalti.quantizers.codebook import Codebook
from smalti.quantizers.learning import Learning
from smalti.quantizers.revival import Dead
from smalti.quantizers.settings import count
from smalti.quantizers.starts import Start


class StackedQuantizer(Quantizer):
    """One codebook, or ``parts`` equal ones side by side.

    With ``parts`` above 1 it is a building block of ``Product`` and ``Repeated``, which
    call ``quantize``, ``choose`` and ``look_up`` on stacks ``(parts, n, dim)`` themselves.
    """

    book: Codebook

    def __init__(self, dim: int, codebook_size: int, parts: int) -> None:
        super().__init__(dim=dim, code_sizes=(codebook_size,))
        self.codebook_size = self.code_sizes[0]
        self.parts = count("parts", parts)
        # Whether the loss is a mean over coordinates, so that padding thins it out.
        self.averages_coordinates = True

    def _new_book(self, learning: Learning, start: Start, dead: Dead) -> Codebook:
        return Codebook(
            self.parts, self.codebook_size, self.dim, learning=learning, start=start, dead=dead
        )

    @abstractmethod
    def quantize(self, x: Tensor, mask: Tensor | None) -> Quantized:
        """Quantize a checked stack.

        Args:
            x: ``(parts, n, dim)``, float32 and finite, zero where masked.
            mask: ``(n,)`` or None.

        Returns:
            vectors ``(parts, n, dim)``, codes ``(parts, n)``, losses ``(parts,)``.
        """

    @abstractmethod
    def choose(self, x: Tensor) -> Tensor:
        """The codes ``(parts, n)`` of a stack ``(parts, n, dim)``, without noise."""

    @property
    def codebook(self) -> Tensor:
        """The codewords ``(codebook_size, dim)``."""
        return self.book.codewords[0]

    def look_up(self, codes: Tensor) -> Tensor:
        """The codewords ``(parts, n, dim)`` of codes ``(parts, n)``."""
        return self.book.look_up(codes)

    def begin(self, x: Tensor, mask: Tensor | None, anew: bool = False) -> None:
        """Start from the stack ``x`` if starting from data is due, or ``anew``."""
        self.book.begin(x, mask, anew)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        flat = self.checked(x, mask).reshape(1, -1, self.dim)
        out = self.quantize(flat, None if mask is None else mask.reshape(-1))
        return Quantized(
            vectors=out.vectors.view(x.shape).to(x.dtype),
            codes=out.codes.view(*x.shape[:-1], 1),
            loss=out.loss.sum(),
            metrics=out.metrics,
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., 1)`` of vectors ``(..., dim)``."""
        flat = self.checked(x).reshape(1, -1, self.dim)
        return self.choose(flat).view(*x.shape[:-1], 1)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., 1)``."""
        flat = self.checked_codes(codes).reshape(1, -1)
        return self.look_up(flat).view(*codes.shape[:-1], self.dim)

    def _start(self, x: Tensor) -> None:
        self.begin(x.unsqueeze(0), None, anew=True)

    def extra_repr(self) -> str:
        """The settings; the codebook prints its own shape."""
        return f"dim={self.dim}, codebook_size={self.codebook_size}, parts={self.parts}"


def mean_square(error: Tensor, mask: Tensor | None) -> Tensor:
    """The mean square over valid positions and coordinates, for each part of a stack."""
    if mask is not None:
        error = error.masked_fill(~mask.unsqueeze(-1), 0.0)
    squares: Tensor = applied(_SumOfSquares, error)
    means: Tensor = squares / (error.shape[2] * positions(error, mask))
    return means


class _SumOfSquares(torch.autograd.Function):
    """One pass forward and one back, where square() and sum() need two of each."""

    @staticmethod
    def forward(ctx: Any, error: Tensor) -> Tensor:
        ctx.save_for_backward(error)
        norms: Tensor = torch.linalg.vector_norm(error, dim=(1, 2))
        return norms.square()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (error,) = ctx.saved_tensors
        gradient: Tensor = error * (2 * gradients[0])[:, None, None]
        return gradient


def positions(x: Tensor, mask: Tensor | None) -> Tensor | int:
    """How many positions of ``(parts, n, ...)`` are valid, at least 1 to divide by."""
    return max(x.shape[1], 1) if mask is None else mask.sum().clamp(min=1)


@torch.no_grad()
def usage_metrics(counts: Tensor) -> dict[str, Tensor]:
    """Perplexity and the share of codewords in use, of this batch, averaged over parts."""
    total = counts.sum(dim=1, keepdim=True).clamp(min=1e-12)
    shares = counts / total
    entropy = torch.special.entr(shares).sum(dim=1)
    return {
        "perplexity": entropy.exp().mean(),
        "batch_used_share": (counts > 0).float().mean(),
    }
