"""Bits a dimension: what the pixels cost given the codes, what the codes cost, and the sum.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, section 5.2.

Differs from the paper:
    The two parts are given beside their sum. It is an upper bound of the image's cost under
    the model, not a lower one as the paper says: one choice of codes is counted, not all.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class BitsPerDim:
    """Bits of a subpixel.

    Args:
        distortion: Of the pixels given the codes; None where the likelihood has no probabilities.
        rate: Of the codes under a prior.
        total: The sum; None where there is no distortion.
    """

    distortion: float | None
    rate: float
    total: float | None

    @classmethod
    def from_nats(cls, distortion: float | None, rate: float, dims: int) -> BitsPerDim:
        """From nats of an image with so many subpixels.

        Example:
            >>> bits = BitsPerDim.from_nats(math.log(2) * 30, math.log(2) * 10, dims=10)
            >>> round(bits.distortion, 6), round(bits.rate, 6), round(bits.total, 6)
            (3.0, 1.0, 4.0)
        """
        scale = 1 / (math.log(2) * dims)
        if distortion is None:
            return cls(None, rate * scale, None)
        return cls(distortion * scale, rate * scale, distortion * scale + rate * scale)

    def as_dict(self) -> dict[str, float | None]:
        """Plain data."""
        return asdict(self)
