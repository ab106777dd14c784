"""Configs: what is wrong with them is said in one line that names the key."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from smalti.autoencoders import build_autoencoder
from smalti.errors import ConfigError
from smalti.recipes.images import AutoencoderConfig, PriorSettings
from smalti.training import as_settings, read_settings

CONFIGS = [
    path
    for path in sorted((Path(__file__).parents[3] / "configs").glob("*.yaml"))
    if not path.name.startswith("translation-")
]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_ready_config_is_valid_and_opens_with_its_command(path: Path) -> None:
    read_settings(AutoencoderConfig, path)
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    starts = (
        f"train configs/{path.name} -o runs/{path.stem}",
        f"tune codebook configs/{path.name}",
    )
    assert any(f"smalti {start}" in line for line in comments for start in starts)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_changes_that_a_ready_config_proposes_can_be_typed(path: Path) -> None:
    lines = [line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#")]
    for line in lines:
        words = shlex.split(line[line.index("--set") :]) if "--set" in line else []
        changes = [word for flag, word in pairwise(words) if flag == "--set"]
        config = read_settings(AutoencoderConfig, path, changes)
        build_autoencoder({"channels": 3, "bits": 8, **config.model})


def test_there_are_ready_configs() -> None:
    names = {path.stem for path in CONFIGS}
    cifar = {f"{kind}-cifar10" for kind in ("dqae", "depthwise", "vq", "soft-em")}
    assert names >= {"digits", *cifar}


@pytest.mark.parametrize(
    ("place", "wrong", "right"),
    [
        ((), "trainig", "training"),
        (("data",), "valid_sare", "data.valid_share"),
        (("training",), "batchsize", "training.batch_size"),
        (("prior",), "lables", "prior.labels"),
        (("prior", "training"), "step", "prior.training.steps"),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(
    small_config: dict[str, Any], place: tuple[str, ...], wrong: str, right: str
) -> None:
    def changed(content: Any, keys: tuple[str, ...]) -> Any:
        if not keys:
            return {**content, wrong: 1}
        return {**content, keys[0]: changed(content[keys[0]], keys[1:])}

    with pytest.raises(ConfigError, match=f"did you mean {right}\\?"):
        as_settings(AutoencoderConfig, changed(small_config, place))


def test_a_seed_goes_to_every_stage(small_config: dict[str, Any]) -> None:
    config = as_settings(AutoencoderConfig, small_config).with_seed(7)
    assert config.training.seed == 7
    assert isinstance(config.prior, PriorSettings)
    assert config.prior.training.seed == 7
    two = as_settings(AutoencoderConfig, {**small_config, "prior": [small_config["prior"]] * 2})
    assert [prior.training.seed for prior in two.with_seed(3).prior or ()] == [3, 3]
