"""Entropies of places, against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from smalti.codes import place_entropies
from smalti.errors import DataError, ShapeError


def test_every_place_and_codebook_has_the_entropy_that_scipy_finds() -> None:
    torch.manual_seed(0)
    sizes = (7, 300)
    codes = torch.stack([torch.randint(size, (500, 2, 3)).square() % size for size in sizes], -1)
    found = place_entropies(codes, sizes).plug_in
    for row, column, book in np.ndindex(2, 3, 2):
        counts = np.unique(codes[:, row, column, book].numpy(), return_counts=True)[1]
        assert float(found[row, column, book]) == pytest.approx(entropy(counts))


def test_the_correction_by_hand() -> None:
    # H = 1.5 ln 2; three codes in use, four seen: + 2/8.
    found = place_entropies(torch.tensor([[0], [1], [2], [2]]), [8])
    assert float(found.plug_in[0]) == pytest.approx(1.5 * math.log(2))
    assert float(found.corrected[0]) == pytest.approx(1.5 * math.log(2) + 0.25)


def test_a_code_that_never_changes_says_nothing() -> None:
    found = place_entropies(torch.full((9, 2, 1), 3), [5])
    assert found.plug_in.tolist() == [[0.0], [0.0]]
    assert found.corrected.tolist() == [[0.0], [0.0]]


def test_bad_codes_are_refused() -> None:
    with pytest.raises(DataError, match=r"0\.\.3"):
        place_entropies(torch.full((9, 1), 4), [4])
    with pytest.raises(ShapeError, match="whole numbers"):
        place_entropies(torch.zeros(9, 1), [4])
    with pytest.raises(DataError, match="none"):
        place_entropies(torch.zeros(0, 1, dtype=torch.int64), [4])
