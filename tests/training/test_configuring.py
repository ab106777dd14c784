"""Settings from files, from the command line and from Python: what is read, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from smalti.errors import ConfigError
from smalti.training import Settings, TrainingSettings, as_settings, read_settings, with_changes


class Model(Settings):
    """A part of a config."""

    dim: int = 4
    quantizer: dict[str, Any] = Field(default_factory=dict)


class Config(Settings):
    """A config with parts."""

    training: TrainingSettings
    model: Model = Model()
    seeds: list[int] = Field(default_factory=list)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text("training:\n  steps: 10\n  learning_rate: 1e-4\nmodel: {dim: 8}\n")
    return path


def test_a_file_is_read_and_changed_key_by_key(file: Path) -> None:
    config = read_settings(Config, file, ["training.steps=20", "model.quantizer.beta=1e-3"])
    assert config.training.steps == 20
    assert config.training.learning_rate == 1e-4
    assert config.model == Model(dim=8, quantizer={"beta": 0.001})


def test_words_mean_what_they_look_like(file: Path) -> None:
    file.write_text(
        "training: {steps: 1}\n"
        "model: {quantizer: {a: 1e-4, b: no, c: 12:30, d: null, e: -3, f: .5, g: true, h: '7'}}\n"
    )
    expected = {"a": 1e-4, "b": "no", "c": "12:30", "d": None, "e": -3, "f": 0.5, "g": True}
    assert read_settings(Config, file).model.quantizer == {**expected, "h": "7"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.stepz=5", "no setting training.stepz; did you mean training.steps?"),
        ("steps=5", "no setting steps; did you mean training.steps?"),
        ("training.schedule.warmup=5", "did you mean training.schedule.warm_up?"),
        ("model.x=5", "no setting model.x; the known ones are: model.dim, model.quantizer"),
        ("model.dim=wide", "model.dim: expected a valid integer"),
        ("training.steps=-1", "training.steps: expected greater than 0, got -1"),
        ("training.clip_norm=.nan", "training.clip_norm: expected a finite number"),
        ("training.schedule=cosin", "training.schedule: there is no kind 'cosin'; the known ones"),
        ("training.epochs=3", "training: give either steps or epochs"),
        ("training.precision=half", "training.precision: expected 'float32' or 'bf16', got 'half'"),
        ("training.steps.more=1", "training.steps is 10 and has no parts"),
        ("seeds=[1, two]", "seeds.1: expected a valid integer"),
        ("training.steps", "expected --set key.sub=value, got 'training.steps'"),
        (".steps=3", "expected --set key.sub=value"),
        ("model.dim=[1,", "is not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(file: Path, change: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(Config, file, [change])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the setting training is missing"),
        ("- 1\n- 2\n", "expected settings"),
        ("training: {steps: 1}\ntraining: {steps: 2}\n", "'training' stands twice"),
        ("training: {steps: 1\n", "is not YAML"),
        ("training: !!python/object:os.system {}\n", "is not YAML"),
        ("1: 2\n", "1: keys should be strings"),
    ],
)
def test_a_file_that_says_nothing_clear_is_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.yaml") as caught:
        read_settings(Config, file)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't read the config file .*none\.yaml"):
        read_settings(Config, tmp_path / "none.yaml")


def test_settings_made_in_python_are_refused_in_the_same_words() -> None:
    with pytest.raises(ConfigError, match=r"no setting stepz; did you mean steps\?"):
        TrainingSettings(stepz=3)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"training\.steps: expected greater than 0"):
        Config(training={"steps": 0})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"from a dictionary: model\.dim"):
        as_settings(Config, {"training": {"steps": 1}, "model": {"dim": "x"}}, "from a dictionary")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"batch_size.*; there is no setting foo"):
        TrainingSettings(steps=1, batch_size=0, foo=1)  # type: ignore[call-arg]


def test_changes_leave_what_they_change_as_it_was() -> None:
    content = {"training": {"steps": 5}}
    assert with_changes(content, ["training.epochs=1", "a.b.c=x"]) == {
        "training": {"steps": 5, "epochs": 1},
        "a": {"b": {"c": "x"}},
    }
    assert content == {"training": {"steps": 5}}


def test_entries_of_lists_are_changed_by_their_number() -> None:
    content = {"levels": [{"size": 1}, {"size": 2}], "prior": ({"training": {"steps": 5}},)}
    changes = ["levels.1.size=64", "levels.0.kind=soft", "prior.0.training.steps=10"]
    assert with_changes(content, changes) == {
        "levels": [{"size": 1, "kind": "soft"}, {"size": 64}],
        "prior": [{"training": {"steps": 10}}],
    }
    assert with_changes({"seeds": [1, 2]}, ["seeds.1=7"]) == {"seeds": [1, 7]}
    assert content["levels"] == [{"size": 1}, {"size": 2}]
    for change in ("levels.2.size=1", "levels.-1.size=1", "levels.size=1"):
        with pytest.raises(ConfigError, match="levels is a list, expected the number of an entry"):
            with_changes(content, [change])
    with pytest.raises(ConfigError, match="seeds is an empty list and has no 0"):
        with_changes({"seeds": []}, ["seeds.0=7"])


def test_settings_can_not_be_changed_later() -> None:
    settings = TrainingSettings(steps=3)
    with pytest.raises(ValueError, match="frozen"):
        settings.steps = 4  # type: ignore[misc]


def test_settings_survive_the_way_through_plain_data() -> None:
    settings = TrainingSettings(steps=3, schedule={"kind": "stairs", "at": [1, 2]})  # type: ignore[arg-type]
    assert as_settings(TrainingSettings, settings.model_dump(mode="json")) == settings
