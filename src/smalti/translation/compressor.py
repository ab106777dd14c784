"""Between tokens and latents: a target is halved a few times, and doubled back."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, linear

from smalti.layers.attending import hiding
from smalti.layers.packed_linear import PackedLinear
from smalti.layers.remade import Remade
from smalti.layers.sequence_convolutions import Doubling, Halving, ResidualConvolution
from smalti.layers.transformer_block import CrossAttention
from smalti.quantizers.base import Quantizer
from smalti.translation.encoding import Encoded


class Compressor(nn.Module):
    """Residual convolutions, then as many halvings; the source is seen only on request.

    Args:
        dim: Width of the vectors.
        latent_dim: Width of the latents.
        halvings: How often the length is halved.
        heads: How many views attention to the source takes; None without it.
    """

    def __init__(self, dim: int, latent_dim: int, halvings: int, heads: int | None) -> None:
        super().__init__()
        self.mixing = nn.ModuleList(ResidualConvolution(dim) for _ in range(halvings))
        self.cross = None if heads is None else CrossAttention(dim, heads, dim)
        self.halving = nn.ModuleList(Halving(dim) for _ in range(halvings))
        self.norm = nn.LayerNorm(dim)
        self.outward = nn.Linear(dim, latent_dim)

    def forward(self, x: Tensor, mask: Tensor, encoded: Encoded) -> Tensor:
        """Latents ``(batch, latents, latent_dim)``.

        Args:
            x: ``(batch, length, dim)``, a length that all halvings divide.
            mask: ``(batch, length)``, False where there is padding.
            encoded: The sources.
        """
        real = mask[:, :, None]
        x = x * real
        for layer in self.mixing:
            x = layer(x, real)
        if self.cross is not None:
            x = x + self.cross(x, *self.cross.read(encoded.vectors), hiding(encoded.mask))
        for layer in self.halving:
            x = layer(x, real)
            real = real[:, ::2]
        out: Tensor = self.outward(self.norm(x))
        return out


class Decompressor(nn.Module):
    """From latents to a vector for each token: residual convolutions and doublings.

    Args:
        dim: Width of the vectors.
        latent_dim: Width of the latents.
        doublings: How often the length is doubled.
    """

    def __init__(self, dim: int, latent_dim: int, doublings: int) -> None:
        super().__init__()
        self.inward = nn.Linear(latent_dim, dim)
        self.mixing = nn.ModuleList(ResidualConvolution(dim) for _ in range(doublings))
        self.doubling = nn.ModuleList(Doubling(dim) for _ in range(doublings))
        self._lean: Remade[LeanDecompressor] = Remade()

    def forward(self, latents: Tensor, mask: Tensor | None) -> Tensor:
        """Vectors ``(batch, length, dim)``.

        Args:
            latents: ``(batch, latents, latent_dim)``.
            mask: ``(batch, latents)``, False where there is padding.
        """
        x = self.inward(latents)
        real = None if mask is None else mask[:, :, None]
        for mixing, doubling in zip(self.mixing, self.doubling, strict=True):
            x = doubling(mixing(x, real))
            real = None if real is None else real.repeat_interleave(2, dim=1)
        out: Tensor = x
        return out

    @torch.no_grad()
    def lean(
        self, quantizer: Quantizer, codes: Tensor, mask: Tensor | None, *, half: bool
    ) -> Tensor:
        """``forward`` of what codes stand for, for inference.

        Args:
            quantizer: Who says what codes stand for, always the same.
            codes: ``(batch, latents, num_codebooks)``.
            mask: ``(batch, latents)``, False where there is padding.
            half: Whether products are rounded to bfloat16.
        """
        made = self._lean.get(
            half, lambda: LeanDecompressor(self, quantizer, half), self, quantizer
        )
        return made(codes, mask)


class LeanDecompressor:
    """A decompressor with its weights laid out for inference.

    Of one codebook there are few inputs, and the first layers see no more than neighbours: what
    each code adds to itself and to those beside it after the first doubling is known before.
    Later on, a convolution and the doubling after it are one product, since nothing bends
    between them.

    Args:
        decompressor: Whose weights are used.
        quantizer: Who says what codes stand for.
        half: Whether products are rounded to bfloat16.
    """

    def __init__(self, decompressor: Decompressor, quantizer: Quantizer, half: bool) -> None:
        mixing = [one for one in decompressor.mixing if isinstance(one, ResidualConvolution)]
        doubling = [one for one in decompressor.doubling if isinstance(one, Doubling)]
        self.stages = [
            (one, PackedLinear(*_both(one.dense, two.dense), half=half))
            for one, two in zip(mixing, doubling, strict=True)
        ]
        self.inward = PackedLinear.of(decompressor.inward, half=half)
        self.quantizer = quantizer
        self.tables: tuple[Tensor, Tensor, Tensor] | None = None
        if len(quantizer.code_sizes) == 1:
            every = torch.arange(quantizer.code_sizes[0], device=decompressor.inward.weight.device)
            vectors = decompressor.inward(quantizer.decode(every[:, None]))
            self.tables = _first_stage(vectors, mixing[0], doubling[0])

    def __call__(self, codes: Tensor, mask: Tensor | None) -> Tensor:
        """Vectors ``(batch, length, dim)``; see ``Decompressor.lean``."""
        real = None if mask is None else mask[:, :, None]
        stages = self.stages
        if self.tables is not None:
            x, stages = self._looked_up(codes[:, :, 0], real, *self.tables), stages[1:]
            real = None if real is None else real.repeat_interleave(2, dim=1)
        else:
            latents = self.quantizer.decode(codes)
            x = self.inward(latents.flatten(0, 1)).unflatten(0, codes.shape[:2])
        for mixing, both in stages:
            batch, length, dim = x.shape
            seen = torch.cat([x, *mixing.neighbours(x, real)], dim=-1)
            x = both(seen.view(-1, 4 * dim)).view(batch, 2 * length, dim)
            real = None if real is None else real.repeat_interleave(2, dim=1)
        return x

    @staticmethod
    def _looked_up(
        codes: Tensor, real: Tensor | None, own: Tensor, before: Tensor, after: Tensor
    ) -> Tensor:
        """The first convolution and doubling of codes ``(batch, latents)``."""
        x = embedding(codes, own)
        if codes.shape[1] > 1:
            to_next, to_last = embedding(codes[:, :-1], before), embedding(codes[:, 1:], after)
            if real is not None:
                to_next, to_last = to_next * real[:, :-1], to_last * real[:, 1:]
            x[:, 1:] += to_next
            x[:, :-1] += to_last
        return x.view(len(codes), 2 * codes.shape[1], -1)


def _both(mixing: nn.Linear, doubling: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight and bias of a doubling of ``x + mixing(neighbours)``, for both side by side."""
    double = doubling.weight
    weight = torch.cat([double, double @ mixing.weight], dim=1)
    return weight, double @ mixing.bias + doubling.bias


def _first_stage(
    vectors: Tensor, mixing: ResidualConvolution, doubling: Doubling
) -> tuple[Tensor, Tensor, Tensor]:
    """For each code: its own two vectors, and what it adds to those of its next and its last."""
    bent = gelu(mixing.norm(vectors))
    before, middle, after = mixing.dense.weight.chunk(3, dim=1)
    own = doubling.dense(vectors + linear(bent, middle, mixing.dense.bias))
    double = doubling.dense.weight
    return own, linear(linear(bent, before), double), linear(linear(bent, after), double)
