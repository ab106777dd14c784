"""Configs: the shipped ones are whole, and what is wrong in one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from smalti.embeddings import build_compressor
from smalti.errors import ConfigError
from smalti.recipes.configs import read_config
from smalti.recipes.translation import TranslationConfig
from smalti.translation import build_translator

SHIPPED = sorted((Path(__file__).parents[3] / "configs").glob("translation-*.yaml"))


def test_there_is_a_config_for_each_kind_of_translator() -> None:
    kinds = {read_config(path).model["translator"] for path in SHIPPED}
    assert kinds == {"autoregressive", "latent", "parallel"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_says_how_it_is_run_and_its_model_can_be_built(path: Path) -> None:
    config = read_config(path)
    assert isinstance(config, TranslationConfig)
    assert f"smalti train configs/{path.name} -o" in path.read_text()
    assert build_translator(config.model, vocabulary=300).dim == config.model["dim"]
    assert config.with_seed(3).training.seed == 3


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_table_of_codes_has_the_size_that_its_config_tells(side: str) -> None:
    path = next(path for path in SHIPPED if "codes" in path.stem)
    config = read_config(path)
    rows, dim = config.data.vocabulary, config.model["dim"]
    size = build_compressor(config.embedding[side]).expected_size(rows, dim)
    assert f"{size.total:,} bytes a side" in path.read_text()
    assert f"{rows * dim * 4 / size.total:.1f} times" in path.read_text()


def test_a_kind_that_is_not_known_lists_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: translations\n")
    with pytest.raises(ConfigError, match="'autoencoder' or 'translation'"):
        read_config(path)
    path.write_text("training: {steps: 3}\n")
    with pytest.raises(ConfigError, match="kind is missing"):
        read_config(path)
