"""Dense layers for inference: weights laid out once for the kernel that reads them fastest.

A product of a few rows with a large matrix takes most of its time to lay that matrix out anew.
oneDNN reads a layout of its own, in which a row's result moreover does not depend, to the last
bit, on how many rows there are. One row alone is quicker with the ordinary product.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

# A layout is made for about so many rows, and works for any number.
ROWS = 24


class PackedLinear:
    """``x @ weight.T + bias`` for rows ``x``, without gradients.

    Args:
        weight: ``(outputs, inputs)``.
        bias: ``(outputs,)``, or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.packed: Tensor | None = None
        if _can_pack(weight):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, ROWS)
            # The product with one row runs along the columns, if there are many more of them
            # than a row has numbers.
            wide = weight.shape[0] > 8 * weight.shape[1]
            self.columns = self.weight.T.contiguous() if wide else None

    @classmethod
    def of(cls, layer: nn.Linear) -> PackedLinear:
        """The weights of a layer."""
        return cls(layer.weight, layer.bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Rows ``(n, inputs)`` in, ``(n, outputs)`` out."""
        if self.packed is None or len(x) == 1:
            return self._ordinary(x)
        made: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return made

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        """The sum of the product and of other rows ``(n, outputs)``."""
        if self.packed is None or len(x) == 1:
            return self._ordinary(x).add_(other)
        made: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            x, other, self.packed, self.bias, "add"
        )
        return made

    def bent(self, x: Tensor) -> Tensor:
        """The GELU of the product."""
        if self.packed is None or len(x) == 1:
            return gelu(self._ordinary(x))
        made: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self.packed, self.bias, "gelu", [], "none"
        )
        return made

    def _ordinary(self, x: Tensor) -> Tensor:
        if self.packed is None or self.columns is None:
            return linear(x, self.weight, self.bias)
        return x @ self.columns if self.bias is None else torch.addmm(self.bias, x, self.columns)


def _can_pack(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
    )
