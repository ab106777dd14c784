"""A small language pair of made-up words, and a model of it, trained once a session."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("accelerate")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

WORDS = ["".join(parts) for parts in product("bdgk", "aeiou")]
LEXICON = {word: f"{word[::-1].capitalize()}t" for word in WORDS}


def made_up_pairs(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Sentences of 2 to 6 words, and the same word by word in the other language."""
    chance = random.Random(seed)
    sources = [" ".join(chance.choices(WORDS, k=chance.randint(2, 6))) for _ in range(count)]
    return sources, [" ".join(LEXICON[word] for word in text.split()) for text in sources]


def write_pairs(folder: Path, name: str, count: int, seed: int) -> tuple[Path, Path]:
    """Two aligned files in a folder."""
    paths = folder / f"{name}.xx", folder / f"{name}.yy"
    for path, lines in zip(paths, made_up_pairs(count, seed), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the pair: train and valid, .xx and .yy."""
    place = tmp_path_factory.mktemp("pair")
    write_pairs(place, "train", 300, seed=1)
    write_pairs(place, "valid", 30, seed=2)
    return place


@pytest.fixture(scope="session")
def small_config(folder: Path) -> Callable[..., Any]:
    """Makes a config of a tiny model; what is given replaces whole parts."""
    from smalti.recipes.translation import TranslationConfig
    from smalti.training import as_settings

    def make(**changes: Any) -> Any:
        content = {
            "kind": "translation",
            "data": {
                "source": str(folder / "train.xx"),
                "target": str(folder / "train.yy"),
                "valid_source": str(folder / "valid.xx"),
                "valid_target": str(folder / "valid.yy"),
                "vocabulary": 320,
            },
            "model": {
                "translator": "autoregressive",
                **{"dim": 32, "depth": 1, "decoder_depth": 1, "heads": 2, "ratio": 2},
                "dropout": 0.1,
            },
            "training": {
                **{"steps": 40, "batch_size": 256, "learning_rate": 1e-2},
                **{"evaluate_every": 10, "checkpoint_every": 15},
            },
            "averaged_share": 0.5,
            "judged_sentences": 10,
            "decoding": {"beam": 2, "length_penalties": [0.5, 1.0]},
        }
        return as_settings(TranslationConfig, {**content, **changes})

    return make


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, small_config: Callable[..., Any]) -> Path:
    """The directory of a small run."""
    from smalti.recipes.translation import train_translation_run

    place = tmp_path_factory.mktemp("runs") / "pair"
    assert train_translation_run(small_config(), place).finished
    return place


@pytest.fixture(scope="session")
def run(trained: Path) -> Any:
    """The model of that run."""
    from smalti.recipes.translation import load_translation_run

    return load_translation_run(trained)


LATENT = {
    "translator": "latent",
    "quantizer": {"quantizer": "vector", "codebook_size": 16},
    **{"compressions": 2, "dim": 32, "depth": 1, "decoder_depth": 1, "predictor_depth": 1},
    **{"heads": 2, "ratio": 2},
}


@pytest.fixture(scope="session")
def latent(
    tmp_path_factory: pytest.TempPathFactory, small_config: Callable[..., Any], trained: Path
) -> Any:
    """A latent model that started from the other one."""
    from smalti.recipes.translation import load_translation_run, train_translation_run

    place = tmp_path_factory.mktemp("runs") / "latent"
    config = small_config(model=LATENT, start_from=str(trained), frozen_codes_share=0.25)
    assert train_translation_run(config, place).finished
    return load_translation_run(place)
