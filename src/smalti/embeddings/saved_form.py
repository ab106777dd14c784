"""Numbers as they will be saved: what is used in memory is what a file will hold."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.quantizers.gradients import straight_through


def to_saved(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor that is written for ``values``.

    Whole-number types round. Floating-point types apply to float32 only: a model that was
    cast to half precision is saved as it is.
    """
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return values.round().clamp(limits.min, limits.max).to(dtype)
    return values.to(dtype) if values.dtype == torch.float32 else values


def as_saved(values: Tensor, dtype: torch.dtype) -> Tensor:
    """``values`` after being saved and loaded, in their own type; gradients pass unchanged."""
    if dtype == torch.float32:
        return values
    saved = to_saved(values.detach(), dtype).to(values.dtype)
    if torch.is_grad_enabled() and values.requires_grad:
        return straight_through(values, saved)
    return saved
