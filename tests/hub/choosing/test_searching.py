"""A search stays within its budget, and its frontier has no dominated trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file

from smalti.embeddings import CompressedEmbedding, Compressor, build_compressor
from smalti.errors import ConfigError
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.judging import Judge, Verdict
from smalti.hub.choosing.searching import LADDER, Search, describe
from smalti.hub.choosing.survey import Survey, survey
from smalti.hub.compressing import table_of
from smalti.hub.opening import Opened, open_model

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def opened(small_model: Callable[[str], Path]) -> Opened:
    return open_model(small_model("encoder"))


@pytest.fixture(scope="module")
def known(opened: Opened, text_file: Path) -> Survey:
    return survey(opened.tokenizer, 400, [text_file], progress=False)


@pytest.fixture(scope="module")
def table(opened: Opened, known: Survey) -> Table:
    return table_of(opened, known, choosing=True)


@pytest.fixture(scope="module")
def judge(opened: Opened, known: Survey) -> Judge:
    return Judge(opened, known.judging[:64])


@pytest.fixture
def search(table: Table, judge: Judge) -> Search:
    return Search(table, judge, progress=False)


@pytest.fixture(scope="module")
def searched(table: Table, judge: Judge) -> Search:
    """A search over several sizes and all methods."""
    made = Search(table, judge, progress=False)
    for percent in (6, 14, 25, 30, 45):
        made.within(percent, every_method=True)
    return made


@pytest.mark.parametrize("percent", [5.5, 14, 22, 27.3, 60, 100])
def test_the_best_of_a_size_is_within_it_and_counts_what_is_saved(
    percent: float, search: Search, tmp_path: Path
) -> None:
    best = search.within(percent)
    assert all(trial.bytes <= percent / 100 * 4 * 400 * 24 for trial in search.trials)
    assert best.verdict.drop == min(trial.verdict.drop for trial in search.trials)
    save_file(search.fitted(best).state_dict(), tmp_path / "table.safetensors")
    saved = load_file(tmp_path / "table.safetensors")
    assert best.bytes == sum(tensor.nbytes for tensor in saved.values())
    assert best.percent == pytest.approx(100 * best.bytes / (4 * 400 * 24))


@pytest.mark.slow
def test_all_methods_are_tried_where_that_is_asked_for(searched: Search) -> None:
    specs = [trial.compressor.spec() for trial in searched.trials]
    names = {spec["compressor"] for spec in specs} | {
        spec["rest"]["compressor"] for spec in specs if "rest" in spec
    }
    assert {"integer", "low_rank", "residual", "partial", "sparse", "unknown", "product"} <= names


@pytest.mark.slow
def test_the_frontier_has_all_that_no_other_beats_and_no_more(searched: Search) -> None:
    def beaten(one: tuple[int, float], by: tuple[int, float]) -> bool:
        return by[0] <= one[0] and by[1] <= one[1] and by != one

    places = {(trial.bytes, trial.verdict.drop) for trial in searched.trials}
    expected = sorted(one for one in places if not any(beaten(one, by) for by in places))
    found = [(trial.bytes, trial.verdict.drop) for trial in searched.frontier()]
    assert found == expected
    assert 1 < len(found) < len(searched.trials)


def told_search(cosines: Mapping[Compressor, float], monkeypatch: pytest.MonkeyPatch) -> Search:
    """A search among these compressors, whose tables have these cosines."""
    fitted: list[Compressor] = []

    class Remembering(Table):
        def fit(self, compressor: Compressor, seed: int) -> Any:
            fitted.append(compressor)
            return super().fit(integers(8), seed)

    def judge(_: CompressedEmbedding) -> Verdict:
        return Verdict(cosines[fitted[-1]])

    monkeypatch.setattr(Search, "candidates", staticmethod(lambda *_, **__: list(cosines)))
    table = Remembering(torch.randn(8, 4), torch.ones(8))
    return Search(table, cast("Judge", judge), progress=False)


def integers(bits: int) -> Compressor:
    return build_compressor("integer", bits=bits)


def turned(bits: int) -> Compressor:
    return build_compressor("turned", rest=integers(bits))


@pytest.mark.parametrize("ahead", [0.0, 1e-9, -1e-9, 0.05, -0.05])
def test_a_turned_table_does_not_decide_over_those_of_other_methods(
    ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cosines = {integers(4): 0.9, turned(4): 0.9 + ahead, integers(8): 1.0, integers(2): 0.5}
    search = told_search(cosines, monkeypatch)
    assert search.within(50).compressor == integers(8)
    assert {trial.compressor for trial in search.trials} == set(cosines)


@pytest.mark.parametrize(
    ("first_turned", "first_plain"),
    [
        (0.9, 0.9),
        (0.9, 0.9 - 1e-9),
        (0.9 - 1e-9, 0.9),
        (0.9, 0.891),
        (1.0, 1 - 1e-8),
        (1 - 1e-8, 1),
    ],
)
def test_a_near_tie_leaves_out_neither_turned_tiers_nor_plain_ones(
    first_turned: float, first_plain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {turned(6): 0.8, integers(6): 0.8, integers(2): 0.5}
    cosines = {turned(4): first_turned, integers(4): first_plain, **others}
    search = told_search(cosines, monkeypatch)
    search.within(50)
    assert {trial.compressor for trial in search.trials} == set(cosines)


def test_tiers_whose_first_is_clearly_worse_are_left_out_but_not_plain_codes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tried(first_turned: float, first_plain: float) -> list[Compressor]:
        cosines = {turned(4): first_turned, turned(6): 0.8, integers(4): first_plain}
        search = told_search({**cosines, integers(6): 0.8, integers(2): 0.5}, monkeypatch)
        search.within(50)
        return [trial.compressor for trial in search.trials]

    # 0.2 is lost in the place of 0.1.
    assert tried(0.9, 0.8) == [turned(4), integers(4), turned(6), integers(2)]
    assert tried(0.8, 0.9) == [turned(4), integers(4), integers(6), integers(2)]


def test_where_no_tiers_fit_all_quick_methods_are_tried(search: Search) -> None:
    # At a byte a number and more one way of storing serves all rows.
    found = search.candidates(search.table, 90, 0)
    every = search.candidates(search.table, 90, 0, every_method=True)
    names = [compressor.spec()["compressor"] for compressor in found]
    assert {"product", "turned", "integer", "low_rank", "residual", "partial"} == set(names)
    slow = {compressor.spec()["compressor"] for compressor in set(every) - set(found)}
    assert slow == {"compositional", "differentiable"}


def test_nothing_is_tried_twice(search: Search) -> None:
    search.within(20)
    tried = len(search.trials)
    search.within(20)
    assert len(search.trials) == tried
    assert search.attempt(search.trials[0].compressor) is search.trials[0]


def test_the_smallest_table_of_a_drop_keeps_to_it(search: Search) -> None:
    found = search.losing(1.0)
    assert found.verdict.drop <= 1.0
    steps = [percent for percent in LADDER if percent < found.percent]
    assert steps
    # A step below it on the ladder the best table loses more.
    assert search.within(steps[-1]).verdict.drop > 1.0


def test_a_drop_that_nothing_keeps_to_names_the_closest(search: Search) -> None:
    with pytest.raises(ConfigError, match=r"no table loses at most 1e-09 %; the closest, .* loses"):
        search.losing(1e-9)


def test_a_size_that_nothing_fits_says_so(search: Search) -> None:
    with pytest.raises(ConfigError, match=r"no table fits into 0.01 % of 38,400 bytes; allow"):
        search.within(0.01)


def test_a_table_that_is_too_small_to_code_is_no_accident(judge: Judge, table: Table) -> None:
    tiny = Table(table.vectors[:3, :2].clone(), table.counts[:3] + 1)
    with pytest.raises(ConfigError, match="too small"):
        Search(tiny, judge, progress=False).losing(2.0)


def test_the_seed_decides_the_table(table: Table, judge: Judge) -> None:
    def found(seed: int) -> tuple[CompressedEmbedding, float]:
        search = Search(table, judge, seed=seed, progress=False)
        trial = search.attempt(build_compressor("product", num_codebooks=6, codebook_size=16))
        return search.fitted(trial), trial.verdict.cosine

    (one, one_cosine), (same, same_cosine), (other, _) = found(0), found(0), found(1)
    assert torch.equal(one.dense(), same.dense())
    assert one_cosine == same_cosine
    assert not torch.equal(one.dense(), other.dense())


def test_a_taught_table_is_a_trial_of_its_own_and_taught_once(search: Search) -> None:
    calls = []

    def teacher(table: CompressedEmbedding) -> CompressedEmbedding:
        calls.append(table)
        # What is best for the outputs: the numbers of the original.
        return build_compressor("full").fit(search.table.vectors)

    trial = search.attempt(build_compressor("integer", bits=2))
    best = search.teach(trial, teacher)
    assert best.taught
    assert best.verdict.cosine > trial.verdict.cosine
    assert search.trials == [trial, best]
    assert best.as_dict()["table"] == "integer(bits=2), taught"
    assert torch.equal(search.fitted(best).dense(), search.table.vectors)
    assert calls == [search.fitted(trial)]
    assert search.teach(trial, teacher) is best
    assert len(calls) == 1


def test_a_compressor_is_told_in_a_few_words() -> None:
    nested = {"compressor": "partial", "keep": 0.5, "kept": "float16", "rest": "unknown"}
    spec = {"compressor": "partial", "keep": 20, "kept": {"compressor": "low_rank", "rank": 3}}
    assert (
        describe(build_compressor({**spec, "rest": nested}))
        == "20 rows low_rank(rank=3), rest 50% of seen rows float16, rest unknown()"
    )
