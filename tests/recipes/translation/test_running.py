"""Training as a whole: what is saved, resuming, averaging, tables, what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from smalti.embeddings import CompressedEmbedding
from smalti.errors import ArtifactError, ConfigError, DataError
from smalti.recipes.translation import (
    load_translation_run,
    train_translation_run,
    translate_texts,
)
from smalti.recipes.translation.tables import table_bytes
from smalti.training import read_journal
from smalti.training.checkpoints import Checkpoints

from .conftest import LATENT

Maker = Callable[..., Any]


def tensors(place: Path) -> dict[str, torch.Tensor]:
    return load_file(place / "model" / "tensors.safetensors")


def test_a_model_is_used_without_texts_and_checkpoints(
    tmp_path: Path, trained: Path, run: Any
) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    again = load_translation_run(tmp_path / "model")
    assert not again.translator.training
    assert not any(item.requires_grad for item in again.translator.parameters())
    assert again.subwords.fingerprint() == run.subwords.fingerprint()
    texts = ["ba de gi", "ko"]
    assert translate_texts(again, texts) == translate_texts(run, texts)


def test_the_length_penalty_of_the_best_score_is_kept_with_the_model(run: Any) -> None:
    assert run.decoding.beam == 2
    assert run.decoding.length_penalty in (0.5, 1.0)
    assert run.figures["decoding"]["length_penalty"] == run.decoding.length_penalty


def test_a_journal_counts_tokens_of_targets_and_scores_translations(trained: Path) -> None:
    lines = read_journal(trained / "translator")
    last = lines[-1]["metrics"]
    assert {"loss", "token_nats", "greedy_bleu"} <= last.keys()
    losses = [line["metrics"]["token_nats"] for line in lines if line["kind"] == "train"]
    assert losses[-1] < losses[0] - 1


def test_a_run_goes_on_where_it_was_stopped(
    tmp_path: Path, small_config: Maker, trained: Path
) -> None:
    shutil.copytree(trained / "translator", tmp_path / "run" / "translator")
    checkpoints = Checkpoints(tmp_path / "run" / "translator")
    # Of the three that were written the last two are kept: after steps 30 and 40.
    assert checkpoints.steps() == [30, 40]
    shutil.rmtree(checkpoints.path(40))
    outcome = train_translation_run(small_config(), tmp_path / "run", resume=True)
    assert outcome.stages["translator"].step == 40
    ours, whole = tensors(tmp_path / "run"), tensors(trained)
    assert ours.keys() == whole.keys()
    assert all(torch.equal(ours[name], whole[name]) for name in whole)


def test_the_weights_of_the_last_steps_are_averaged(tmp_path: Path, small_config: Maker) -> None:
    training = {"steps": 4, "batch_size": 256, "learning_rate": 1e-2, "checkpoint_every": 1}
    config = small_config(training={**training, "keep_checkpoints": 4})
    train_translation_run(config, tmp_path / "run")
    checkpoints = Checkpoints(tmp_path / "run" / "translator", keep=4)
    steps = [checkpoints.read(step).state["model"] for step in (3, 4)]
    found = tensors(tmp_path / "run")
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, (steps[0][name] + steps[1][name]) / 2, msg=name)


def test_without_averaging_the_last_weights_are_saved(tmp_path: Path, small_config: Maker) -> None:
    training = {"steps": 2, "batch_size": 256}
    config = small_config(training=training, averaged_share=0.0)
    train_translation_run(config, tmp_path / "run")
    last = Checkpoints(tmp_path / "run" / "translator").read(2).state["model"]
    found = tensors(tmp_path / "run")
    assert all(torch.equal(tensor, last[name]) for name, tensor in found.items())


def test_a_model_starts_from_another_and_has_its_vocabulary(
    tmp_path: Path, small_config: Maker, trained: Path, run: Any
) -> None:
    training = {"steps": 1, "batch_size": 256, "learning_rate": 1e-12}
    config = small_config(
        start_from=str(trained),
        training=training,
        averaged_share=0.0,
        data={**small_config().data.model_dump(), "vocabulary": 300},
    )
    train_translation_run(config, tmp_path / "run")
    again = load_translation_run(tmp_path / "run")
    assert again.subwords.fingerprint() == run.subwords.fingerprint()
    for name, tensor in tensors(tmp_path / "run").items():
        torch.testing.assert_close(tensor, tensors(trained)[name], atol=1e-6, rtol=0)


def test_tables_learn_their_codes_and_are_saved_as_codes_alone(
    tmp_path: Path, small_config: Maker
) -> None:
    embedding = {
        "compressor": "differentiable",
        **{"choice": "centroid", "num_codebooks": 8, "codebook_size": 16},
    }
    config = small_config(embedding=embedding, training={"steps": 3, "batch_size": 256})
    train_translation_run(config, tmp_path / "run")
    run = load_translation_run(tmp_path / "run")
    table = run.translator.words.get_submodule("shared")
    assert isinstance(table, CompressedEmbedding)
    # Eight codes of 4 bits a row, and eight codebooks of 16 x 4 floats.
    assert table.size().total == len(run.subwords) * 8 * 4 // 8 + 8 * 16 * 4 * 4
    assert translate_texts(run, ["ba de"]).texts


def test_each_use_of_words_can_have_a_table_of_its_own_kind(
    tmp_path: Path, small_config: Maker
) -> None:
    codes = {"compressor": "differentiable", "num_codebooks": 8, "codebook_size": 16}
    config = small_config(
        embedding={"source": codes, "target": {**codes, "choice": "centroid"}},
        model={**small_config().model, "tied": False},
        training={"steps": 3, "batch_size": 256},
    )
    train_translation_run(config, tmp_path / "run")
    run = load_translation_run(tmp_path / "run")
    coded, full = len(run.subwords) * 8 * 4 // 8 + 8 * 16 * 4 * 4, len(run.subwords) * 32 * 4
    expected = {"source": (coded, full), "target": (coded, full), "output": (full, full)}
    assert table_bytes(run.translator) == expected
    assert translate_texts(run, ["ba de"]).texts


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ({"source": "full"}, r"by use \(shared\), got source; with model.tied=false"),
        ({"shared": "full", "ouptut": "full"}, "got ouptut"),
    ],
)
def test_tables_of_uses_that_are_not_there_are_refused(
    tmp_path: Path, small_config: Maker, embedding: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_translation_run(small_config(embedding=embedding), tmp_path / "run")


def test_tables_that_can_not_start_from_nothing_are_fitted_to_a_trained_model(
    tmp_path: Path, small_config: Maker, trained: Path, run: Any
) -> None:
    training = {"steps": 1, "batch_size": 256, "learning_rate": 1e-9}
    changes = {"embedding": {"compressor": "integer", "bits": 8}, "training": training}
    with pytest.raises(ConfigError, match="finished table"):
        train_translation_run(small_config(**changes), tmp_path / "run")
    config = small_config(**changes, start_from=str(trained), averaged_share=0.0)
    train_translation_run(config, tmp_path / "run")
    found = load_translation_run(tmp_path / "run").translator.words.dense("source")
    expected = run.translator.words.dense("source")
    # Steps of 8 bits over the range of a row are about a hundredth of it.
    assert float((found - expected).abs().max()) < 0.01 * float(expected.abs().max())


def test_what_was_distilled_is_learned_in_the_place_of_the_target(
    tmp_path: Path, small_config: Maker, folder: Path
) -> None:
    from smalti.recipes.translation.text_sets import read_training_texts

    count = len((folder / "train.xx").read_text().splitlines())
    other = tmp_path / "distilled.yy"
    other.write_text("Other words\n" * count)
    settings = small_config().data
    made = read_training_texts(type(settings)(**{**settings.model_dump(), "distilled": str(other)}))
    plain = read_training_texts(settings)
    assert set(made.train.target) == {"Other words"}
    assert made.train.source == plain.train.source
    assert made.vocabulary == plain.vocabulary
    assert made.valid == plain.valid
    assert made.fingerprint != plain.fingerprint


def test_other_settings_and_other_texts_can_not_be_resumed(
    small_config: Maker, trained: Path, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"averaged_share was 0\.5 and is 0\.25"):
        train_translation_run(small_config(averaged_share=0.25), trained, resume=True)
    other = tmp_path / "train.yy"
    other.write_text((folder / "train.yy").read_text().replace("Abt", "Abr"))
    data = {**small_config().data.model_dump(), "target": str(other)}
    with pytest.raises(ConfigError, match=r"data\.fingerprint was"):
        train_translation_run(small_config(data=data), trained, resume=True)
    with pytest.raises(ConfigError, match="resume it"):
        train_translation_run(small_config(), trained)


def test_what_can_not_work_is_refused_before_anything_is_written(
    tmp_path: Path, small_config: Maker, folder: Path
) -> None:
    place = tmp_path / "run"
    data = small_config().data.model_dump()
    short = tmp_path / "short.yy"
    short.write_text("".join((folder / "train.yy").read_text().splitlines(keepends=True)[:100]))
    bad: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"data": {**data, "target": str(short)}}, DataError, "300 in .* and 100 in"),
        ({"data": {**data, "source": str(folder / "none.xx")}}, DataError, "no file"),
        ({"data": {**data, "source": "nothing/train.xx"}}, DataError, "no file nothing/train.xx"),
        ({"data": {**data, "longest": 2}}, DataError, "at most 2 tokens"),
        ({"data": {**data, "vocabulary": 100}}, ConfigError, "at least 260"),
        ({"model": {"translator": "autoregresive"}}, ConfigError, "autoregressive"),
        ({"model": {"translator": "autoregressive", "widht": 3}}, ConfigError, "widht"),
        ({"start_from": str(tmp_path / "nowhere")}, ArtifactError, "nowhere"),
    ]
    for changes, error, word in bad:
        with pytest.raises(error, match=word):
            train_translation_run(small_config(**changes), place)
        assert not place.exists(), changes


def test_a_damaged_model_is_an_artifact_error_that_names_the_file(
    tmp_path: Path, trained: Path
) -> None:
    place = tmp_path / "copy"
    shutil.copytree(trained / "model", place)
    content = bytearray((place / "tensors.safetensors").read_bytes())
    content[-3] ^= 1
    (place / "tensors.safetensors").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"tensors\.safetensors is damaged"):
        load_translation_run(place)


def test_codes_are_frozen_for_the_last_share_of_training(
    tmp_path: Path, small_config: Maker, trained: Path
) -> None:
    training = {"steps": 4, "batch_size": 256, "checkpoint_every": 1, "keep_checkpoints": 4}
    config = small_config(
        model=LATENT,
        start_from=str(trained),
        training=training,
        frozen_codes_share=0.5,
        averaged_share=0.0,
    )
    train_translation_run(config, tmp_path / "run")
    checkpoints = Checkpoints(tmp_path / "run" / "translator", keep=4)
    states = [checkpoints.read(step).state["model"] for step in (1, 2, 3, 4)]
    books = [name for name in states[0] if name.startswith("bottleneck.")]
    changes = [
        any(not torch.equal(one[name], other[name]) for name in books)
        for one, other in pairwise(states)
    ]
    assert changes == [True, False, False]
