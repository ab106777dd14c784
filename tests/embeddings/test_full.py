"""What is particular to Full; the common contract is in tests/contracts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from smalti.embeddings import Full
from smalti.errors import ConfigError, DataError


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_rows_are_kept_bit_for_bit() -> None:
    table = normal(30, 8)
    made = Full().fit(table)
    assert torch.equal(made.dense(), table)
    assert made.size().as_dict() == {
        "codes": 0,
        "codebooks": 0,
        "kept": 30 * 8 * 4,
        "other": 0,
        "total": 30 * 8 * 4,
    }


def test_half_precision_rounds_takes_half_the_memory_and_does_not_learn() -> None:
    table = normal(30, 8)
    made = Full("float16").fit(table)
    assert torch.equal(made.dense(), table.half().float())
    assert made.size().kept == made.size().total == 30 * 8 * 2
    assert made.vectors.dtype == torch.float16
    assert not list(made.parameters())


def test_half_precision_is_saved_as_such_after_a_cast() -> None:
    made = Full("float16").fit(normal(30, 8)).to(torch.float32)
    assert made.size().total == 30 * 8 * 2


def test_numbers_beyond_float16_are_refused() -> None:
    with pytest.raises(DataError, match="65504"):
        Full("float16").fit(1e6 * normal(30, 8))


def test_an_untrained_table_starts_as_an_ordinary_one() -> None:
    torch.manual_seed(0)
    made = Full().start(200, 50)
    assert made.dense().std() == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ConfigError, match="float32"):
        Full("float16").start(200, 50)
