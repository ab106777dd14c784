"""Texts with something to learn, in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("accelerate")

from smalti.training import TrainingSettings


@pytest.fixture
def sentences() -> Callable[[int, int], list[str]]:
    """Lines of eight words out of thirty; a word says what comes next but for one of two."""

    def make(amount: int, seed: int) -> list[str]:
        generator = torch.Generator().manual_seed(seed)
        lines = []
        for _ in range(amount):
            word = int(torch.randint(30, (), generator=generator))
            line = []
            for step in torch.randint(1, 3, (8,), generator=generator).tolist():
                word = (word + step) % 30
                line.append(f"w{word}")
            lines.append(" ".join(line))
        return lines

    return make


@pytest.fixture
def training() -> Callable[..., TrainingSettings]:
    """A few epochs without a word to anyone."""

    def make(**changes: Any) -> TrainingSettings:
        return TrainingSettings(
            **{
                "epochs": 1,
                "batch_size": 4,
                "learning_rate": 0.02,
                "schedule": {"kind": "linear", "warm_up": 0.02},
                "clip_norm": 1.0,
                "tensorboard": False,
                **changes,
            }
        )

    return make


def coded(choice: str, num_codebooks: int, codebook_size: int) -> dict[str, Any]:
    """The spec of a table that learns its codes."""
    sizes = {"num_codebooks": num_codebooks, "codebook_size": codebook_size}
    return {"compressor": "differentiable", "choice": choice, **sizes}


TABLES = [None, coded("softmax", 8, 8), coded("centroid", 8, 8)]


@pytest.fixture(params=TABLES, ids=["full", "softmax", "centroid"])
def embedding(request: pytest.FixtureRequest) -> dict[str, Any] | None:
    """A full table, and one of each choice."""
    spec: dict[str, Any] | None = request.param
    return spec
