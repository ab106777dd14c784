"""Repeated quantization: one vector, quantized by several codebooks in ignorance of each other.

Reference:
    Fostiropoulos, Boehm, "Implicit Feature Decoupling with Depthwise Quantization", CVPR
    2022, arXiv:2203.08080, section 5: the arm that its tables call VQ with M codebooks.

Differs from the paper:
    Nothing in the arithmetic; in the name. It is not the plain VQ that the name suggests: one
    projection to ``dim / num_codebooks`` is quantized ``num_codebooks`` times, so its codes are
    redundant at the same nominal rate. Honest baselines are ``VectorQuantizer`` and ``Residual``.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from smalti.errors import require
from smalti.quantizers.base import quantizers
from smalti.quantizers.product import PartSetting, Product


@quantizers.register("repeated")
class Repeated(Product):
    """``num_codebooks`` codebooks that all quantize the same narrow view of the vector.

    Args:
        dim: Width of the vectors, in and out.
        num_codebooks: How often the view is quantized; the results are concatenated.
        codebook_size: Codewords of each codebook.
        part: See ``Product``.
        reduction: See ``Product``.
        settings: See ``Product``.
    """

    def __init__(
        self,
        dim: int,
        num_codebooks: int,
        codebook_size: int | None = None,
        *,
        part: PartSetting = "vector",
        reduction: str = "sum",
        **settings: Any,
    ) -> None:
        require("combine" not in settings, "Repeated concatenates; for a sum use Product")
        super().__init__(
            dim, num_codebooks, codebook_size, part=part, reduction=reduction, **settings
        )
        self.learns_from_vectors = True
        require(self.stack is not None, "Repeated needs parts that can be stacked")
        # One codebook needs no narrower view: it is then plain vector quantization.
        self.view = nn.Linear(dim, self.width) if num_codebooks > 1 else nn.Identity()

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build`` is the inverse."""
        settings = super().spec()
        settings.pop("combine")
        return settings

    def _slice(self, flat: Tensor) -> Tensor:
        view: Tensor = self.view(flat)
        return view.unsqueeze(0).expand(self.slices, -1, -1)
