"""Training as a whole: stages, resuming, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from smalti.data.images import read_images
from smalti.errors import ArtifactError, ConfigError, ShapeError
from smalti.recipes.images import AutoencoderConfig, load_run, read_unseen_images, train_run
from smalti.recipes.images.autoencoder_task import AutoencoderTask
from smalti.training import as_settings, read_journal


def config_of(content: dict[str, Any], **changes: Any) -> AutoencoderConfig:
    return as_settings(AutoencoderConfig, {**content, **changes})


def test_a_run_has_all_priors_and_a_journal_of_each_stage(trained: Path) -> None:
    run = load_run(trained)
    assert list(run.priors) == ["uniform", "unigram", "autoregressive"]
    assert [tuple(prior.level.grid) for prior in run.prior().members()] == [(2, 2), (4, 4)]
    assert run.size == (8, 8)
    for stage in ("autoencoder", "prior-top", "prior-bottom"):
        kinds = {line["kind"] for line in read_journal(trained / stage)}
        assert {"train", "evaluate"} <= kinds
        assert run.figures[stage]
    assert list((trained / "autoencoder").rglob("*.png"))


def test_a_loaded_model_is_ready_for_use(trained: Path) -> None:
    run = load_run(trained)
    for module in (run.autoencoder, *run.priors.values()):
        assert not module.training
        assert not any(parameter.requires_grad for parameter in module.parameters())


def test_the_unigram_prior_counted_the_codes_of_the_training_images(trained: Path) -> None:
    run = load_run(trained)
    images = read_images("digits")
    data = run.config.data
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(data.split_seed))
    kept = images.pixels[order[round(data.valid_share * len(images)) :]]
    codes = run.autoencoder.encode(kept)[0]
    expected = torch.bincount(codes[:, 1, 0, 1], minlength=8)
    counts: Any = run.priors["unigram"].members()[0].counts
    assert torch.equal(counts[1, 0, 8:], expected)


def test_a_run_trains_the_same_twice_and_goes_on_where_it_was_stopped(
    tmp_path: Path, small_config: dict[str, Any], trained: Path
) -> None:
    config = config_of(small_config)
    shorter = {**small_config["training"], "steps": 5}
    # The schedule is constant, so a run of five steps is the beginning of a longer one.
    train_run(config_of(small_config, training=shorter, prior=None), tmp_path / "run")
    outcome = train_run(config, tmp_path / "run", resume=True)
    assert [stage.step for stage in outcome.stages.values()] == [12, 12, 12]
    ours, whole = (
        load_file(place / "model" / "tensors.safetensors") for place in (tmp_path / "run", trained)
    )
    assert ours.keys() == whole.keys()
    assert all(torch.equal(ours[name], whole[name]) for name in whole)


def test_a_directory_that_was_trained_into_is_left_alone_without_resume(
    trained: Path, small_config: dict[str, Any]
) -> None:
    before = (trained / "model" / "manifest.json").read_bytes()
    with pytest.raises(ConfigError, match="resume"):
        train_run(config_of(small_config), trained)
    assert (trained / "model" / "manifest.json").read_bytes() == before


def test_other_settings_can_not_be_resumed(trained: Path, small_config: dict[str, Any]) -> None:
    other = {**small_config["data"], "augmentation": "flip"}
    with pytest.raises(ConfigError, match=r"data\.augmentation was 'none' and is 'flip'"):
        train_run(config_of(small_config, data=other), trained, resume=True)


def test_what_can_not_work_is_refused_before_anything_is_written(
    tmp_path: Path, small_config: dict[str, Any]
) -> None:
    place = tmp_path / "run"
    prior = small_config["prior"]
    bad: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"prior": [prior]}, ConfigError, "each of 2 levels"),
        ({"prior": {**prior, "model": {"prior": "autoregresive"}}}, ConfigError, "autoregressive"),
        ({"prior": {**prior, "model": {"prior": "uniform"}}}, ConfigError, "nothing to train"),
        ({"prior": {**prior, "labels": "assignments"}}, ConfigError, "soft_em"),
        ({"model": {"autoencoder": "hierarchical", "widht": 3}}, ConfigError, "width"),
        (
            {"data": {"source": "digits", "growing": [{"size": 6, "steps": 2}]}},
            ShapeError,
            "divisible by 4",
        ),
    ]
    for changes, error, word in bad:
        with pytest.raises(error, match=word):
            train_run(config_of(small_config, **changes), place)
        assert not place.exists(), changes
    (place / "model").mkdir(parents=True)
    (place / "model" / "mine.txt").write_text("mine")
    with pytest.raises(ArtifactError, match="not a trained model"):
        train_run(config_of(small_config), place)


def test_images_grow_step_by_step(small_config: dict[str, Any]) -> None:
    data = {"source": "digits", "growing": [{"size": 4, "steps": 3}, {"size": 12, "steps": 2}]}
    config = config_of(small_config, data=data, training={"steps": 9, "batch_size": 900})
    from smalti.recipes.images.image_sets import read_training_images
    from smalti.recipes.images.running import _new_autoencoder

    images = read_training_images(config.data)
    task = AutoencoderTask(
        _new_autoencoder(config, images), images.train, images.valid, config.data, config.training
    )
    sides = [
        batch.shape[-1]
        for epoch in range(8)
        for batch in task.batches(epoch, torch.Generator().manual_seed(epoch))
    ]
    assert sides == [4, 4, 4, 12, 12, 8, 8, 8]


def test_soft_labels_train_a_prior(tmp_path: Path, small_config: dict[str, Any]) -> None:
    model = {
        "autoencoder": "dense_split",
        "quantizer": {"quantizer": "soft_em", "codebook_size": 8, "samples": 3},
        **{"latents": 2, "dim": 4, "width": 8, "hidden": 8, "depth": 1},
    }
    prior = {**small_config["prior"], "labels": "assignments"}
    outcome = train_run(config_of(small_config, model=model, prior=prior), tmp_path / "run")
    assert outcome.finished
    assert list(outcome.stages) == ["autoencoder", "prior"]


def test_a_model_without_codes_has_no_priors(tmp_path: Path, small_config: dict[str, Any]) -> None:
    from smalti.recipes.images import evaluate_run

    model = {"autoencoder": "gaussian", "dim": 2, "width": 8, "hidden": 8, "depth": 1}
    with pytest.raises(ConfigError, match="has no prior"):
        train_run(config_of(small_config, model=model), tmp_path / "run")
    train_run(config_of(small_config, model=model, prior=None), tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert not run.priors
    found = evaluate_run(run, read_unseen_images(run, "digits")[0])
    bits = found.bits_per_dim["unit_gaussian"]
    assert bits.distortion is not None
    assert bits.rate > 0
    assert found.levels == {}


def test_a_damaged_model_is_an_artifact_error_that_names_the_file(
    tmp_path: Path, trained: Path
) -> None:
    import shutil

    place = tmp_path / "copy"
    shutil.copytree(trained / "model", place)
    assert load_run(place).size == (8, 8)
    content = bytearray((place / "tensors.safetensors").read_bytes())
    content[-3] ^= 1
    (place / "tensors.safetensors").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"tensors\.safetensors is damaged"):
        load_run(place)
    with pytest.raises(ArtifactError, match="no directory"):
        load_run(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match="no trained model"):
        load_run(tmp_path / "empty")


def test_watching_writes_the_gap_and_the_quantizers_figures_into_the_journal(
    tmp_path: Path, small_config: dict[str, Any]
) -> None:
    quiet = {**small_config["training"], "steps": 4, "evaluate_every": 2}
    watched = config_of(small_config, training=quiet, prior=None, watch=10)
    plain = config_of(small_config, training=quiet, prior=None)
    for name, config in (("watched", watched), ("plain", plain)):
        train_run(config, tmp_path / name)
    told = [
        line["metrics"]
        for line in read_journal(tmp_path / "watched" / "autoencoder")
        if line["kind"] == "evaluate"
    ]
    assert len(told) == 2
    for metrics in told:
        assert metrics["gradient_gap"] > 0
        assert metrics["relative_gradient_gap"] > 0
        assert "top/distortion" in metrics
    # Looking changes nothing.
    one, other = (
        load_run(tmp_path / name).autoencoder.state_dict() for name in ("watched", "plain")
    )
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_watching_a_model_without_a_gap_is_refused_before_it_is_trained(
    tmp_path: Path, small_config: dict[str, Any]
) -> None:
    quantizer = {"quantizer": "semantic_hash", "bits": 4}
    model = {"autoencoder": "convolutional", "quantizer": quantizer, "dim": 8, "halvings": 1}
    with pytest.raises(ConfigError, match="no gap"):
        train_run(config_of(small_config, model=model, prior=None, watch=4), tmp_path / "run")
    assert not (tmp_path / "run").exists()
