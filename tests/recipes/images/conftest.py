"""A small model of real digits, trained once a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("accelerate")
pytest.importorskip("sklearn")


@pytest.fixture(scope="session")
def small_config() -> dict[str, Any]:
    """Two levels, some codebooks, a few steps: seconds on one core."""
    training = {"steps": 12, "batch_size": 32, "learning_rate": 3e-3, "evaluate_every": 12}
    quantizer = {"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": 8}
    return {
        "kind": "autoencoder",
        "data": {"source": "digits", "valid_share": 0.1},
        "model": {
            "autoencoder": "hierarchical",
            "likelihood": {"likelihood": "logistic_mixture", "components": 2},
            "quantizers": [quantizer, quantizer],
            **{"dim": 8, "width": 8, "hidden": 8, "depth": 1, "stages": 1},
        },
        "training": {**training, "picture_every": 12},
        "prior": {
            "model": {"prior": "autoregressive", "dim": 16, "depth": 1, "heads": 2},
            "training": training,
        },
    }


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, small_config: dict[str, Any]) -> Path:
    """The directory of a small run."""
    from smalti.recipes.images import AutoencoderConfig, train_run
    from smalti.training import as_settings

    place = tmp_path_factory.mktemp("runs") / "digits"
    outcome = train_run(as_settings(AutoencoderConfig, small_config), place)
    assert outcome.finished
    return place
