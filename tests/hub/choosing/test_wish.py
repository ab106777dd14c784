"""What may be asked for, and what may not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from smalti.embeddings import build_compressor
from smalti.errors import ConfigError, SmaltiError
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.wish import as_wish, check_wish, named_compressor


@pytest.fixture
def table() -> Table:
    generator = torch.Generator().manual_seed(0)
    counts = (500 / torch.arange(1, 301)).ceil().double()
    return Table(torch.randn(300, 24, generator=generator), counts, (0, 1))


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"size": "5%", "max_drop": "1%"}, "a size or a largest drop, not both"),
        ({"settings": {"bits": 4}}, "settings need a method"),
        ({"method": "integer", "max_drop": "1%"}, "a largest drop is for choosing"),
        ({"keep": 100, "max_drop": "1%"}, "a largest drop is for choosing"),
        ({"kept": "int8"}, "say also how many"),
        ({"keep": 100, "kept": "int3"}, "float32, float16, int8, int4"),
        ({"keep": 0}, "keep must be"),
        ({"method": "nothing"}, "the known ones are: .*product"),
        ({"method": "nothing", "size": "5%"}, "the known ones are: .*product"),
        ({"method": "product", "settings": {"bits": 4}}, "it has: num_codebooks"),
        ({"method": "product", "settings": {"bits": 4}, "size": "5%"}, "it has: num_codebooks"),
        ({"method": "partial", "keep": 5, "settings": {"keep": 6}}, "given twice"),
        ({"size": "0%"}, "size must be"),
        ({"max_drop": "101%"}, "max_drop must be"),
    ],
)
def test_contradictions_are_found_before_anything_is_opened(
    wishes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_wish(as_wish(**wishes))


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"size": "5%"},
        {"max_drop": 0},
        {"method": "low_rank", "size": "5%"},
        {"method": build_compressor("integer"), "size": 0.3},
        {"keep": 0.5, "kept": "integer", "size": "50%"},
        {"method": "partial", "keep": 5, "kept": "int8"},
    ],
)
def test_what_makes_sense_passes(wishes: dict[str, Any]) -> None:
    check_wish(as_wish(**wishes))


def test_rows_to_keep_are_partials_own_setting(table: Table) -> None:
    wish = as_wish(method="partial", keep=0.5, kept="int8", settings={"rest": "integer"})
    assert named_compressor(table, wish).spec() == {
        "compressor": "partial",
        "keep": 0.5,
        "kept": "int8",
        "rest": {"compressor": "integer", "bits": 8, "group": None},
    }


def test_kept_rows_alone_get_codes_that_fit_the_width(table: Table) -> None:
    made = table.fit(named_compressor(table, as_wish(keep=50)), seed=0)
    assert made.size().total < table.dense_bytes
    assert torch.equal(made.dense()[:50], table.vectors[:50])


@pytest.mark.parametrize(
    "wishes",
    [
        {"method": "product", "settings": {"num_codebooks": 12}},
        {"method": "integer"},
        {"keep": 250},
    ],
)
def test_what_does_not_fit_is_refused_with_the_budget(table: Table, wishes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"does not fit into 4 % of 28,800 bytes"):
        named_compressor(table, as_wish(size="4%", **wishes))


def test_settings_that_can_not_work_are_not_called_too_large(table: Table) -> None:
    wish = as_wish(size="50%", method="product", settings={"num_codebooks": 7})
    with pytest.raises(SmaltiError, match="divide the width 24"):
        named_compressor(table, wish)


@pytest.mark.parametrize("method", ["product", "integer", "low_rank", "residual", "sparse"])
def test_a_method_with_a_size_is_made_to_fit(table: Table, method: str) -> None:
    made = table.fit(named_compressor(table, as_wish(size="90%", method=method)), seed=0)
    assert made.size().total <= 0.9 * table.dense_bytes


def test_a_wish_knows_what_it_allows() -> None:
    assert as_wish(size="10%").allows(100, 1000, drop=50.0)
    assert not as_wish(size="10%").allows(101, 1000, drop=0.0)
    assert as_wish(max_drop="1%").allows(900, 1000, drop=1.0)
    assert not as_wish(max_drop="1%").allows(1, 1000, drop=1.1)
    # Neither asked for: at most two percent.
    assert as_wish().allows(900, 1000, drop=2.0)
    assert not as_wish().allows(1, 1000, drop=2.1)
