"""Between tokens and latents: a target is halved a few times, and doubled back."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smalti.layers.attending import hiding
from smalti.layers.packed_linear import PackedLinear
from smalti.layers.remade import Remade
from smalti.layers.sequence_convolutions import Doubling, Halving, ResidualConvolution
from smalti.layers.transformer_block import CrossAttention
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
        self._lean: Remade[list[PackedLinear]] = Remade()

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

    def lean(self, latents: Tensor, mask: Tensor | None, *, half: bool) -> Tensor:
        """``forward`` for inference, rounded to bfloat16 on request."""
        layers = self._lean.get(half, lambda: self._packed(half), self)
        batch, length, width = latents.shape
        x = layers[0](latents.reshape(-1, width)).view(batch, length, -1)
        real = None if mask is None else mask[:, :, None]
        for place, mixing in enumerate(self._mixing()):
            x = mixing.lean(x, real, layers[1 + 2 * place])
            batch, length, dim = x.shape
            x = layers[2 + 2 * place](x.view(-1, dim)).view(batch, 2 * length, dim)
            real = None if real is None else real.repeat_interleave(2, dim=1)
        return x

    @torch.no_grad()
    def _packed(self, half: bool) -> list[PackedLinear]:
        """The dense layers in the order in which they come."""
        made = [PackedLinear.of(self.inward, half=half)]
        doubling = [layer for layer in self.doubling if isinstance(layer, Doubling)]
        for pair in zip(self._mixing(), doubling, strict=True):
            made += [PackedLinear.of(layer.dense, half=half) for layer in pair]
        return made

    def _mixing(self) -> list[ResidualConvolution]:
        return [layer for layer in self.mixing if isinstance(layer, ResidualConvolution)]
