"""No quantization: the control arm of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from smalti.errors import ConfigError
from smalti.quantizers.base import Quantized, Quantizer, quantizers


@quantizers.register("identity")
class Identity(Quantizer):
    """Passes vectors through; it has no codes, so there is nothing to decode.

    Args:
        dim: Width of the vectors.
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8}

    def __init__(self, dim: int) -> None:
        super().__init__(dim, ())

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Return ``x`` with no codes and no loss."""
        self.checked(x, mask)
        return Quantized(x.clone(), self._no_codes(x), x.new_zeros((), dtype=torch.float32), {})

    def encode(self, x: Tensor) -> Tensor:
        """Codes ``(..., 0)``."""
        self.checked(x)
        return self._no_codes(x)

    def decode(self, codes: Tensor) -> Tensor:
        """Refuse: vectors can't be made from no codes."""
        raise ConfigError(
            f"Identity has no codes to decode, got {codes!r:.60}; use any other quantizer"
        )

    @staticmethod
    def _no_codes(x: Tensor) -> Tensor:
        return x.new_zeros((*x.shape[:-1], 0), dtype=torch.int64)
