"""Soft labels from sampled codes: each sample stands for an equal share.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, section 3.2, last paragraph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.errors import ShapeError, require
from smalti.quantizers.border import checked_codes
from smalti.quantizers.settings import count


def average_assignments(samples: Tensor, size: int) -> Tensor:
    """The mean of the one-hot labels of sampled codes, for ``Prior.loss``.

    Args:
        samples: Codes ``(..., samples)``, m a position in the paper.
        size: How many codewords the largest codebook has.

    Returns:
        Shares ``(..., size)`` that add up to 1.

    Example:
        >>> average_assignments(torch.tensor([[0, 2, 2, 1]]), size=4)
        tensor([[0.2500, 0.2500, 0.5000, 0.0000]])
    """
    size = count("size", size, least=2)
    require(
        isinstance(samples, Tensor) and samples.dim() >= 1 and samples.shape[-1] > 0,
        f"expected sampled codes (..., samples), got {tuple(getattr(samples, 'shape', ()))}",
        ShapeError,
    )
    samples = checked_codes(samples[..., None], (size,))[..., 0]
    shares = torch.zeros(*samples.shape[:-1], size, device=samples.device)
    share = torch.full(samples.shape, 1 / samples.shape[-1], device=samples.device)
    return shares.scatter_add_(-1, samples, share)
