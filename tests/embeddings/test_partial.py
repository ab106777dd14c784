"""What is particular to Partial; the common contract is in tests/contracts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.embeddings import (
    CompressedEmbedding,
    Compressor,
    Full,
    Integer,
    LowRank,
    Partial,
    PartialTable,
    Product,
    ResidualCodes,
    Size,
    Sparse,
    Unknown,
    build_compressor,
    build_table,
    compressors,
)
from smalti.embeddings.partial import KEPT, commonest
from smalti.errors import ConfigError

NAMES = compressors.names()
ROWS, DIM, SPECIAL = 150, 12, (0, 140)
SMALL = Product(3, 8, iterations=3)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some_counts() -> Tensor:
    """As in a text: common rows anywhere, a third never seen; row 140 is special and rare."""
    counts = torch.zeros(ROWS)
    places = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))[:100]
    counts[places] = (1000 / torch.arange(1, 101)).ceil()
    counts[list(SPECIAL)] = 0.0
    return counts


def example(name: str) -> Compressor:
    """The example of a method, made to fit a narrower table."""
    settings = dict(compressors.get(name).example)
    if name == "integer":
        settings["group"] = 4
    return build_compressor(name, **settings)


def fit(compressor: Compressor, table: Tensor | None = None, **changed: Any) -> PartialTable:
    settings: dict[str, Any] = {"counts": some_counts(), "special": SPECIAL, **changed}
    made = compressor.fit(normal(ROWS, DIM) if table is None else table, **settings)
    assert isinstance(made, PartialTable)
    return made.eval()


def by_count(counts: Tensor, keep: int, special: tuple[int, ...] = ()) -> list[int]:
    """Sorted by falling count, then by id; special ones come on top."""
    order = sorted(range(len(counts)), key=lambda row: (-float(counts[row]), row))
    return sorted({*order[:keep], *special})


def as_expected(compressor: Compressor) -> tuple[Size, Size]:
    """The size before and after fitting."""
    settings: dict[str, Any] = {"counts": some_counts(), "special": SPECIAL}
    before = compressor.expected_size(ROWS, DIM, **settings)
    return before, compressor.fit(normal(ROWS, DIM), **settings).size()


def test_kept_rows_stay_bit_for_bit_and_the_others_do_not() -> None:
    table = normal(ROWS, DIM)
    made = fit(Partial(keep=30, rest=SMALL), table)
    kept = by_count(some_counts(), 30, SPECIAL)
    assert made.kept_ids().tolist() == kept
    dense = made.dense()
    assert torch.equal(dense[kept], table[kept])
    others = sorted(set(range(ROWS)) - set(kept))
    assert not (dense[others] == table[others]).all(dim=1).any()
    assert torch.equal(dense[others], made.rest.dense())


def test_special_rows_are_kept_on_top_of_the_common_ones() -> None:
    made = fit(Partial(keep=1, rest=SMALL))
    assert set(SPECIAL) < set(made.kept_ids().tolist())
    assert made.kept.rows == 3
    # A special row that is common anyway takes no second place.
    common = int(some_counts().argmax())
    assert fit(Partial(keep=1, rest=SMALL), special=[common]).kept.rows == 1


def test_equal_counts_are_kept_by_id() -> None:
    counts = torch.tensor([2.0, 5.0, 2.0, 0.0, 2.0, 9.0, 2.0])
    assert commonest(counts, 4, []).tolist() == [0, 1, 2, 5]
    assert commonest(torch.ones(1000), 500, []).tolist() == list(range(500))


@pytest.mark.parametrize(
    ("keep", "kept"), [(0.001, 1), (0.2, 1), (0.21, 2), (0.5, 3), (0.8, 4), (0.81, 5), (1.0, 5)]
)
def test_a_share_is_of_the_rows_that_occur_and_is_rounded_up(keep: float, kept: int) -> None:
    counts = torch.tensor([4.0, 0.0, 8.0, 1.0, 0.0, 0.0, 3.0, 0.5])
    assert commonest(counts, keep, []).tolist() == by_count(counts, kept)


def test_a_share_that_comes_out_even_is_not_rounded() -> None:
    assert len(commonest(torch.ones(100), 0.07, [])) == 7


def test_a_whole_number_may_ask_for_rows_that_do_not_occur() -> None:
    counts = torch.tensor([0.0, 7.0, 0.0, 0.0])
    assert commonest(counts, 2, []).tolist() == [0, 1]
    # One row and all rows that occur are different things.
    assert commonest(torch.tensor([3.0, 7.0, 1.0, 0.0]), 1, []).tolist() == [1]
    assert commonest(torch.tensor([3.0, 7.0, 1.0, 0.0]), 1.0, []).tolist() == [0, 1, 2]


@pytest.mark.parametrize("keep", [0, -1, 0.0, -0.5, 1.5, True, "many", None])
def test_what_is_no_number_of_rows_is_refused(keep: Any) -> None:
    with pytest.raises(ConfigError, match="keep"):
        Partial(keep=keep)


@pytest.mark.parametrize("keep", [ROWS, ROWS + 5, 1.0])
def test_keeping_everything_is_refused(keep: float) -> None:
    compressor = Partial(keep=keep, rest=SMALL)
    with pytest.raises(ConfigError, match=r"150 of 150 rows.*nothing to code"):
        compressor.fit(normal(ROWS, DIM), counts=torch.ones(ROWS))
    with pytest.raises(ConfigError, match="nothing to code"):
        compressor.expected_size(ROWS, DIM, counts=torch.ones(ROWS))


def test_special_rows_can_leave_nothing_to_code() -> None:
    with pytest.raises(ConfigError, match="nothing to code"):
        fit(Partial(keep=ROWS - 1, rest=SMALL), counts=torch.ones(ROWS), special=[ROWS - 1])


def test_counts_are_needed() -> None:
    with pytest.raises(ConfigError, match="pass counts="):
        Partial(keep=3, rest=SMALL).fit(normal(ROWS, DIM))
    with pytest.raises(ConfigError, match="counts"):
        Partial(keep=3, rest=SMALL).expected_size(ROWS, DIM)


@pytest.mark.parametrize("kept", [*KEPT, Full("float16"), Integer(3), LowRank(4), SMALL], ids=str)
def test_kept_rows_are_stored_as_asked(kept: Any) -> None:
    table = normal(ROWS, DIM)
    made = fit(Partial(keep=40, kept=kept, rest=SMALL), table)
    ids = made.kept_ids()
    alone = {
        "float32": Full(),
        "float16": Full("float16"),
        "int8": Integer(8),
        "int4": Integer(4),
    }.get(kept, kept)
    expected = alone.fit(table[ids], counts=some_counts()[ids])
    assert torch.equal(made.dense()[ids], expected.dense())
    assert made.kept.size() == expected.size()


def test_kept_forms_cost_what_their_numbers_take() -> None:
    sizes = {kept: fit(Partial(keep=40, kept=kept, rest=SMALL)).kept.size().total for kept in KEPT}
    rows = 42
    # Whole numbers have a float16 scale a row.
    assert sizes == {
        "float32": rows * DIM * 4,
        "float16": rows * DIM * 2,
        "int8": rows * (DIM + 2),
        "int4": rows * (DIM // 2 + 2),
    }


def test_an_unknown_form_is_named() -> None:
    with pytest.raises(ConfigError, match="float64"):
        Partial(kept="float64")
    with pytest.raises(ConfigError, match="no compressor 'huffman'"):
        Partial(rest="huffman")


@pytest.mark.parametrize("name", NAMES)
def test_any_method_codes_the_rest(name: str) -> None:
    table, rest = normal(ROWS, DIM), example(name)
    made = fit(Partial(keep=60, rest=rest), table)
    kept = made.kept_ids()
    others = torch.tensor(sorted(set(range(ROWS)) - set(kept.tolist())))
    dense = made.dense()
    assert torch.equal(dense[kept], table[kept])
    if name == "unknown":
        assert torch.equal(dense[others], table[1].expand(len(others), -1))
    elif name != "sparse":
        # The rest is coded as if it were a table by itself.
        alone = rest.fit(table[others], counts=some_counts()[others])
        assert torch.equal(dense[others], alone.eval().dense())
    hidden = normal(5, DIM, seed=2)
    scores = hidden.double() @ dense.double().T
    torch.testing.assert_close(made.logits(hidden).double(), scores, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kept", ["float32", "float16", "int8", "int4"])
def test_the_size_of_any_pair_is_known_before(name: str, kept: str) -> None:
    before, after = as_expected(Partial(keep=60, kept=kept, rest=example(name)))
    assert before == after


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"partial", "sparse"}])
def test_the_size_of_any_method_for_kept_rows_is_known_before(name: str) -> None:
    before, after = as_expected(Partial(keep=60, kept=example(name), rest="integer"))
    assert before == after


NESTED = {
    "two tiers below": Partial(30, "float32", Partial(30, "int8", SMALL)),
    "three tiers below": Partial(
        5, "float32", Partial(10, "float16", Partial(20, "int8", Partial(20, "int4", SMALL)))
    ),
    "sparse at the bottom": Partial(20, "float32", Partial(40, "int8", Sparse(3))),
    "sparse beside codes": Partial(60, SMALL, Sparse(3)),
    "residual codes above": Partial(40, ResidualCodes(2, 8), Partial(40, "int4", Unknown())),
    "shares": Partial(0.25, "float16", Partial(0.5, "int8", LowRank(3))),
}


@pytest.mark.parametrize("name", NESTED)
def test_the_size_of_nested_tiers_is_known_before(name: str) -> None:
    before, after = as_expected(NESTED[name])
    assert before == after


@pytest.mark.parametrize("kept", [Partial(20, "float32", Integer(4)), Sparse(3)], ids=repr)
def test_the_size_of_tiers_among_the_kept_rows_is_known_before(kept: Compressor) -> None:
    before, after = as_expected(Partial(110, kept, SMALL))
    assert before == after


def test_the_size_of_tiers_of_rows_that_never_occur_is_known_before() -> None:
    before, after = as_expected(Partial(100, "float32", Partial(20, "int8", SMALL)))
    assert before == after


def test_nested_tiers_go_by_falling_count() -> None:
    table, counts = normal(ROWS, DIM), some_counts()
    made = fit(Partial(10, "float32", Partial(20, "int8", SMALL)), table)
    first, second = by_count(counts, 10, SPECIAL), None
    assert made.kept_ids().tolist() == first
    others = [row for row in range(ROWS) if row not in first]
    inner = made.rest
    assert isinstance(inner, PartialTable)
    second = [others[place] for place in inner.kept_ids().tolist()]
    assert second == [others[place] for place in by_count(counts[others], 20)]
    dense = made.dense()
    assert torch.equal(dense[first], table[first])
    # Rounded to whole numbers of 8 bits: off by half a step at most, and a little of the scale.
    steps = table[second].abs().amax(dim=1, keepdim=True) / 127
    assert ((dense - table)[second].abs() <= 0.6 * steps).all()
    last = [row for row in others if row not in second]
    assert (dense - table)[last].abs().mean() > 10 * (dense - table)[second].abs().mean()


def test_the_vector_of_the_unknown_row_is_found_in_the_whole_table() -> None:
    table = normal(ROWS, DIM)
    for row in (int(some_counts().argmax()), 7, 0):
        made = fit(Partial(keep=20, rest=Unknown(row)), table)
        rare = [one for one in range(ROWS) if one not in made.kept_ids().tolist()]
        assert torch.equal(made.dense()[rare], table[row].expand(len(rare), -1))


def test_the_vector_of_the_unknown_row_is_found_through_tiers() -> None:
    table = normal(ROWS, DIM)
    made = fit(Partial(20, "float32", Partial(20, "int8", Unknown(7))), table)
    assert int((made.dense() == table[7]).all(dim=1).sum()) > 100


@pytest.mark.parametrize("rows", [3, 31, 32, 33, 64, 65, 200])
def test_every_row_is_found_whatever_the_number_of_rows(rows: int) -> None:
    table, rng = normal(rows, 4), np.random.default_rng(rows)
    for keep in sorted({1, rows // 2, rows - 1} - {0, rows}):
        counts = torch.from_numpy(rng.permutation(rows) + 1.0)
        made = Partial(keep, "float32", Full()).fit(table, counts=counts)
        assert torch.equal(made.dense(), table)
        ids = torch.from_numpy(rng.integers(0, rows, (5, 7)))
        assert torch.equal(made(ids), table[ids])
        torch.testing.assert_close(made.logits(table), table @ table.T)


def test_lookups_of_only_kept_and_only_other_rows_are_right() -> None:
    made = fit(Partial(keep=40, rest=SMALL))
    dense, kept = made.dense(), made.kept_ids()
    others = torch.tensor([row for row in range(ROWS) if row not in kept.tolist()])
    for ids in (kept, others, kept[:1], others[:1], torch.cat([others, kept]), kept[:0]):
        assert torch.equal(made(ids), dense[ids])
        with torch.inference_mode():
            assert torch.equal(made(ids), dense[ids])


def test_both_parts_learn_and_only_from_their_own_rows() -> None:
    made = fit(Partial(keep=40, rest=SMALL))
    kept = int(made.kept_ids()[0])
    made(torch.tensor([kept, kept])).sum().backward()
    parameters = dict(made.named_parameters())
    gradient = parameters["kept.vectors"].grad
    assert gradient is not None
    assert gradient.sum() == 2 * DIM
    untouched = parameters["rest.codebooks"].grad
    assert untouched is None or untouched.eq(0).all()


def test_parts_that_do_not_fit_together_are_refused() -> None:
    one, other = Full().outline(10, 4), Full().outline(20, 4)
    with pytest.raises(ConfigError, match="don't make 31 rows"):
        PartialTable(31, 4, one, other)
    with pytest.raises(ConfigError, match="don't make"):
        PartialTable(30, 4, one, Full().outline(20, 5))


def test_a_spec_rebuilds_every_tier() -> None:
    made = fit(NESTED["three tiers below"])
    twin = build_table(made.spec())
    twin.load_state_dict(made.state_dict())
    assert isinstance(twin, CompressedEmbedding)
    assert torch.equal(twin.dense(), made.dense())


def test_more_kept_rows_and_better_kept_rows_lose_less() -> None:
    table = normal(ROWS, DIM)
    weights = some_counts() + 0.5

    def loss(compressor: Compressor) -> float:
        gaps = (fit(compressor, table).dense() - table).square().sum(dim=1)
        return float((weights * gaps).sum())

    keeps = [loss(Partial(keep, "float32", SMALL)) for keep in (1, 10, 40, 90)]
    forms = [loss(Partial(60, kept, Integer(2))) for kept in ("int4", "int8", "float32")]
    for losses in (keeps, forms):
        assert all(a > b for a, b in itertools.pairwise(losses))
