"""Kinds of experiments on coded tables: with a task, and without one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from smalti.errors import ConfigError
from smalti.experiments.kinds import kind_named

pytest.importorskip("accelerate")

SETTINGS = {
    "task": "language_model",
    "dim": 8,
    "hidden": 8,
    "window": 6,
    "training": {"steps": 6, "batch_size": 4, "evaluate_every": 2, "tensorboard": False},
}
CODED = {"compressor": "differentiable", "num_codebooks": 4, "codebook_size": 8}


def measured(
    kind: str, settings: Mapping[str, Any], place: Path = Path(), seed: int = 0
) -> dict[str, float]:
    return dict(kind_named(kind).measure(dict(settings), seed, place).metrics)


@pytest.fixture
def penn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up text in the place of the Penn Treebank."""
    chance = random.Random(0)
    folder = tmp_path / "data" / "text" / "ptb"
    folder.mkdir(parents=True)
    for split in ("train", "valid", "test"):
        lines = (" ".join(f"w{chance.randrange(40)}" for _ in range(9)) for _ in range(20))
        (folder / f"ptb.{split}.txt").write_text("\n".join(lines))
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path / "data"))


@pytest.mark.parametrize(
    ("settings", "ratio"),
    [
        # By hand: 32 n d bits over n D log2 K bits of codes and 32 K d bits of codewords.
        ((30_522, 768, 128, 32, False), 36.9),
        ((32_000, 512, 32, 32, False), 92.9),
        ((32_000, 512, 32, 32, True), 102.1),
    ],
)
def test_a_table_is_as_small_as_the_formula_says(
    settings: tuple[int, int, int, int, bool], ratio: float
) -> None:
    names = ("rows", "dim", "num_codebooks", "codebook_size", "shared")
    found = measured("table_size", dict(zip(names, settings, strict=True)))
    assert found["ratio"] == pytest.approx(ratio, abs=0.05)
    assert found["formula_ratio"] == pytest.approx(ratio, abs=0.05)


def test_codes_of_other_sizes_take_whole_bits() -> None:
    sizes = {"rows": 1000, "dim": 8, "num_codebooks": 4, "codebook_size": 5, "shared": False}
    found = measured("table_size", sizes)
    # By hand: 12 bits a row and 160 bytes of codewords; by the formula 9.29 bits a row.
    assert found["table_kb"] == pytest.approx(1.66)
    assert found["ratio"] == pytest.approx(32_000 / 1660)
    assert found["formula_ratio"] == pytest.approx(32_000 / (1161.0 + 160), rel=1e-3)


@pytest.mark.parametrize(
    ("books", "size", "dim", "rank"),
    # By hand: D (K - 1) + 1, or the width where that is less.
    [(8, 4, 32, 25), (16, 2, 32, 17), (8, 8, 32, 32)],
)
def test_the_rank_of_random_codes_is_that_of_the_corrected_formula(
    books: int, size: int, dim: int, rank: int
) -> None:
    settings = {"rows": 500, "dim": dim, "num_codebooks": books, "codebook_size": size}
    found = measured("table_rank", settings, seed=3)
    assert (found["rank"], found["formula_rank"], found["full_rank"]) == (rank, rank, 32)


@pytest.mark.usefixtures("penn")
def test_a_task_gives_scores_sizes_and_what_became_of_codes(tmp_path: Path) -> None:
    settings = {**SETTINGS, "embedding": CODED}
    found = measured("texts", settings, tmp_path / "run")
    assert found == measured("texts", settings, tmp_path / "again")
    # By hand: 40 words, the end and the unknown word; 12 bits a row and 256 bytes of codewords.
    assert found["table_kb"] == pytest.approx((42 * 12 / 8 + 8 * 8 * 4) / 1000)
    assert found["ratio"] == pytest.approx(found["formula_ratio"])
    assert found["exported_equals_trained"] == 1
    assert 0 < found["evenness"] <= 1
    assert found["rank"] <= found["formula_rank"] == 8
    halves = (found["changed_early"] + found["changed_late"]) / 2
    # Two changes between three looks: one in each half.
    assert found["changed"] == pytest.approx(halves)
    full = measured("texts", SETTINGS, tmp_path / "full")
    assert (full["ratio"], full["formula_ratio"]) == (1, 1)
    assert "evenness" not in full


@pytest.mark.usefixtures("penn")
def test_neighbours_of_a_full_table_are_compared_with_those_of_another_start(
    tmp_path: Path,
) -> None:
    settings = {**SETTINGS, "common": 20}
    again = measured("table_neighbours", settings, tmp_path / "control")
    coded = measured("table_neighbours", {**settings, "embedding": CODED}, tmp_path / "coded")
    # The same full table in both; its rival is another training, or its codes.
    assert again["full_cosine"] == coded["full_cosine"]
    assert again["overlap"] < 1
    assert again["cosine"] != again["full_cosine"]
    assert (again["ratio"], coded["ratio"] > 1) == (1, True)


@pytest.mark.usefixtures("penn")
def test_neighbours_are_listed_and_codes_where_they_are_few(tmp_path: Path) -> None:
    settings = {**SETTINGS, "common": 20}
    kind = kind_named("table_neighbours")
    places = [tmp_path / name for name in ("control", "coded")]
    for place in places:
        place.mkdir()
    listing = kind.measure(dict(settings), 0, places[0]).details["listing"]
    assert listing["columns"] == ["word", "nearest in the full table", "nearest in this one"]
    for _, *sides in listing["rows"]:
        for side in sides:
            cosines = [float(one.split()[1]) for one in side.split(", ")]
            assert len(cosines) == 5
            assert cosines == sorted(cosines, reverse=True)
    named = [word for row in listing["rows"] for word in (row[0], row[1].split()[0])]
    assert len(set(named)) == len(named)
    coded = kind.measure({**settings, "embedding": CODED}, 0, places[1]).details["listing"]
    assert coded["columns"][2:] == ["its codes", "the nearest one's"]
    assert [row[:2] for row in coded["rows"]] == [
        [word, near.split()[0]] for word, near, _ in listing["rows"]
    ]


def test_an_unknown_task_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="masked_model"):
        measured("texts", {"task": "langauge_model"}, tmp_path)
