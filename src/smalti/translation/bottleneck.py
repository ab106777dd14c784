"""The bottleneck of a target: tokens become latents, latents become codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from smalti.errors import require
from smalti.quantizers.base import Quantized, Quantizer, build
from smalti.quantizers.soft_em import SoftEM
from smalti.translation.compressor import Compressor

# What the predictor has a softmax over; beyond, a quantizer with several codebooks is due.
MOST_CODES = 2**16


def fitting_quantizer(setting: str | Mapping[str, Any] | Quantizer, dim: int) -> Quantizer:
    """A quantizer of a width whose codes can be predicted.

    Args:
        setting: A registered name, a spec, or a quantizer.
        dim: Filled in where the spec does not say.
    """
    if isinstance(setting, str):
        setting = {"quantizer": setting}
    made = setting if isinstance(setting, Quantizer) else build({"dim": dim, **setting})
    require(made.dim == dim, f"expected a quantizer of width {dim}, got {made.dim}")
    require(
        bool(made.code_sizes) and max(made.code_sizes) <= MOST_CODES,
        f"codes are predicted one softmax a codebook: expected codebooks of at most {MOST_CODES} "
        f"codewords, got {made.code_sizes or 'none'}",
    )
    return made


class Bottleneck(nn.Module):
    """A compressor and a quantizer.

    Args:
        compressor: Makes latents of tokens.
        quantizer: Makes codes of latents.
        samples: Whether labels are all codes that soft EM sampled, or those that it chose.
    """

    def __init__(self, compressor: Compressor, quantizer: Quantizer, samples: bool) -> None:
        super().__init__()
        require(
            not samples or isinstance(quantizer, SoftEM),
            "only soft_em samples the assignments that predictor_labels='assignments' needs",
        )
        self.compressor, self.quantizer, self.samples = compressor, quantizer, samples

    def forward(self, latents: Tensor, mask: Tensor) -> tuple[Quantized, Tensor]:
        """What the quantizer makes of latents, and labels for who predicts codes.

        Args:
            latents: ``(batch, latents, latent_dim)``.
            mask: ``(batch, latents)``, False where there is padding.

        Returns:
            Codes and vectors, and labels ``(batch, latents, num_codebooks, any number)``.
        """
        if self.samples and isinstance(self.quantizer, SoftEM):
            drawn = self.quantizer.sample(latents, mask)
            out = Quantized(drawn.vectors, drawn.codes, drawn.loss, drawn.metrics)
            return out, drawn.samples[:, :, None]
        quantized: Quantized = self.quantizer(latents, mask)
        return quantized, quantized.codes[..., None]

    def freeze(self) -> None:
        """From now on the codes of every sentence stay what they are."""
        self.quantizer.freeze()
        self.compressor.requires_grad_(False)
