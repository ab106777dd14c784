"""What is particular to codes that a Gumbel-softmax autoencoder learns."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from smalti.embeddings.coded import CodedTable
from smalti.embeddings.compositional import Compositional
from smalti.errors import ConfigError

GENERATOR = torch.Generator().manual_seed(0)
# Sums of one of 4 and one of 8 vectors, a little noise: 5 bits a row say nearly everything.
SUMS = (
    torch.randn(4, 12, generator=GENERATOR)[torch.randint(4, (400,), generator=GENERATOR)]
    + torch.randn(8, 12, generator=GENERATOR)[torch.randint(8, (400,), generator=GENERATOR)]
    + 0.05 * torch.randn(400, 12, generator=GENERATOR)
)


def share_left(table: torch.Tensor, made: torch.Tensor) -> float:
    """Squared error over the variance."""
    variance = (table - table.mean(0)).square().sum()
    return float((table - made).square().sum() / variance)


def test_sums_of_vectors_are_found_as_sums_of_codewords() -> None:
    fitted = Compositional(num_codebooks=6, codebook_size=8, steps=300, batch=128).fit(SUMS)
    assert share_left(SUMS, fitted.dense()) < 0.05


def test_the_result_is_one_part_of_many_stages() -> None:
    fitted = Compositional(num_codebooks=3, codebook_size=5, steps=2, precision="float32").fit(SUMS)
    assert isinstance(fitted, CodedTable)
    assert (fitted.parts, fitted.stages, fitted.codebook_size) == (1, 3, 5)
    # 400 rows of 3 codes of 3 bits, and 3 x 5 codewords of 12 float32.
    assert fitted.size().codes == 450
    assert fitted.size().codebooks == 3 * 5 * 12 * 4


def test_a_refit_only_helps() -> None:
    settings: dict[str, Any] = {"num_codebooks": 4, "codebook_size": 8, "steps": 60}
    errors = [
        share_left(SUMS, Compositional(**settings, refit=refit).fit(SUMS).dense())
        for refit in (False, True)
    ]
    assert errors[1] < errors[0]


def test_the_scale_and_the_place_of_a_table_do_not_matter() -> None:
    compressor = Compositional(num_codebooks=4, codebook_size=8, steps=60, precision="float32")
    plain = share_left(SUMS, compressor.fit(SUMS).dense())
    moved = 1000 * SUMS + 7000
    assert share_left(moved, compressor.fit(moved).dense()) == pytest.approx(plain, rel=0.05)


def test_common_rows_come_out_better_when_counts_are_given() -> None:
    table = torch.randn(300, 8, generator=torch.Generator().manual_seed(2))
    counts = torch.ones(300)
    counts[:30] = 1000
    compressor = Compositional(num_codebooks=4, codebook_size=8, steps=150, power=1.0)
    alike, counted = compressor.fit(table), compressor.fit(table, counts=counts)
    errors = [
        float((fitted.dense()[:30] - table[:30]).square().mean()) for fitted in (alike, counted)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_fitting_is_repeatable_and_leaves_the_global_generator_alone() -> None:
    compressor = Compositional(num_codebooks=3, codebook_size=4, steps=10)
    torch.manual_seed(5)
    first = compressor.fit(SUMS, generator=torch.Generator().manual_seed(1)).dense()
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(1))
    again = compressor.fit(SUMS, generator=torch.Generator().manual_seed(1)).dense()
    other = compressor.fit(SUMS, generator=torch.Generator().manual_seed(2)).dense()
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    "bad", [{"num_codebooks": 0}, {"codebook_size": 1}, {"temperature": 0}, {"refit": "yes"}]
)
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Compositional(**bad)
