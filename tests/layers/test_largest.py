"""The place of the largest number."""

from __future__ import annotations

import numpy as np
import torch

from smalti.layers.largest import largest


def test_each_row_has_its_own_place_whatever_the_shape() -> None:
    x = torch.randn(3, 4, 501)
    assert np.array_equal(largest(x).numpy(), np.argmax(x.numpy(), axis=-1))
    assert largest(x).dtype == torch.int64


def test_rows_that_are_not_float32_or_lie_apart_are_read_too() -> None:
    x = torch.tensor([[1.0, 5.0, 2.0], [7.0, 0.0, 3.0]])
    assert largest(x.double()).tolist() == [1, 0]
    assert largest(x.bfloat16()).tolist() == [1, 0]
    assert largest(x.T).tolist() == [1, 0, 1]
