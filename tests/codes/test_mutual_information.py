"""Mutual information between codebooks, against scikit-learn and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import mutual_info_score

from smalti.codes import mutual_information
from smalti.errors import DataError, ShapeError


def test_each_pair_has_the_information_that_scikit_learn_finds() -> None:
    torch.manual_seed(0)
    first = torch.randint(12, (40, 5, 5))
    second = (first + torch.randint(3, first.shape)) % 20
    third = torch.randint(2**40, (3,))[torch.randint(3, first.shape)]
    codes = torch.stack([first, second, third], dim=-1)
    found = mutual_information(codes, (12, 20, 2**40)).plug_in
    flat = codes.view(-1, 3).numpy()
    for one in range(3):
        for other in range(3):
            if one != other:
                expected = mutual_info_score(flat[:, one], flat[:, other])
                assert float(found[one, other]) == pytest.approx(expected, abs=1e-12)
    assert found.diagonal().tolist() == [0, 0, 0]


def test_the_zero_level_of_independent_codes_is_about_the_known_bias() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(32, (20_000, 2), generator=generator)
    found = mutual_information(codes, (32, 32), generator)
    # (K1 - 1)(K2 - 1) / 2n
    assert float(found.shuffled[0, 1]) == pytest.approx(31 * 31 / 40_000, rel=0.1)
    assert abs(float(found.corrected[0, 1])) < 0.1 * float(found.plug_in[0, 1])


def test_codes_that_repeat_each_other_share_their_whole_entropy() -> None:
    code = torch.arange(8).repeat(1000)
    generator = torch.Generator().manual_seed(0)
    found = mutual_information(torch.stack([code, 7 - code], dim=-1), (8, 8), generator)
    assert float(found.plug_in[0, 1]) == pytest.approx(math.log(8))
    assert float(found.corrected[0, 1]) == pytest.approx(math.log(8), abs=0.01)


def test_the_same_generator_gives_the_same_zero_level() -> None:
    codes = torch.randint(9, (300, 3), generator=torch.Generator().manual_seed(1))
    once, again = (
        mutual_information(codes, (9, 9, 9), torch.Generator().manual_seed(4)) for _ in range(2)
    )
    assert torch.equal(once.shuffled, again.shuffled)


def test_bad_codes_are_refused() -> None:
    with pytest.raises(ShapeError, match="whole numbers"):
        mutual_information(torch.zeros(9, 2), (4, 4))
    with pytest.raises(DataError, match="none"):
        mutual_information(torch.zeros(0, 2, dtype=torch.int64), (4, 4))
