"""Codes packed into bits come back as they were."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smalti.codes import bits_of, pack, packed_bytes, unpack
from smalti.errors import DataError, ShapeError


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 70_000), min_size=1, max_size=6), st.integers(0, 200), st.integers())
def test_any_codes_survive_the_round_trip(sizes: list[int], rows: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(abs(seed) % 2**31)
    codes = torch.stack([torch.randint(n, (rows,), generator=generator) for n in sizes], dim=1)
    packed = pack(codes, sizes)
    assert len(packed) == math.ceil(rows * sum(math.ceil(math.log2(n)) for n in sizes) / 8)
    assert torch.equal(unpack(packed, rows, sizes), codes)


@pytest.mark.parametrize("sizes", [(256, 256), (512, 3, 65_536)])
def test_more_rows_than_a_block_survive(sizes: tuple[int, ...]) -> None:
    codes = torch.stack([torch.randint(n, (40_003,)) for n in sizes], dim=1)
    assert torch.equal(unpack(pack(codes, sizes), 40_003, sizes), codes)


def test_the_bits_lie_lowest_first_without_gaps() -> None:
    # 3 = 11, 1 = 100 (lowest first), 0 = 00, 7 = 111: 11100 00111 -> bytes 11100001, 11.
    packed = pack(torch.tensor([[3, 1], [0, 7]]), (4, 8))
    assert packed.tolist() == [0b10000111, 0b11]


@pytest.mark.parametrize(("size", "bits"), [(2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)])
def test_a_code_takes_the_rounded_up_logarithm(size: int, bits: int) -> None:
    assert bits_of(size) == bits


def test_codes_out_of_range_are_refused() -> None:
    with pytest.raises(DataError, match=r"codebook 1 in 0\.\.7, got 0\.\.8"):
        pack(torch.tensor([[0, 0], [1, 8]]), (4, 8))
    with pytest.raises(ShapeError):
        pack(torch.tensor([[0.5, 0.0]]), (4, 8))


def test_damaged_bytes_are_refused() -> None:
    packed = pack(torch.tensor([[2], [1]]), (3,))
    with pytest.raises(ShapeError, match="expected 2 bytes"):
        unpack(packed, 5, (3,))
    with pytest.raises(DataError, match="damaged"):
        unpack(torch.full_like(packed, 255), 2, (3,))
    assert packed_bytes(2, (3,)) == 1
