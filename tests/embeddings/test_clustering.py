"""Weighted k-means, against NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from smalti.embeddings.clustering import cluster, decode, means


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def fixed() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def error_of(x: Tensor, codewords: Tensor, codes: Tensor, weights: Tensor) -> float:
    apart = x.double() - decode(codewords, codes).double()
    return float((weights.double() * apart.square().sum(-1)).sum())


def test_codewords_become_the_weighted_means_of_their_vectors() -> None:
    x, old = normal(3, 200, 5), normal(3, 7, 5, seed=1)
    weights = torch.rand(200, generator=fixed()) + 0.1
    codes = torch.randint(6, (3, 200), generator=fixed())
    made, used = means(x, codes, weights, old)
    for part in range(3):
        for code in range(6):
            mine = (codes[part] == code).numpy()
            expected = np.average(
                x[part].double().numpy()[mine], axis=0, weights=weights.double().numpy()[mine]
            )
            np.testing.assert_allclose(made[part, code].numpy(), expected, atol=1e-5)
    # Nobody chose the last one: it stays where it was.
    assert used.tolist() == [[True] * 6 + [False]] * 3
    assert torch.equal(made[:, 6], old[:, 6])


def test_a_weight_is_as_good_as_repetition() -> None:
    x, old = normal(1, 50, 4), normal(1, 3, 4, seed=1)
    times = torch.randint(1, 5, (50,), generator=fixed())
    codes = torch.randint(3, (1, 50), generator=fixed())
    weighted, _ = means(x, codes, times.float(), old)
    repeated = torch.arange(50).repeat_interleave(times)
    again, _ = means(x[:, repeated], codes[:, repeated], torch.ones(len(repeated)), old)
    torch.testing.assert_close(weighted, again)


def test_codes_stand_for_codewords_part_by_part() -> None:
    codewords = normal(2, 3, 4)
    codes = torch.tensor([[0, 2, 2], [1, 0, 1]])
    found = decode(codewords, codes)
    for part in range(2):
        for place in range(3):
            assert torch.equal(found[part, place], codewords[part, codes[part, place]])


def test_codes_are_the_nearest_and_codewords_nearly_their_means() -> None:
    x = normal(2, 500, 3)
    weights = torch.rand(500, generator=fixed()) + 0.5
    codewords, codes = cluster(x, weights, 10, 100, fixed())
    for part in range(2):
        vectors, words = x[part].double().numpy(), codewords[part].double().numpy()
        gaps = ((vectors[:, None] - words) ** 2).sum(-1)
        np.testing.assert_array_equal(codes[part].numpy(), gaps.argmin(1))
        for code in range(10):
            mine = codes[part].numpy() == code
            centre = np.average(vectors[mine], axis=0, weights=weights.numpy()[mine])
            np.testing.assert_allclose(words[code], centre, atol=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_comes_close_to_scikit_learn(weighted: bool) -> None:
    x = normal(1, 2000, 4) * torch.tensor([3.0, 1.0, 1.0, 0.3])
    weights = torch.rand(2000, generator=fixed()) ** 4 + 0.01 if weighted else torch.ones(2000)
    ours, theirs = [], []
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        ours.append(error_of(x, *cluster(x, weights, 32, 50, generator), weights))
        peer = KMeans(32, init="random", n_init=1, random_state=seed)
        theirs.append(peer.fit(x[0].numpy(), sample_weight=weights.numpy()).inertia_)
    assert np.mean(ours) < 1.03 * np.mean(theirs)


@pytest.mark.parametrize("seed", range(5))
def test_dead_codewords_are_revived_until_every_distinct_vector_has_one(seed: int) -> None:
    distinct = 10 * normal(2, 16, 3)
    # One of them makes up nearly everything, so that a random start takes it again and again.
    picks = torch.cat([torch.zeros(485, dtype=torch.int64), torch.arange(1, 16)])
    x = distinct[:, picks]
    generator = torch.Generator().manual_seed(seed)
    codewords, codes = cluster(x, torch.ones(500), 16, 40, generator)
    torch.testing.assert_close(decode(codewords, codes), x, atol=1e-4, rtol=0)
    assert all(len(set(part)) == 16 for part in codes.tolist())


def test_fewer_vectors_than_codewords_stand_for_themselves() -> None:
    x = normal(2, 5, 3)
    codewords, codes = cluster(x, torch.ones(5), 8, 10, fixed())
    assert codewords.shape == (2, 8, 3)
    assert torch.equal(decode(codewords, codes), x)


def test_equal_vectors_do_no_harm() -> None:
    x = torch.ones(1, 50, 3)
    codewords, codes = cluster(x, torch.ones(50), 4, 10, fixed())
    assert torch.equal(decode(codewords, codes), x)
    assert codewords.isfinite().all()


def test_more_steps_lose_no_more() -> None:
    x, weights = normal(3, 400, 4), torch.ones(400)
    errors = [
        error_of(x, *cluster(x, weights, 16, steps, fixed()), weights) for steps in (1, 3, 30)
    ]
    assert errors == sorted(errors, reverse=True)


def test_heavy_vectors_are_served_best() -> None:
    x = normal(1, 400, 4)
    weights = torch.ones(400)
    weights[:8] = 1e4
    codewords, codes = cluster(x, weights, 16, 30, fixed())
    gaps = (x - decode(codewords, codes)).square().sum(-1)[0]
    assert gaps[:8].mean() < 0.05 * gaps[8:].mean()
