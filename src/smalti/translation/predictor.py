"""The latent predictor: which codes a translation has, one latent after the other."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.layers.attention import CausalTransformer
from smalti.layers.dropout import Dropout
from smalti.layers.key_values import KeyValues
from smalti.layers.largest import largest
from smalti.layers.packed_linear import PackedLinear
from smalti.layers.positions import Sinusoids
from smalti.layers.remade import Remade
from smalti.quantizers.base import Quantizer
from smalti.translation.encoding import Encoded


class Predictor(nn.Module):
    """A causal transformer over latents that attends to the source.

    A latent's codes, one a codebook, are predicted side by side from what comes before it.
    Whether it is the last, and how many tokens it then stands for, is predicted from the same
    and from the codes themselves: where a sentence ends shows in the latent that holds its end,
    so that no step is spent on it.

    Args:
        dim: Width of the vectors.
        latent_dim: Width of the latents that codes stand for.
        code_sizes: How many codewords each codebook has.
        stride: How many tokens a latent stands for at most.
        depth: How many layers.
        heads: How many views attention takes.
        ratio: How many times wider the hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
    """

    def __init__(
        self,
        dim: int,
        latent_dim: int,
        code_sizes: tuple[int, ...],
        stride: int,
        depth: int,
        heads: int,
        ratio: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.code_sizes, self.stride = code_sizes, stride
        self.start = nn.Parameter(torch.randn(dim))
        self.inward = nn.Linear(latent_dim, dim)
        self.positions = Sinusoids(dim)
        self.drop = Dropout(dropout)
        self.layers = CausalTransformer(
            dim, depth, heads, ratio=ratio, dropout=dropout, context_dim=dim
        )
        # The logits of all codebooks; of going on, and of ending after each number of tokens.
        self.head = nn.Linear(dim, sum(code_sizes) + 1 + stride)
        self.ends = nn.ModuleList(nn.Embedding(size, 1 + stride) for size in code_sizes)
        for weight in self.ends.parameters():
            nn.init.zeros_(weight)
        self._lean: Remade[LeanSteps] = Remade()

    def forward(self, latents: Tensor, encoded: Encoded) -> Tensor:
        """Logits ``(batch, latents, codes and ends)`` of each latent given those before it.

        Args:
            latents: What the codes stand for, ``(batch, latents, latent_dim)``.
            encoded: The sources.
        """
        begin = self.start.expand(len(latents), 1, -1)
        # The last latent is not needed, and with one latent there is none before it.
        before = self.inward(latents[:, :-1])
        x = torch.cat([begin.to(before.dtype), before], dim=1) + self.positions(latents.shape[1])
        hidden = self.layers(self.drop(x), encoded.vectors, context_mask=encoded.needed_mask())
        logits: Tensor = self.head(hidden)
        return logits

    def lean(self, quantizer: Quantizer) -> LeanSteps:
        """Steps for inference, made anew when weights have changed.

        Args:
            quantizer: Who says what codes stand for, always the same.
        """
        return self._lean.get("steps", lambda: LeanSteps(self, quantizer), self, quantizer)

    def by_codebook(self, logits: Tensor) -> tuple[Tensor, ...]:
        """The logits of each codebook's codes."""
        codes = logits[..., : sum(self.code_sizes)]
        parts: tuple[Tensor, ...] = codes.split(self.code_sizes, dim=-1)
        return parts

    def likeliest(self, logits: Tensor) -> Tensor:
        """The likeliest codes ``(..., num_codebooks)``."""
        return torch.stack([largest(one) for one in self.by_codebook(logits)], dim=-1)

    def end(self, logits: Tensor, codes: Tensor) -> Tensor:
        """Logits ``(..., 1 + stride)`` of what a latent with these codes is followed by.

        The first is that of another latent, the others are those of the end after one token of
        this latent, after two, and so on.
        """
        found = logits[..., sum(self.code_sizes) :]
        for book, table in enumerate(self.ends):
            found = found + table(codes[..., book])
        return found

    def rooms(self, logits: Tensor, codes: Tensor) -> list[int]:
        """How many tokens latents with codes ``(rows, num_codebooks)`` end after; 0 to go on."""
        found = []
        # A few numbers a row: what tensors would take longer for.
        for goes_on, *ends in self.end(logits, codes).tolist():
            largest = max(ends)
            total = largest + math.log(sum(math.exp(one - largest) for one in ends))
            found.append(ends.index(largest) + 1 if goes_on < total else 0)
        return found

    def nats(self, logits: Tensor, codes: Tensor) -> Tensor:
        """Minus the log-probability ``(...)`` of codes ``(..., num_codebooks, any number)``.

        A latent with several codes a codebook counts as the mean over them.
        """
        found = torch.zeros(codes.shape[:-2], device=codes.device)
        for book, own in enumerate(self.by_codebook(logits)):
            logs = own.float().log_softmax(dim=-1)
            found = found - logs.gather(-1, codes[..., book, :]).mean(dim=-1)
        return found

    def end_nats(self, logits: Tensor, codes: Tensor, real: Tensor) -> Tensor:
        """Minus the log-probability ``(batch, latents)`` that sentences end where they do.

        Args:
            logits: Of ``forward``.
            codes: ``(batch, latents, num_codebooks)``.
            real: ``(batch, length)`` bool, where there are tokens, ``stride`` a latent.
        """
        held = real.unflatten(1, (-1, self.stride)).sum(dim=2)
        # Tokens of the last latent, 0 for those before it.
        rooms = held * (functional.pad(held, (0, 1))[:, 1:] == 0)
        logs = self.end(logits, codes).float().log_softmax(dim=-1)
        return -logs.gather(-1, rooms[..., None])[..., 0]


class LeanSteps:
    """One latent after the other, without checks.

    Args:
        predictor: Whose weights are used.
        quantizer: Who says what codes stand for.
    """

    def __init__(self, predictor: Predictor, quantizer: Quantizer) -> None:
        self.layers = predictor.layers.lean()
        self.head = PackedLinear.of(predictor.head)
        self.start, self.quantizer = predictor.start.detach(), quantizer
        self.inward = PackedLinear.of(predictor.inward)
        self.beginning = self.layers.beginning(self.start + predictor.positions(1))
        # Of one codebook all inputs are known before.
        self.inputs: Tensor | None = None
        if len(predictor.code_sizes) == 1:
            every = torch.arange(predictor.code_sizes[0], device=self.start.device)
            self.inputs = self.inward(quantizer.decode(every[:, None]))

    def step(self, codes: Tensor | None, position: Tensor, cache: KeyValues) -> Tensor:
        """Logits ``(rows, codes and ends)`` of the next latent.

        Args:
            codes: Of the latent before, ``(rows, num_codebooks)``; None at the beginning.
            position: The vector of this position.
            cache: Remembers it.
        """
        if codes is None:
            return self.head(self.layers.begin(self.beginning, cache))
        if self.inputs is not None:
            x = functional.embedding(codes[:, 0], self.inputs).add_(position)
        else:
            x = self.inward(self.quantizer.decode(codes)).add_(position)
        return self.head(self.layers.step(x, cache))
