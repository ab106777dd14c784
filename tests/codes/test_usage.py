"""Usage over a data set, against scipy and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import entropy

from smalti.codes import Usage
from smalti.errors import DataError, ShapeError


def test_entropy_and_perplexity_equal_scipys() -> None:
    torch.manual_seed(0)
    codes = torch.randint(40, (5000, 1)).square() % 50
    usage = Usage([50])
    for piece in codes.split(700):
        usage.update(piece)
    counts = torch.bincount(codes[:, 0], minlength=50).numpy()
    assert usage[0].entropy_nats == pytest.approx(entropy(counts))
    assert usage[0].entropy_bits == pytest.approx(entropy(counts, base=2))
    assert usage[0].perplexity == pytest.approx(math.exp(entropy(counts)))
    assert usage[0].dead == int((counts == 0).sum())


def test_the_miller_madow_correction_by_hand() -> None:
    usage = Usage([8])
    usage.update(torch.tensor([[0], [1], [2], [2]]))
    # H = 2 * (1/4) ln 4 + (1/2) ln 2 = 1.5 ln 2; three codes in use, four seen: + 2/8.
    assert usage[0].entropy_nats == pytest.approx(1.5 * math.log(2))
    assert usage[0].corrected_entropy_nats == pytest.approx(1.5 * math.log(2) + 0.25)
    assert usage[0].corrected_entropy_bits == pytest.approx(1.5 + 0.25 / math.log(2))


def test_the_correction_lowers_the_error_of_the_entropy_of_a_known_source() -> None:
    torch.manual_seed(0)
    plain, corrected = [], []
    for _ in range(50):
        usage = Usage([64])
        usage.update(torch.randint(64, (200, 1)))
        plain.append(usage[0].entropy_bits)
        corrected.append(usage[0].corrected_entropy_bits)
    assert abs(sum(corrected) / 50 - 6) < 0.3 * abs(sum(plain) / 50 - 6)


def test_parts_merge_to_the_whole() -> None:
    codes = torch.randint(9, (100, 3, 2))
    whole, one, other = Usage([9, 9]), Usage([9, 9]), Usage([9, 9])
    whole.update(codes)
    one.update(codes[:40])
    other.update(codes[40:])
    one.merge(other)
    for ours, expected in zip(one.counts, whole.counts, strict=True):
        assert torch.equal(ours, expected)


def test_masked_codes_are_not_counted() -> None:
    usage = Usage([4])
    usage.update(
        torch.tensor([[[0], [1]], [[2], [3]]]), torch.tensor([[True, False], [True, False]])
    )
    assert usage.counts[0].tolist() == [1, 0, 1, 0]
    assert usage.used_share == 0.5


def test_nothing_seen_has_no_entropy() -> None:
    assert Usage([4])[0].entropy_nats == 0
    assert Usage([4])[0].dead == 4


def test_a_bad_batch_is_refused_whole() -> None:
    usage = Usage([4, 4])
    with pytest.raises(DataError, match=r"codebook 1 in 0\.\.3, got 0\.\.4"):
        usage.update(torch.tensor([[1, 0], [1, 4]]))
    assert sum(int(counts.sum()) for counts in usage.counts) == 0
    with pytest.raises(ShapeError):
        usage.update(torch.tensor([[1, 1, 1]]))
    with pytest.raises(ShapeError):
        usage.merge(Usage([4]))


def test_no_codebooks_have_nothing_to_count() -> None:
    usage = Usage([])
    usage.update(torch.empty(5, 3, 0, dtype=torch.int64))
    assert usage.entropy_bits == 0
    assert usage.used_share == 0


def test_a_mask_that_is_not_one_is_refused() -> None:
    usage = Usage([4])
    codes = torch.tensor([[3], [2], [1], [0]])
    for mask in (torch.tensor([1, 1, 1, 0]), torch.ones(2, 2, dtype=torch.bool)):
        with pytest.raises(ShapeError, match="mask"):
            usage.update(codes, mask)
    assert int(usage.counts[0].sum()) == 0


@pytest.mark.parametrize("sizes", [[-1], "ab", 4, [2**62], [2.5]])
def test_sizes_that_can_not_be_counted_are_refused(sizes: object) -> None:
    with pytest.raises(ShapeError):
        # Silenced because sizes of wrong types are what is tried.
        Usage(sizes)  # type: ignore[arg-type]
