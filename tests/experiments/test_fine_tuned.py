"""Other tables in fine-tuned models: what they are, what is measured, and what is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from smalti.data import Labelled
from smalti.embeddings import Partial, Sparse, Unknown
from smalti.errors import ConfigError
from smalti.experiments import known_tables, run_table, table_named
from smalti.experiments.fine_tuned.changes import (
    Changed,
    candidates,
    noisy_rows,
    paper_parameters,
    with_noise,
)
from smalti.experiments.fine_tuned.measuring import closeness, over_tasks
from smalti.experiments.fine_tuned.settings import Coded, FineTunedSettings
from smalti.experiments.fine_tuned.spaces import moved_to
from smalti.experiments.kinds import kind_named
from smalti.experiments.kinds.vocabulary import padded_coverage
from smalti.hub.choosing.candidates import Table
from smalti.training import as_settings

COUNTS = torch.tensor([9.0, 0, 4, 7, 1, 0, 2, 5])


def rows(amount: int = 8, dim: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(amount, dim, generator=torch.Generator().manual_seed(seed))


def fitted(neighbours: int, table: torch.Tensor) -> Any:
    return Partial(keep=4, rest=Sparse(neighbours)).fit(table, counts=COUNTS)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        # By hand: row 0 is special; 3 and 7 and 2 are the commoner half of 2, 3, 4, 6, 7.
        ("common", [2, 3, 7]),
        ("rare", [4, 6]),
        ("unseen", [1, 5]),
    ],
)
def test_noise_goes_to_rows_by_their_use(which: str, expected: list[int]) -> None:
    table = Table(rows(), COUNTS, special=(0,))
    assert noisy_rows(table, which, torch.Generator()).tolist() == expected


def test_common_rows_as_often_are_used_no_more_than_the_rare_ones() -> None:
    counts = torch.cat([torch.full((50,), 3.0), torch.full((50,), 2.0)])
    table = Table(rows(100), counts)
    chosen = noisy_rows(table, "common, as often", torch.Generator().manual_seed(0))
    # Rare rows are used 100 times: 33 common rows 99 times.
    assert len(chosen) == 33
    assert int(chosen.max()) < 50


def test_noise_is_as_long_as_it_is_asked_to_be() -> None:
    table = rows()
    made = with_noise(table, torch.tensor([1, 4]), 0.5, torch.Generator().manual_seed(0))
    steps = (made - table).norm(dim=1) / table.norm(dim=1)
    expected = torch.zeros(8)
    expected[[1, 4]] = 0.5
    torch.testing.assert_close(steps, expected)


def test_weights_that_stay_in_their_space_change_nothing() -> None:
    table = fitted(3, rows())
    before = table.dense().detach().clone()
    moved_to(table, rows())
    torch.testing.assert_close(table.dense(), before)


def test_weights_move_to_the_rows_of_another_space() -> None:
    first, other = rows(), rows(seed=1) * 3
    table = fitted(2, first)
    moved_to(table, other)
    dense = table.dense().detach()
    kept = [0, 2, 3, 7]
    torch.testing.assert_close(dense[kept], other[kept])
    # By equations 2 and 3 of the paper: neighbours and weights of the first space.
    units = first / first.norm(dim=1, keepdim=True)
    cosines = units @ units[kept].T
    for row in (1, 4, 5, 6):
        near = [kept[place] for place in cosines[row].topk(2).indices.tolist()]
        apart = units[row] - units[near]
        gram = (apart @ apart.T).double()
        gram += 1e-3 * gram.trace() * torch.eye(2)
        weights = torch.linalg.solve(gram, torch.ones(2).double())
        weights = (weights / weights.sum()).float()
        sources = other[near] / other[near].norm(dim=1, keepdim=True)
        summed = weights @ sources
        expected = other[row].norm() * summed / summed.norm()
        torch.testing.assert_close(dense[row], expected, atol=1e-4, rtol=1e-4)


def test_only_sparse_codes_move() -> None:
    table = Partial(keep=4, rest=Unknown()).fit(rows(), counts=COUNTS)
    with pytest.raises(ConfigError, match="sparse codes"):
        moved_to(table, rows())


def test_parameters_are_counted_as_in_the_paper() -> None:
    table = fitted(3, rows())
    made = Changed(table.dense(), table, table.size().total, "", 0.0)
    # 4 rows of 6, and 4 of 3 ids, 3 weights and a length.
    assert paper_parameters(made) == 4 * 6 + 4 * 7
    assert paper_parameters(Changed(rows(), None, 192, "", 0.0)) == 48


def test_of_each_family_the_first_that_fits_is_tried() -> None:
    table = Table(rows(400, 24), torch.arange(400).double(), unknown=1)
    product = [{"compressor": "product", "num_codebooks": parts} for parts in (12, 7, 6, 4)]
    integer = [{"compressor": "integer", "bits": bits} for bits in (8, 4)]
    whole = {"compressor": "full"}
    every = as_settings(Coded, {"options": [product, integer]})
    assert [one.spec()["compressor"] for one in candidates(table, every)] == ["product", "integer"]
    # By hand: 38,400 bytes; codebooks of 12,288, and 400 bytes a part; 7 does not divide 24.
    within = {"of": whole, "share": (12_288 + 2_400) / 38_400}
    some = as_settings(Coded, {"options": [product, integer], "within": within})
    assert [
        one.spec().get("num_codebooks", one.spec().get("bits")) for one in candidates(table, some)
    ] == [6, 8]
    none = as_settings(Coded, {"options": [product], "within": {"of": whole, "share": 0.01}})
    with pytest.raises(ConfigError, match="nothing fits into 384 bytes"):
        candidates(table, none)


def test_the_row_of_the_unknown_token_is_the_vocabularys_own() -> None:
    table = Table(rows(), COUNTS, unknown=5)
    asked = {"compressor": "partial", "rest": {"compressor": "unknown", "row": "unknown"}}
    (made,) = candidates(table, as_settings(Coded, {"options": [[asked]]}))
    assert made.spec()["rest"]["row"] == 5


def test_closeness_is_of_rows_that_changed_and_by_use() -> None:
    before = torch.tensor([[1.0, 0], [0, 2], [3, 0], [0, 0]])
    after = torch.tensor([[1.0, 0], [2, 0], [3, 3], [0, 0]])
    found = closeness(before, after, torch.tensor([1.0, 1, 0, 0]))
    half = 100 * 2**-0.5
    # By hand: cosines 1, 0, 0.7071, and 1 for the row of zeros that stays.
    assert found["cosine_changed"] == pytest.approx(half / 2)
    assert found["cosine_seen"] == pytest.approx(50)
    assert found["cosine_unseen"] == pytest.approx((half + 100) / 2)
    # Steps of 2.828 and 3 from lengths of 2 and 3.
    assert found["error"] == pytest.approx((2**0.5 + 1) / 2)
    same = closeness(before, before, torch.ones(4))
    assert (same["cosine_changed"], same["error"]) == (100, 0)


def test_scores_are_averaged_and_seconds_added_up() -> None:
    made = over_tasks(
        {
            "CoLA": {"score": 40.0, "fit_seconds": 2.0, "bytes": 10.0, "accuracy": 80.0},
            "STS-B": {"score": 80.0, "fit_seconds": 3.0, "bytes": 30.0},
        }
    )
    expected = {"average": 60, "fit_seconds": 5, "bytes": 20, "score_CoLA": 40, "score_STS-B": 80}
    assert expected.items() <= made.items()
    assert made["accuracy_CoLA"] == 80


def test_the_papers_coverage_counts_padding(word_tokenizer: Any) -> None:
    examples = Labelled(["w5 w6", "w7 w5 w5"], None, torch.zeros(2).long(), ("a",), "made up")
    # By hand: w6 and w7 are not kept; two texts padded to 10 are 20 tokens.
    kept = torch.tensor([0, 1, 2, 3, 5])
    assert padded_coverage(word_tokenizer, examples, kept, 10) == pytest.approx(18 / 20)


def test_every_arm_has_settings_that_are_understood() -> None:
    for table in known_tables():
        if table.kind == "fine_tuned" and table.untestable is None:
            for scale in ("tiny", "laptop", "paper"):
                for arm in table.arms_at(scale):
                    asked = as_settings(FineTunedSettings, table.settings(arm, scale))
                    assert asked.training_of("MRPC", 1).seed == 1


@pytest.fixture
def glue(public: Callable[[str], Path]) -> None:
    public("glue/CoLA/train.tsv")


@pytest.mark.data
@pytest.mark.usefixtures("glue")
def test_one_fine_tuning_serves_all_arms_and_an_interrupted_arm_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("accelerate")
    table = table_named("sparse-neighbours")
    results, work = tmp_path / "results", tmp_path / "work"
    (first,) = run_table(table, "tiny", results, work, "5 neighbours")
    models = [path for path in (work / "fine-tuned").iterdir() if path.is_dir()]
    assert [path.name.split(".")[0] for path in models] == ["CoLA"]
    monkeypatch.setattr("smalti.hub.fine_tuning.train", None)
    (unknown,) = run_table(table, "tiny", results, work, "unknown")
    assert unknown.metrics["cosine_changed"] < first.metrics["cosine_changed"]
    assert 0 < unknown.metrics["share"] < first.metrics["share"] < 100
    assert unknown.metrics["moved"] == first.metrics["moved"] > 0
    # Nor is there another for what is measured in half of the bits.
    half = {**table.settings(table.arm("unknown"), "tiny"), "measured_in": "bf16"}
    place = work / "half" / "tiny" / "arm"
    place.mkdir(parents=True)
    found = kind_named("fine_tuned").measure(half, 0, place)
    assert found.metrics["accuracy"] == pytest.approx(unknown.metrics["accuracy"], abs=10)
    assert sorted(path.name for path in models[0].glob("original.*")) == [
        "original.bf16.json",
        "original.float32.json",
    ]
    # What is measured already is not measured again.
    place = tmp_path / "arm"
    place.mkdir()
    figures = {"score": 12.0, "loss": 1.0}
    (place / "CoLA.json").write_text(json.dumps([figures, {"table": "made before"}]))
    settings = table.settings(table.arm("unknown"), "tiny")
    again = kind_named("fine_tuned").measure(settings, 0, place)
    assert again.metrics["average"] == 12


@pytest.mark.data
@pytest.mark.usefixtures("glue")
def test_a_model_that_another_process_fine_tunes_comes_last(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    table = table_named("sparse-noise")
    settings = {**table.settings(table.arms[0], "tiny"), "tasks": ["CoLA", "RTE"]}
    place = tmp_path / "some" / "tiny" / "arm"
    place.mkdir(parents=True)
    kind_named("fine_tuned").measure({**settings, "tasks": ["CoLA"]}, 0, place)
    (place / "CoLA.json").unlink()
    (lock,) = (tmp_path / "fine-tuned").glob("CoLA.*.lock")
    with ThreadPoolExecutor(1) as other:
        with FileLock(lock):
            measured = other.submit(kind_named("fine_tuned").measure, settings, 0, place)
            end = time.monotonic() + 60
            while not (place / "RTE.json").exists() and time.monotonic() < end:
                time.sleep(0.05)
            assert (place / "RTE.json").exists()
            assert not (place / "CoLA.json").exists()
            assert not measured.done()
        found = measured.result().metrics
    assert list(measured.result().details["tasks"]) == ["CoLA", "RTE"]
    assert {"score_CoLA", "score_RTE"} <= found.keys()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.usefixtures("glue")
def test_a_searched_table_keeps_within_its_budget(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    table = table_named("sparse-neighbours")
    settings = table.settings(table.arms[0], "tiny")
    half = {"of": {"compressor": "full"}, "share": 0.5}
    settings["change"] = {"kind": "searched", "within": half, "teach": False}
    place = tmp_path / "some" / "tiny" / "arm"
    place.mkdir(parents=True)
    found = kind_named("fine_tuned").measure(settings, 0, place)
    assert 0 < found.metrics["share"] <= 50
    assert not any(place.glob("*.txt"))
