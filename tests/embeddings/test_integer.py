"""What is particular to Integer; the common contract is in tests/contracts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from smalti.embeddings import Integer, IntegerTable, build_compressor
from smalti.errors import ConfigError, DataError


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def error(table: Tensor, **settings: int) -> float:
    return float((Integer(**settings).fit(table).dense() - table).square().mean())


def plain_error(table: Tensor, bits: int) -> float:
    """The largest number becomes the largest level, the others are rounded."""
    numbers = table.double().numpy()
    scales = np.abs(numbers).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return float(np.square(np.round(numbers / scales) * scales - numbers).mean())


def searched_error(table: Tensor, bits: int) -> float:
    """The best of 1,000 scales for each row, with levels -2^(bits-1)..2^(bits-1)-1."""
    numbers = table.double().numpy()
    half = 2 ** (bits - 1)
    largest = np.abs(numbers).max(axis=1, keepdims=True) / (half - 1)
    errors = [
        np.square(np.clip(np.round(numbers / scale), -half, half - 1) * scale - numbers).sum(1)
        for share in np.linspace(0.05, 1.1, 500)
        for scale in (share * largest, -share * largest)
    ]
    return float(np.min(errors, axis=0).mean() / table.shape[1])


def test_numbers_are_rounded_to_the_nearest_level() -> None:
    table = Integer(bits=8).fit(torch.tensor([[1.4, -127.0, 63.6], [0.0, 0.5, -0.25]]))
    # By hand: the scale of the first row is 1; float16 holds 0.5 / 127 to 11 bits.
    assert table.dense()[0].tolist() == [1.0, -127.0, 64.0]
    torch.testing.assert_close(
        table.dense()[1], torch.tensor([0.0, 0.5, -0.25]), atol=0.5 / 127, rtol=0
    )


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("dim", [1, 7, 24])
def test_whole_numbers_come_back_from_their_bytes(bits: int, dim: int) -> None:
    half = 1 << (bits - 1)
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(-half, half, (50, dim), generator=generator)
    numbers[0], numbers[1] = -half, half - 1
    table = IntegerTable.holding(numbers, torch.full((50, 1), 0.5), bits)
    ids = torch.tensor([0, 1, 49, 7, 7])
    assert torch.equal(table.numbers(ids).long(), numbers[ids])
    assert torch.equal(table(ids), 0.5 * numbers[ids])


@pytest.mark.parametrize("bits", range(2, 9))
def test_a_number_takes_as_many_bits_as_it_should(bits: int) -> None:
    size = Integer(bits=bits).fit(normal(50, 24)).size()
    assert size.codes == 50 * 24 * bits // 8
    assert size.other == 50 * 2


def test_each_group_has_its_scale() -> None:
    table = normal(50, 24)
    table[:, :8] *= 100.0
    made = Integer(bits=4, group=8).fit(table)
    assert made.size().other == 50 * 3 * 2
    assert (made.dense() - table)[:, 8:].abs().max() < 0.5
    assert (
        error(table[:, 8:], bits=4)
        < (Integer(bits=4).fit(table).dense() - table)[:, 8:].square().mean()
    )


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6])
def test_the_scale_is_nearly_the_best_there_is(bits: int) -> None:
    table = normal(100, 96)
    assert error(table, bits=bits) < plain_error(table, bits)
    assert error(table, bits=bits) < 1.05 * searched_error(table, bits)


def test_eight_bits_lose_no_more_than_rounding() -> None:
    table = normal(100, 96)
    assert error(table, bits=8) == pytest.approx(plain_error(table, 8), rel=0.01)


def test_a_table_of_eight_bit_groups_is_kept_bit_for_bit() -> None:
    """Files of language models hold tables as 8-bit numbers with a float16 scale for 32."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(-127, 128, (40, 3, 32), generator=generator).float()
    numbers[..., 5] = 127.0
    scales = (0.01 * torch.rand(40, 3, 1, generator=generator)).half().float()
    table = (numbers * scales).view(40, 96)
    assert torch.equal(Integer(bits=8, group=32).fit(table).dense(), table)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_zero_and_tiny_rows_stay_so(bits: int) -> None:
    table = normal(6, 8)
    table[1] = 0.0
    table[2] *= 1e-40
    table[3] *= 1e-7
    dense = Integer(bits=bits).fit(table).dense()
    assert dense[1].eq(0).all()
    assert dense.isfinite().all()
    assert dense[2:4].abs().max() < 1e-6


def test_scales_beyond_float16_are_refused() -> None:
    with pytest.raises(DataError, match="float16 holds numbers up to 65504"):
        Integer(bits=8).fit(1e8 * normal(5, 8))


def test_a_group_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="group must divide the width 24, got 7"):
        Integer(group=7).fit(normal(5, 24))


@pytest.mark.parametrize("bad", [{"bits": 1}, {"bits": 9}, {"bits": 4.0}, {"group": 0}])
def test_impossible_settings_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Integer(**bad)


def test_it_reads_as_it_is_written() -> None:
    assert repr(build_compressor("integer", bits=4)) == "Integer(bits=4, group=None)"
