"""A study as a whole: all arms trained, measured, written; stopped and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from smalti.errors import ArtifactError, ConfigError, SmaltiError
from smalti.recipes.images import AutoencoderConfig, load_run
from smalti.recipes.images.codebook_balance import default_config, tune_codebook
from smalti.training import as_settings, read_journal, read_settings, with_changes

PAIRS = [(8, 4), (32, 1)]
ROOT = Path(__file__).parents[4]


def config(*changes: str) -> AutoencoderConfig:
    small = ["model.width=8", "model.hidden=4", "training.steps=6", "training.checkpoint_every=2"]
    content = default_config("digits").model_dump(mode="json")
    return as_settings(AutoencoderConfig, with_changes(content, [*small, *changes]))


def untimed(place: Path) -> dict[str, Any]:
    """All results but the seconds, which are never the same."""
    content: dict[str, Any] = json.loads((place / "results.json").read_text())
    for arm in content["arms"]:
        for figures in (arm["mean"], arm["spread"], *arm["seeds"].values()):
            figures.pop("seconds", None)
    return content


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("studies") / "small"
    assert tune_codebook(config(), PAIRS, place) is not None
    return place


def test_all_arms_are_trained_for_as_many_steps_and_are_runs(studied: Path) -> None:
    content = untimed(studied)
    assert [arm["name"] for arm in content["arms"]] == ["8x4", "32x1", "adaptive"]
    assert content["capacity"] == 32
    for arm in content["arms"]:
        run = load_run(studied / arm["name"] / "seed-0")
        assert run.config.training.steps == 6
        assert {width for _, width in arm["pool"]} <= {4, 1}
        assert arm["mean"]["rate_bits"] > 0
    assert content["data"] == {
        "source": "the digits of scikit-learn",
        "part": "held out",
        "images": round(0.05 * 1797),
    }


def test_the_journal_tells_the_choice_and_the_gap_while_training(studied: Path) -> None:
    lines = read_journal(studied / "adaptive" / "seed-0" / "autoencoder")
    looks = [line for line in lines if line["kind"] == "evaluate"]
    assert [line["step"] for line in looks] == [1, 2, 3, 4, 5, 6]
    for line in looks:
        shares = [line["metrics"]["share/0"], line["metrics"]["share/1"]]
        assert sum(shares) == pytest.approx(1)
        assert line["metrics"]["relative_gradient_gap"] > 0
    adaptive = untimed(studied)["arms"][-1]
    assert [entry["step"] for entry in adaptive["history"]["0"]] == [1, 2, 3, 4, 5, 6]


def test_a_study_that_was_stopped_goes_on_and_ends_with_the_same_figures(
    tmp_path: Path, studied: Path
) -> None:
    place, told = tmp_path / "study", []

    def stop_at_the_second(word: str) -> None:
        told.append(word)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_codebook(config(), PAIRS, place, say=stop_at_the_second)
    assert not (place / "results.json").exists()
    told = ["resumed", "resumed"]
    tune_codebook(config(), PAIRS, place, resume=True, say=told.append)
    assert told[2:] == ["32x1, seed 0: 2 of 3", "adaptive, seed 0: 3 of 3"]
    assert untimed(place) == untimed(studied)


@pytest.mark.slow
def test_seeds_and_controls_can_be_added_to_a_study(tmp_path: Path) -> None:
    place, told = tmp_path / "study", list[str]()
    tune_codebook(config("training.steps=2"), PAIRS, place)
    found = tune_codebook(
        *(config("training.steps=2"), PAIRS, place),
        **{"seeds": (0, 1), "controls": True, "resume": True, "say": told.append},
    )
    assert found is not None
    # Two seeds of seven arms, without the three that were there.
    assert len(told) == 11
    names = [one.arm.name for one in found.arms]
    assert names[3:] == ["control-32x2", "control-40x2", "control-random", "control-slab"]
    assert found.adaptive.spread("mse_0_to_1") is not None


def test_another_plan_is_not_mixed_into_a_study(studied: Path) -> None:
    before = untimed(studied)
    with pytest.raises(ConfigError, match="resume it"):
        tune_codebook(config(), PAIRS, studied)
    with pytest.raises(ConfigError, match=r"training\.steps was 6 and is 7"):
        tune_codebook(config("training.steps=7"), PAIRS, studied, resume=True)
    with pytest.raises(ConfigError, match="pairs"):
        tune_codebook(config(), [(16, 2), (32, 1)], studied, resume=True)
    assert untimed(studied) == before


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        (["model.autoencoder=dense_split"], "convolutional"),
        (["model.width=7"], "even"),
        (["model.halvings=4"], "8"),
        (["model.widht=9"], "widht"),
        (["data.source=/nowhere"], "/nowhere"),
    ],
)
def test_what_can_not_be_trained_is_told_before_anything_is_written(
    tmp_path: Path, changes: list[str], word: str
) -> None:
    with pytest.raises(SmaltiError, match=word):
        tune_codebook(config(*changes), PAIRS, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_directory_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(ArtifactError, match="not empty"):
        tune_codebook(config(), PAIRS, tmp_path, resume=True)
    with pytest.raises(ArtifactError, match="it is a file"):
        tune_codebook(config(), PAIRS, tmp_path / "letters.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_damaged_figures_of_an_arm_are_named(tmp_path: Path, studied: Path) -> None:
    place = tmp_path / "study"
    shutil.copytree(studied, place)
    (place / "8x4" / "seed-0" / "figures.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"figures\.json can't be read"):
        tune_codebook(config(), PAIRS, place, resume=True)


def test_the_shipped_config_is_the_default() -> None:
    shipped = read_settings(AutoencoderConfig, ROOT / "configs" / "codebook-balance-cifar10.yaml")
    assert shipped == default_config("cifar10")
