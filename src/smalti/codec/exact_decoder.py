"""A decoder whose numbers have the same bits in any batch, with any threads, on any machine.

Sums of floating-point numbers depend on the order of adding, and convolutions change that
order with the batch, the threads and the processor. Here the inputs and the weights of each
convolution and dense layer are rounded to whole numbers times a power of two, so few bits
long that all products and sums are exact in float64: whatever the order, the result is the
true one. All else that decoders do is single operations on single numbers.

Reference:
    Ballé, Johnston, Minnen, "Integer Networks for Data Compression with Latent-Variable
    Models", ICLR 2019.

Differs from the paper:
    The network is trained as usual and rounded afterwards, to about the precision of float32.
    Integers are kept in float64, for which there are fast matrix products. The power of two
    follows the largest number of each image.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from smalti.autoencoders import Autoencoder
from smalti.errors import DataError, require

# Bits of a float64 that a sum of products can fill, and those that an input may take.
MANTISSA = 53
INPUT_BITS = 21

Weighted = nn.Conv2d | nn.ConvTranspose2d | nn.Linear


class ExactDecoder:
    """Decodes like an autoencoder, on the CPU, in exact arithmetic.

    Args:
        autoencoder: Whose decoder; a rounded copy is taken.
    """

    @torch.no_grad()
    def __init__(self, autoencoder: Autoencoder) -> None:
        self.likelihood = autoencoder.likelihood
        self._twin = copy.deepcopy(autoencoder).cpu().double().eval().requires_grad_(False)
        for name, part in list(self._twin.named_modules()):
            if isinstance(part, Weighted):
                self._twin.set_submodule(name, ExactLayer(part))

    @torch.no_grad()
    def parameters(self, codes: Sequence[Tensor]) -> Tensor:
        """What the likelihood reads, ``(batch, parameters, height, width)`` in float64."""
        return self._twin.decode([grid.cpu() for grid in codes])


class ExactLayer(nn.Module):
    """A convolution or a dense layer without rounding errors inside.

    Args:
        layer: Is taken over and changed: its weights become whole numbers.
    """

    def __init__(self, layer: Weighted) -> None:
        super().__init__()
        weight = layer.weight.detach().double()
        self.bias = None if layer.bias is None else layer.bias.detach().double()
        known = (weight,) if self.bias is None else (weight, self.bias)
        require(
            all(bool(tensor.isfinite().all()) for tensor in known),
            "a weight of the decoder is not finite: it can't code anything; train it anew",
            DataError,
        )
        # A transposed convolution has its outputs on the second axis.
        outputs = weight.shape[1 if isinstance(layer, nn.ConvTranspose2d) else 0]
        terms = weight.numel() // outputs
        bits = MANTISSA - INPUT_BITS - (terms - 1).bit_length()
        self.scale = float(_power_above(weight.abs().amax())) * 2.0**-bits
        layer.weight = nn.Parameter((weight / self.scale).round(), requires_grad=False)
        layer.bias = None
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Like the layer, in the type of ``x``."""
        # An image's scale is its own: what else is in the batch must not matter.
        peaks = x.double().abs().amax(dim=tuple(range(1, x.dim())), keepdim=True)
        scale = _power_above(peaks) * 2.0**-INPUT_BITS
        whole: Tensor = self.layer((x / scale).round())
        out = whole * (scale * self.scale)
        if self.bias is not None:
            channels_first = not isinstance(self.layer, nn.Linear)
            out = out + (self.bias[:, None, None] if channels_first else self.bias)
        return out.to(x.dtype)


def _power_above(x: Tensor) -> Tensor:
    """The least power of two above each number; 1 for zero."""
    parts = torch.frexp(x)
    # Exact, unlike powers of a vectorised library.
    return torch.where(x > 0, x / parts.mantissa, torch.ones_like(x))
