"""Building blocks of networks that know nothing of codes."""

from smalti.layers.attention import CausalTransformer
from smalti.layers.convolutions import (
    Downsample,
    InceptionBlock,
    ResidualBlock,
    ResidualStack,
    Upsample,
)
from smalti.layers.key_values import KeyValues

__all__ = [
    "CausalTransformer",
    "Downsample",
    "InceptionBlock",
    "KeyValues",
    "ResidualBlock",
    "ResidualStack",
    "Upsample",
]
