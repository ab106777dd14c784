"""What a model says that images take: bits of their codes and bits of their pixels.

These are the numbers of an evaluation, formed by whole grids and images at once, in the model's
own arithmetic. A file is coded step by step with whole numbers; how far it is from these says
what that costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from smalti.codec.model import ImageModel


@torch.no_grad()
def predicted_code_bits(model: ImageModel, codes: Sequence[Tensor]) -> float:
    """The rate: of the grids of some images, a grid a level, under the prior."""
    return float(model.prior.nats(codes).sum()) / math.log(2)


@torch.no_grad()
def predicted_pixel_bits(model: ImageModel, codes: Sequence[Tensor], pixels: Tensor) -> float:
    """The distortion: of the pixels of some images given their codes."""
    parameters = model.autoencoder.decode(codes)
    nats = model.autoencoder.likelihood.nats(parameters, pixels.to(parameters.device))
    return float(nats.double().sum()) / math.log(2)
