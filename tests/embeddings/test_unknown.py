"""What is particular to Unknown; the common contract is in tests/contracts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from smalti.embeddings import Partial, Unknown
from smalti.errors import ConfigError

TABLE = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 0.0], [7.0, 7.0]])


def test_every_row_becomes_the_given_one() -> None:
    table = Unknown(row=1).fit(TABLE)
    assert torch.equal(table.dense(), TABLE[[1, 1, 1, 1]])
    assert table.size().total == 2 * 4


def test_without_a_row_the_mean_stands_for_all() -> None:
    torch.testing.assert_close(Unknown().fit(TABLE).dense()[0], TABLE.mean(dim=0))


def test_the_mean_follows_the_counts() -> None:
    counts = np.array([1000, 3000, 0, 4000])
    table = Unknown().fit(TABLE, counts=torch.from_numpy(counts))
    expected = np.average(TABLE.numpy(), axis=0, weights=counts)
    # A row that never occurs weighs half an occurrence.
    np.testing.assert_allclose(table.dense()[0].numpy(), expected, atol=1e-3)


def test_beside_kept_rows_the_row_counts_in_the_whole_table() -> None:
    counts = torch.tensor([0, 9, 0, 5])
    table = Partial(keep=2, rest=Unknown(row=1)).fit(TABLE, counts=counts)
    assert torch.equal(table.dense(), TABLE[[1, 1, 1, 3]])


def test_rows_that_never_occur_have_a_mean_too() -> None:
    counts = torch.tensor([0, 9, 0, 5])
    table = Partial(keep=2, rest=Unknown()).fit(TABLE, counts=counts)
    torch.testing.assert_close(table.dense()[0], (TABLE[0] + TABLE[2]) / 2)


def test_settings_stay_plain_after_a_look_at_a_table() -> None:
    prepared = Unknown(row=1).prepared(TABLE)
    assert prepared == Unknown(row=1)
    assert prepared.spec() == {"compressor": "unknown", "row": 1}


def test_a_row_outside_of_the_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"0\.\.3.*got 4"):
        Unknown(row=4).fit(TABLE)
    with pytest.raises(ConfigError, match="row"):
        Unknown(row=-1)
