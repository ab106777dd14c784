"""Errors are told apart by how often rows are used."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import paired_cosine_distances

from smalti.analysis import frequency_bands
from smalti.embeddings import CodedTable
from smalti.errors import ConfigError, ShapeError


def table_of(codes: list[int], codewords: list[list[float]]) -> CodedTable:
    return CodedTable.holding(
        torch.tensor(codes)[:, None], torch.tensor(codewords)[None, None], precision="float32"
    )


def test_bands_hold_counts_of_as_many_digits() -> None:
    original = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    compressed = table_of([0, 1, 1, 1, 2], [[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
    found = frequency_bands(original, compressed, torch.tensor([90, 9, 0, 1, 0])).numbers
    # By hand: row 2 is at a right angle and 4 + 1 away of a squared length of 4; row 3 is at
    # 45 degrees and 1 away of 2; the others are exact, also the row of zeros.
    assert found["bands"] == [
        {
            "counts": "unseen",
            "rows": 2,
            "token_share": 0.0,
            "kept_share": 0.0,
            "mean_cosine": 0.5,
            "relative_squared_error": 5 / 4,
        },
        {
            "counts": "1-9",
            "rows": 2,
            "token_share": 0.1,
            "kept_share": 0.0,
            "mean_cosine": pytest.approx((1 + math.sqrt(0.5)) / 2),
            "relative_squared_error": pytest.approx(1 / 3),
        },
        {
            "counts": "10-99",
            "rows": 1,
            "token_share": 0.9,
            "kept_share": 0.0,
            "mean_cosine": 1.0,
            "relative_squared_error": 0.0,
        },
    ]
    assert found["relative_squared_error"] == pytest.approx(6 / 32)
    assert found["mean_cosine_by_use"] == pytest.approx(0.99 + 0.01 * math.sqrt(0.5))
    assert found["relative_squared_error_by_use"] == pytest.approx(0.01 / (22.5 + 0.09 + 0.02))


def test_many_rows_agree_with_another_library() -> None:
    generator = torch.Generator().manual_seed(0)
    original = torch.randn(9_000, 8, generator=generator)
    codewords = torch.randn(64, 8, generator=generator)
    codes = torch.randint(64, (9_000,), generator=generator)
    compressed = table_of(codes.tolist(), codewords.tolist())
    counts = torch.randint(0, 2_000, (9_000,), generator=generator)
    found = frequency_bands(original, compressed, counts).numbers
    cosines = 1 - paired_cosine_distances(original.numpy(), codewords[codes].numpy())
    edges = [(0, 0), (1, 9), (10, 99), (100, 999), (1000, 9999)]
    for band, (low, high) in zip(found["bands"], edges, strict=True):
        mine = ((counts >= low) & (counts <= high)).numpy()
        assert band["rows"] == mine.sum()
        assert band["mean_cosine"] == pytest.approx(float(np.mean(cosines[mine])), abs=1e-6)
    assert sum(band["token_share"] for band in found["bands"]) == pytest.approx(1)


def test_fractions_and_powers_of_ten_fall_into_their_bands() -> None:
    compressed = table_of([0] * 5, [[1.0, 1.0], [0.0, 0.0]])
    counts = torch.tensor([0.25, 1.0, 9.5, 10.0, 1000.0])
    found = frequency_bands(torch.ones(5, 2), compressed, counts).numbers["bands"]
    names = {band["counts"]: band["rows"] for band in found}
    assert names == {"below 1": 1, "1-9": 2, "10-99": 1, "1000-9999": 1}


def test_the_finding_is_plain_data_and_names_the_bytes() -> None:
    compressed = table_of([0, 1], [[0.0, 0.0], [0.0, 0.0]])
    found = frequency_bands(torch.zeros(2, 2), compressed, torch.tensor([1, 0]))
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
    assert found.numbers["bands"][0]["relative_squared_error"] is None
    assert found.numbers["bytes"] == compressed.size().total
    assert f"At {compressed.size().total} bytes" in str(found)


def test_other_tables_and_missing_counts_are_refused() -> None:
    compressed = table_of([0, 1], [[0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ShapeError, match=r"expected the original of a \(2, 2\) table"):
        frequency_bands(torch.ones(3, 2), compressed, torch.ones(3))
    with pytest.raises(ConfigError, match="expected counts"):
        frequency_bands(torch.ones(2, 2), compressed, None)
