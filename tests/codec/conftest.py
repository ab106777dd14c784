"""A small model with two levels and a learned prior, and images for it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from smalti.autoencoders import build_autoencoder
from smalti.codec import CodecModel
from smalti.priors import LevelsPrior

pytest.importorskip("constriction")


def small_model(seed: int = 0, likelihood: str = "logistic_mixture") -> CodecModel:
    """Weights as they start; two levels, codebooks of different sizes."""
    torch.manual_seed(seed)
    autoencoder = build_autoencoder(
        "hierarchical",
        likelihood=likelihood,
        quantizers=[
            {"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": size}
            for size in (5, 16)
        ],
        **{"dim": 8, "width": 16, "hidden": 8, "depth": 1, "stages": 1},
    ).eval()
    levels = zip(autoencoder.grids(8, 8), autoencoder.code_sizes, strict=True)
    prior = LevelsPrior.over(list(levels), "autoregressive", dim=16, depth=1, heads=2)
    return CodecModel(autoencoder, prior)


@pytest.fixture(scope="session")
def model() -> CodecModel:
    """The small model."""
    return small_model()


@pytest.fixture(scope="session")
def other_model() -> CodecModel:
    """The same settings, other weights."""
    return small_model(seed=1)


@pytest.fixture(scope="session")
def pixels() -> Tensor:
    """Seven images of 3 x 8 x 8 pixels."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(256, (7, 3, 8, 8), generator=generator, dtype=torch.uint8)
