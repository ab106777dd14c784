"""The page of a translation model."""

from __future__ import annotations

from pathlib import Path

import pytest

from smalti.errors import ConfigError
from smalti.report import compare, make_report

pytest.importorskip("accelerate")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")
WORDS = ("ba", "de", "gi", "ko", "bu", "da", "ge", "ki")


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps whose tables learned codes."""
    from smalti.recipes.translation import TranslationConfig, train_translation_run
    from smalti.training import as_settings

    folder = tmp_path_factory.mktemp("pair")
    lines = [" ".join(WORDS[(n * k) % 8] for k in range(1, 5)) for n in range(1, 61)]
    for name in ("train.xx", "train.yy", "valid.xx", "valid.yy"):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts = {"source": "train.xx", "target": "train.yy"}
    parts |= {"valid_source": "valid.xx", "valid_target": "valid.yy"}
    config = {
        "kind": "translation",
        "data": {**{key: str(folder / name) for key, name in parts.items()}, "vocabulary": 300},
        "model": {
            "translator": "autoregressive",
            **{"dim": 16, "depth": 1, "decoder_depth": 1, "heads": 2, "ratio": 2},
        },
        "embedding": {
            "compressor": "differentiable",
            **{"choice": "centroid", "num_codebooks": 4, "codebook_size": 8},
        },
        "training": {"steps": 6, "batch_size": 64, "learning_rate": 1e-2, "evaluate_every": 3},
        "judged_sentences": 4,
    }
    place = tmp_path_factory.mktemp("runs") / "pair"
    assert train_translation_run(as_settings(TranslationConfig, config), place).finished
    return place


def test_a_translator_is_shown_with_its_curves_and_its_coded_words(translator: Path) -> None:
    made = make_report(translator)
    found = made.as_dict()["findings"]
    assert {"training_curves", "code_distribution", "storage"} <= found.keys()
    assert found["training_curves"]["numbers"]["train: loss"]["step"][-1] == 6
    assert made.tokens is not None
    assert len(made.tokens["words"]) == found["storage"]["numbers"]["rows"]
    assert "parameters" in made.headline.sentence
    assert len(made.headline.numbers) == 3
    assert make_report(translator / "model").headline.numbers == made.headline.numbers
    assert made.html().startswith("<!doctype html>")


def test_options_for_tables_do_not_fit_it(translator: Path) -> None:
    with pytest.raises(ConfigError, match="holds no table"):
        make_report(translator, against="x")
    with pytest.raises(ConfigError, match="can't compare a translation"):
        compare(translator, translator)
