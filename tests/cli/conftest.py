"""Commands run in this process, a small image model as it starts, and pictures for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from smalti.cli.main import run


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def smalti_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Runs a command line."""

    def command(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["smalti", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return command


@pytest.fixture
def command(
    smalti_command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Done]:
    """Runs a command line in an empty directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return smalti_command


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of images of 3 x 8 x 8 with weights as they start."""
    from smalti.autoencoders import build_autoencoder
    from smalti.priors import LevelsPrior
    from smalti.recipes.images import AutoencoderConfig, Run, save_run
    from smalti.training import as_settings

    torch.manual_seed(0)
    quantizer = {"quantizer": "vector", "codebook_size": 8}
    spec = {
        **{"autoencoder": "convolutional", "likelihood": "logistic_mixture", "dim": 4},
        **{"quantizer": quantizer, "width": 8, "hidden": 4, "depth": 1},
    }
    autoencoder = build_autoencoder(spec)
    levels = list(zip(autoencoder.grids(8, 8), autoencoder.code_sizes, strict=True))
    names = ("uniform", "unigram")
    config = as_settings(
        AutoencoderConfig,
        {
            **{"kind": "autoencoder", "data": {"source": "pictures"}, "model": spec},
            "training": {"steps": 1, "batch_size": 1},
        },
    )
    made = {name: LevelsPrior.over(levels, name) for name in names}
    place = tmp_path_factory.mktemp("runs")
    save_run(Run(config, autoencoder, made, (8, 8), "none"), place)
    return place


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three PNG files, written by Pillow alone."""
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(0)
    paths = [folder / f"{name}.png" for name in "abc"]
    for path in paths:
        image.fromarray(chance.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    return paths
