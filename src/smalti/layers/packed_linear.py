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
    """``x @ weight.T + bias`` for rows ``x`` of float32, without gradients.

    Args:
        weight: ``(outputs, inputs)``.
        bias: ``(outputs,)``, or None.
        half: Whether factors are rounded to bfloat16, where the processor can multiply such
            numbers; sums are float32.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, half: bool = False) -> None:
        self.half = half and multiplies_bfloat16(weight)
        dtype = torch.bfloat16 if self.half else weight.dtype
        self.weight = weight.detach().to(dtype)
        self.bias = None if bias is None else bias.detach().to(dtype)
        self.packed: Tensor | None = None
        self.columns: Tensor | None = None
        if _can_pack(weight):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, ROWS)
            # Found once: for a few rows it counts how often they are looked up.
            self._product = torch.ops.mkldnn._linear_pointwise.default
            self._sum = torch.ops.mkldnn._linear_pointwise.binary
            # The product with one row is quicker along columns, unless they are short.
            if not self.half and weight.shape[0] >= weight.shape[1]:
                self.columns = self.weight.T.contiguous()

    @classmethod
    def of(cls, layer: nn.Linear, *, half: bool = False) -> PackedLinear:
        """The weights of a layer."""
        return cls(layer.weight, layer.bias, half=half)

    def __call__(self, x: Tensor) -> Tensor:
        """Rows ``(n, inputs)`` in, ``(n, outputs)`` out."""
        if self.half:
            return self._packed(x.bfloat16(), "none").float()
        if self.packed is None or x.shape[0] == 1:
            return self._ordinary(x)
        return self._packed(x, "none")

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        """The sum of the product and of other rows ``(n, outputs)``."""
        if self.half:
            return other + self._packed(x.bfloat16(), "none")
        if self.packed is None or x.shape[0] == 1:
            return self._ordinary(x).add_(other)
        made: Tensor = self._sum(x, other, self.packed, self.bias, "add")
        return made

    def bent(self, x: Tensor) -> Tensor:
        """The GELU of the product, as the next layer's input: rounded if this layer rounds."""
        if self.half:
            return self._packed(x.bfloat16(), "gelu")
        if self.packed is None or x.shape[0] == 1:
            return gelu(self._ordinary(x))
        return self._packed(x, "gelu")

    def _packed(self, x: Tensor, after: str) -> Tensor:
        made: Tensor = self._product(x, self.packed, self.bias, after, [], "none")
        return made

    def _ordinary(self, x: Tensor) -> Tensor:
        if self.columns is None:
            return linear(x, self.weight, self.bias)
        return x @ self.columns if self.bias is None else torch.addmm(self.bias, x, self.columns)


def multiplies_bfloat16(weight: Tensor) -> bool:
    """Whether products with bfloat16 are quicker than with float32 where a weight is."""
    return _can_pack(weight) and bool(_capabilities().get("avx512_bf16"))


def _can_pack(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
    )


def _capabilities() -> dict[str, object]:
    # Older versions of torch do not tell what a processor can do.
    found: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return found
