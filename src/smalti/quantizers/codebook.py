"""A stack of equal codebooks and the state from which they learn."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.quantizers.learning import GradientDescent, Learning, MovingAverage
from smalti.quantizers.ranks import agree, join_over_ranks, many, sum_over_ranks
from smalti.quantizers.revival import Dead, Revive
from smalti.quantizers.sampling import draw
from smalti.quantizers.scatter import flat_codes
from smalti.quantizers.starts import RandomStart, Start


class Codebook(nn.Module):
    """``parts`` codebooks of ``size`` codewords each, learned side by side.

    Args:
        parts: How many codebooks; all operations run over the whole stack at once.
        size: Codewords in each.
        dim: Their width.
        learning: How they learn.
        start: Where they start.
        dead: What happens to unused codewords.

    Statistics are exchanged between ranks when they are applied: at each training step,
    or, once :func:`~smalti.quantizers.updates.follow` ties them to an optimizer, at each of
    its steps, over all batches since the last.
    """

    codewords: Tensor
    counts: Tensor
    sums: Tensor
    started: Tensor
    steps: Tensor

    def __init__(
        self, parts: int, size: int, dim: int, *, learning: Learning, start: Start, dead: Dead
    ) -> None:
        super().__init__()
        self.parts, self.size, self.dim = parts, size, dim
        self.learning, self.start, self.dead = learning, start, dead
        scale = start.scale if isinstance(start, RandomStart) else 1.0
        codewords = scale * torch.randn(parts, size, dim)
        if isinstance(learning, MovingAverage):
            counts, sums = learning.first_statistics(codewords)
            self.register_buffer("codewords", codewords)
            self.register_buffer("sums", sums)
        else:
            counts = torch.zeros(parts, size)
            self.codewords = nn.Parameter(codewords)
        self.register_buffer("counts", counts)
        self.register_buffer("started", torch.tensor(not start.needs_data))
        self.register_buffer("steps", torch.tensor(0))
        # A copy of ``started`` that a graph can branch on when it is traced.
        self._known_started = not start.needs_data
        self.frozen = False
        self.deferred = False
        self._pending: tuple[Tensor, ...] | None = None
        self._pending_vectors: tuple[Tensor, Tensor | None] | None = None

    def look_up(self, codes: Tensor) -> Tensor:
        """The codewords ``(parts, n, dim)`` of codes ``(parts, n)``."""
        rows = functional.embedding(flat_codes(codes, self.size), self.codewords.view(-1, self.dim))
        return rows.view(*codes.shape, self.dim)

    def begin(self, x: Tensor, mask: Tensor | None, anew: bool = False) -> None:
        """Start from data if that has not happened yet.

        Args:
            x: ``(parts, n, dim)``.
            mask: ``(n,)`` or None.
            anew: Start even if it has happened.
        """
        if isinstance(self.start, RandomStart) or self.frozen:
            return
        compiling = torch.compiler.is_compiling()
        if not anew and (self._known_started or (not compiling and bool(self.started))):
            return
        with torch.no_grad():
            x, mask = join_over_ranks(x.detach(), mask)
            if x.shape[1] == 0 or (not compiling and mask is not None and not bool(mask.any())):
                return
            first = agree(self.start.codewords(x, mask, self.size).contiguous())
            if compiling:
                # A graph can't branch on a value: a codebook that has started stays as it is.
                keep = self.started if mask is None else self.started | ~mask.any()
                first = torch.where(keep, self.codewords, first)
            self.codewords.copy_(first)
            if isinstance(self.learning, MovingAverage):
                self._reset_statistics(self.learning)
            self.started.logical_or_(self.started.new_ones(()) if mask is None else mask.any())
            if not compiling:
                self._known_started = True

    def _reset_statistics(self, learning: MovingAverage) -> None:
        fresh = ~self.started if torch.compiler.is_compiling() else torch.tensor(True)
        counts, sums = learning.first_statistics(self.codewords)
        fresh = fresh.to(counts.device)
        self.counts.copy_(torch.where(fresh, counts, self.counts))
        self.sums.copy_(torch.where(fresh, sums, self.sums))

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._known_started = bool(self.started)
        self._pending = self._pending_vectors = None

    def freeze(self, frozen: bool) -> None:
        """Learn nothing more, not even from what was collected; or learn again."""
        self.frozen = frozen
        self._pending = self._pending_vectors = None

    @torch.no_grad()
    def learn(self, x: Tensor, mask: Tensor | None, counts: Tensor, sums: Tensor | None) -> Tensor:
        """Take in one batch and return how many codewords were revived.

        Args:
            x: The vectors ``(parts, n, dim)``, from which dead codewords are revived.
            mask: ``(n,)`` or None.
            counts: How often each codeword was chosen, ``(parts, size)``.
            sums: The sums of the vectors that chose it, None for gradient descent.
        """
        new = (counts,) if sums is None else (counts, sums)
        if not self.deferred:
            return self._apply_statistics(new, x.detach(), mask)
        if self._pending is None:
            self._pending = tuple(tensor.clone() for tensor in new)
        else:
            for old, tensor in zip(self._pending, new, strict=True):
                old.add_(tensor)
        self._pending_vectors = (x.detach(), mask)
        return counts.new_zeros(())

    @torch.no_grad()
    def apply_pending(self) -> None:
        """Learn from all batches since the last call, as if they had been one."""
        if self.frozen:
            return
        new, (x, mask) = self._pending, self._pending_vectors or (None, None)
        if new is None or x is None:
            if not (self.deferred and many()):
                return
            # The other ranks wait for this one, also when it has seen nothing.
            averaged = isinstance(self.learning, MovingAverage)
            zeros = (torch.zeros_like(self.counts), torch.zeros_like(self.codewords))
            new = zeros if averaged else zeros[:1]
            x = self.codewords.new_empty(self.parts, 0, self.dim)
        self._pending = self._pending_vectors = None
        self._apply_statistics(new, x, mask)

    def _apply_statistics(self, new: tuple[Tensor, ...], x: Tensor, mask: Tensor | None) -> Tensor:
        new = tuple(sum_over_ranks(new))
        decay = self.learning.decay
        self.steps.add_(1)
        self.counts.mul_(decay).add_(new[0], alpha=1 - decay)
        if isinstance(self.learning, MovingAverage):
            self.sums.mul_(decay).add_(new[1], alpha=1 - decay)
            self.learning.step(self.codewords, self.counts, self.sums, self.steps)
        return self._revive(x, mask)

    def _revive(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Move dead codewords to vectors of the batch, counts and sums included."""
        none = self.counts.new_zeros(())
        if not isinstance(self.dead, Revive):
            return none
        due = self.steps % self.dead.period == 0
        if not torch.compiler.is_compiling() and not bool(due):
            return none
        x, mask = join_over_ranks(x, mask)
        if x.shape[1] == 0:
            return none
        mean = self.counts.mean(dim=1, keepdim=True)
        dead = (self.counts < self.dead.threshold * mean) & due
        if mask is not None:
            dead = dead & mask.any()
        places = agree(draw(x, mask, self.size).contiguous())
        counts = torch.where(dead, mean, self.counts)
        codewords = torch.where(dead.unsqueeze(-1), places, self.codewords)
        if not isinstance(self.learning, GradientDescent):
            fresh = codewords * counts.unsqueeze(-1)
            self.sums.copy_(torch.where(dead.unsqueeze(-1), fresh, self.sums))
        self.counts.copy_(counts)
        self.codewords.copy_(codewords)
        return dead.sum().float()

    def extra_repr(self) -> str:
        """The shape, as ``print`` shows it."""
        return f"parts={self.parts}, size={self.size}, dim={self.dim}"
