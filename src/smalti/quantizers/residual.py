"""Residual quantization: each codebook quantizes what the ones before it left over.

Reference:
    Juang, Gray, "Multiple Stage Vector Quantization for Speech Coding", ICASSP 1982;
    Zeghidour et al., "SoundStream", 2021, arXiv:2107.03312, section III-C (in a network).

Differs from the paper:
    No dropout of codebooks. The gradient crosses all of them in one straight-through step, so
    that the encoder receives the decoder's gradient once, not once a codebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from smalti.errors import require
from smalti.quantizers.base import (
    Quantized,
    Quantizer,
    build,
    quantizers,
)
from smalti.quantizers.gradients import Gradient, StraightThrough
from smalti.quantizers.product import part_spec
from smalti.quantizers.settings import count, word
from smalti.quantizers.stacked import mean_square


@quantizers.register("residual")
class Residual(Quantizer):
    """``num_codebooks`` full-width codebooks whose codewords add up to the vector.

    Args:
        dim: Width of the vectors, in and out.
        num_codebooks: How many codebooks follow each other.
        codebook_size: Codewords of each.
        part: What quantizes a residual: a registered name or a spec without ``dim``.
        reduction: Whether the codebooks' losses are added (``"sum"``) or averaged.
        settings: Settings of the part, such as ``decay=0.9``.

    Metrics: distortion; and those of each codebook with its number, such as ``0/perplexity``.
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "num_codebooks": 3, "codebook_size": 16}

    def __init__(
        self,
        dim: int,
        num_codebooks: int,
        codebook_size: int | None = None,
        *,
        part: str | Mapping[str, Any] = "vector",
        reduction: str = "sum",
        **settings: Any,
    ) -> None:
        num_codebooks = count("num_codebooks", num_codebooks)
        reduction = word("reduction", reduction, ("sum", "mean"))
        spec = part_spec(part, settings, codebook_size)
        levels = [build({**spec, "dim": dim}) for _ in range(num_codebooks)]
        require(bool(levels[0].code_sizes), "a part without codes leaves nothing to quantize")
        super().__init__(dim, tuple(size for level in levels for size in level.code_sizes))
        self.codebook_size, self.reduction = codebook_size, reduction
        self.learns_from_vectors = levels[0].learns_from_vectors
        self.gradient: Gradient = getattr(levels[0], "gradient", StraightThrough())
        self.levels = nn.ModuleList(levels)

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build`` is the inverse."""
        part = self._levels()[0].spec()
        part.pop("dim")
        if self.codebook_size is not None:
            part.pop("codebook_size")
        return {
            "quantizer": "residual",
            "dim": self.dim,
            "num_codebooks": len(self.levels),
            "codebook_size": self.codebook_size,
            "part": part,
            "reduction": self.reduction,
        }

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        flat = self.checked(x, mask).reshape(-1, self.dim)
        valid = None if mask is None else mask.reshape(-1)
        through_vectors = self.learns_from_vectors
        total, rest = torch.zeros_like(flat), flat
        codes, losses, metrics = [], [], {}
        for number, level in enumerate(self._levels()):
            out = level(rest, valid)
            # Parts that learn through their vectors pass the gradient on themselves; the
            # encoder is then reached through the first of them only.
            total = total + (out.vectors if through_vectors else out.vectors.detach())
            rest = flat - total.detach()
            rest = rest.detach() if through_vectors else rest
            codes.append(out.codes)
            losses.append(out.loss)
            metrics.update({f"{number}/{name}": value for name, value in out.metrics.items()})
        loss = torch.stack(losses)
        error = (flat - total).detach().unsqueeze(0)
        vectors = total if through_vectors else self.gradient(flat, total)
        return Quantized(
            vectors=vectors.view(x.shape).to(x.dtype),
            codes=torch.cat(codes, dim=-1).view(*x.shape[:-1], self.num_codebooks),
            loss=loss.sum() if self.reduction == "sum" else loss.mean(),
            metrics={"distortion": mean_square(error, valid)[0], **metrics},
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., num_codebooks)`` of vectors ``(..., dim)``."""
        flat = self.checked(x).reshape(-1, self.dim)
        total, codes = torch.zeros_like(flat), []
        for level in self._levels():
            codes.append(level.encode(flat - total))
            total = total + level.decode(codes[-1])
        return torch.cat(codes, dim=-1).view(*x.shape[:-1], self.num_codebooks)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes ``(..., num_codebooks)``."""
        flat = self.checked_codes(codes).reshape(-1, self.num_codebooks)
        pieces = flat.split([level.num_codebooks for level in self._levels()], dim=-1)
        total = torch.zeros(flat.shape[0], self.dim, device=codes.device)
        for level, piece in zip(self._levels(), pieces, strict=True):
            total = total + level.decode(piece)
        return total.view(*codes.shape[:-1], self.dim)

    def _start(self, x: Tensor) -> None:
        rest = x
        for level in self._levels():
            level.start_from(rest)
            rest = rest - level.decode(level.encode(rest)).detach()

    def _levels(self) -> list[Quantizer]:
        return [level for level in self.levels if isinstance(level, Quantizer)]
