"""Maps of features, channels last, computed once a process for all who ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from smalti.data.images import Images, read_images, resized, split
from smalti.errors import ConfigError, DataError
from smalti.experiments.features.cifar_resnet import trained_resnet, untrained_resnet
from smalti.experiments.features.efficientnet import trained_efficientnet
from smalti.training import Settings

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet20": lambda: trained_resnet(20),
    "resnet56": lambda: trained_resnet(56),
    "efficientnet_lite0": trained_efficientnet,
    "untrained": untrained_resnet,
}
# Of ImageNet's colours, from 0 to 1: all of the networks were trained with them.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Images at a time: what bounds the memory.
BLOCK = 32


class FeatureSettings(Settings):
    """Whose features of which images.

    Args:
        network: One of ``NETWORKS``.
        source: What ``read_images`` knows.
        size: The side that images are resized to.
        train: How many images to fit with, at most.
        test: How many to judge by, at most.
    """

    network: str
    source: str
    size: PositiveInt
    train: PositiveInt
    test: PositiveInt


@cache
def feature_grids(settings: FeatureSettings) -> tuple[Tensor, Tensor]:
    """Maps ``(n, rows, columns, channels)`` to fit with, and others to judge by."""
    if settings.network not in NETWORKS:
        known = ", ".join(NETWORKS)
        raise ConfigError(f"there is no network {settings.network!r}; known: {known}")
    train, test = _images(settings.source)
    network = NETWORKS[settings.network]().eval()
    return (
        _maps(network, _some(train, settings.train, settings.size)),
        _maps(network, _some(test, settings.test, settings.size)),
    )


def _images(source: str) -> tuple[Images, Images]:
    train = read_images(source, channels=3)
    try:
        return train, read_images(source, "test", channels=3)
    except DataError:
        # A source in one piece.
        return split(train, 0.25, seed=0)


def _some(images: Images, most: int, size: int) -> Images:
    """Images from all over a set, which may be ordered; enlarged last, to keep few in memory."""
    number = min(most, len(images))
    return resized(images.select(torch.arange(number) * len(images) // number), size)


@torch.no_grad()
def _maps(network: nn.Module, images: Images) -> Tensor:
    mean, spread = (torch.tensor(colour)[:, None, None] for colour in (MEAN, SPREAD))
    made = []
    for pixels in images.pixels.split(BLOCK):
        shares = pixels.float() / (2**images.bits - 1)
        made.append(network((shares - mean) / spread).movedim(1, -1).contiguous())
    return torch.cat(made)
