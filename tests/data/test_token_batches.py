"""Batches by the number of tokens: nothing lost, little padded, another order each epoch."""

from __future__ import annotations

import random

import torch

from smalti.data import PairBatch, TokenPairs, cut_by_tokens, padded
from smalti.training.sharding import shares


def some_pairs(count: int = 2000) -> TokenPairs:
    chance = random.Random(0)
    lengths = [chance.randint(1, 40) for _ in range(count)]
    targets = [max(1, length + chance.randint(-4, 4)) for length in lengths]
    return TokenPairs([[5] * length for length in lengths], [[6] * length for length in targets])


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_sequences_are_filled_up_with_zeros() -> None:
    assert padded([[5, 1], [7, 8, 1], []]).tolist() == [[5, 1, 0], [7, 8, 1], [0, 0, 0]]
    assert padded([]).shape == (0, 0)


def test_every_pair_is_in_one_batch_of_at_most_so_many_tokens() -> None:
    pairs = some_pairs()
    batches = pairs.shuffled(512, generator(0))
    assert sorted(row for rows in batches for row in rows) == list(range(2000))
    for rows in batches:
        batch = pairs.batch(rows)
        assert batch.source.numel() <= 512
        assert batch.target.numel() <= 512


def test_little_is_padded() -> None:
    pairs = some_pairs()
    made = [pairs.batch(rows) for rows in pairs.shuffled(512, generator(0))]
    assert sum(map(len, made)) > 0.9 * sum(batch.target.numel() for batch in made)
    sources = sum(int((batch.source != 0).sum()) for batch in made)
    assert sources > 0.8 * sum(batch.source.numel() for batch in made)


def test_epochs_have_other_batches_and_the_same_generator_the_same() -> None:
    pairs = some_pairs()
    one, again, other = (pairs.shuffled(512, generator(seed)) for seed in (0, 0, 1))
    assert one == again
    assert {tuple(sorted(rows)) for rows in one}.isdisjoint({tuple(sorted(rows)) for rows in other})


def test_a_sequence_that_is_too_long_is_alone() -> None:
    assert cut_by_tokens([2, 9, 2], most=4) == [range(0, 1), range(1, 2), range(2, 3)]
    assert cut_by_tokens([], most=4) == []


def test_shares_are_weighted_by_the_tokens_of_the_target() -> None:
    target = torch.tensor([[6, 6, 6, 1], [6, 1, 0, 0], [1, 0, 0, 0]])
    batch = PairBatch(torch.ones(3, 2, dtype=torch.long), target)
    assert len(batch) == 7
    one, other = (shares(batch, process, 2, 1)[0] for process in (0, 1))
    assert [one.weight, other.weight] == [4 / 7, 3 / 7]
    assert torch.equal(torch.cat([one.batch.target, other.batch.target]), target)
