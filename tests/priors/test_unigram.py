"""What is particular to Unigram; the common contract is in tests/contracts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.errors import ConfigError, DataError
from smalti.priors import Unigram

LEVEL = ((2, 3), (4, 2))


def grids(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    books = [torch.randint(size, (count, 2, 3), generator=generator) for size in LEVEL[1]]
    return torch.stack(books, dim=-1)


def test_probabilities_are_smoothed_shares_of_each_place() -> None:
    prior = Unigram(level=((1, 2), (3,)), smoothing=0.5)
    prior.fit(torch.tensor([[0, 2], [0, 2], [1, 2]]).view(3, 1, 2, 1))
    # By hand: counts 2, 1, 0 and 0, 0, 3 of 3; three halves are added to the total.
    expected = torch.tensor([[2.5, 1.5, 0.5], [0.5, 0.5, 3.5]], dtype=torch.float64) / 4.5
    torch.testing.assert_close(prior.table(0)[0], expected)
    grid = torch.tensor([0, 2]).view(1, 1, 2, 1)
    assert prior.nats(grid).tolist() == pytest.approx([-math.log(2.5 / 4.5 * 3.5 / 4.5)])


def test_nats_are_those_of_numpy() -> None:
    seen, judged = grids(50).numpy(), grids(7)
    expected = np.zeros(7)
    for row, column, book in np.ndindex(2, 3, 2):
        size = LEVEL[1][book]
        counts = np.bincount(seen[:, row, column, book], minlength=size) + 1.0
        expected -= np.log(counts / counts.sum())[judged[:, row, column, book].numpy()]
    found = Unigram(level=LEVEL).fit(grids(50)).nats(judged)
    torch.testing.assert_close(found, torch.from_numpy(expected))


def test_a_stream_is_counted_as_the_whole_is() -> None:
    batches = iter(grids(50).split(7))
    whole, streamed = Unigram(level=LEVEL).fit(grids(50)), Unigram(level=LEVEL).fit(batches)
    assert torch.equal(whole.counts, streamed.counts)
    assert next(batches, None) is None
    # Each place counts each grid once for each codebook.
    assert bool((whole.counts.sum(dim=-1) == 100).all())


def test_counting_begins_anew() -> None:
    prior = Unigram(level=LEVEL).fit(grids(50))
    first = prior.counts.clone()
    assert torch.equal(prior.fit(grids(50)).counts, first)


def test_a_bad_batch_leaves_the_old_counts() -> None:
    def broken() -> Iterator[Tensor]:
        yield grids(5)
        yield grids(5) + 4

    prior = Unigram(level=LEVEL).fit(grids(50))
    before = prior.counts.clone()
    with pytest.raises(DataError, match="expected codes of codebook 0"):
        prior.fit(broken())
    with pytest.raises(DataError, match="got none"):
        prior.fit([])
    assert torch.equal(prior.counts, before)


def test_before_it_has_counted_it_is_uniform() -> None:
    nats = Unigram(level=LEVEL).nats(grids(4))
    assert nats.tolist() == pytest.approx([6 * math.log(8)] * 4)


@pytest.mark.parametrize("smoothing", [0, -1, "much"])
def test_without_smoothing_unseen_codes_would_be_impossible(smoothing: Any) -> None:
    with pytest.raises(ConfigError, match="smoothing"):
        Unigram(level=LEVEL, smoothing=smoothing)
