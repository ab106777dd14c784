"""Dropout by random bytes: how much it drops, what it keeps, what gradients it passes."""

from __future__ import annotations

import pytest
import torch

from smalti.errors import ConfigError
from smalti.layers.dropout import Dropout


def test_the_share_is_dropped_and_the_mean_stays() -> None:
    torch.manual_seed(1)
    layer = Dropout(0.25)
    out = layer(torch.ones(1000, 1001))
    # A million draws: the share's standard deviation is 0.0004.
    assert abs(float((out == 0).float().mean()) - 0.25) < 0.003
    assert abs(float(out.mean()) - 1) < 0.003
    # By hand: what is kept is divided by 1 - 1/4.
    assert set(out.unique().tolist()) == {0.0, torch.tensor(4 / 3).item()}


def test_a_dropped_number_has_no_gradient_and_a_kept_one_the_factor() -> None:
    x = torch.randn(50, 7, dtype=torch.float64, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(out == 0, 0.0, 2.0).double())


def test_it_is_different_every_time_and_follows_the_seed() -> None:
    layer, x = Dropout(0.5), torch.ones(4, 33)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


def test_evaluation_and_a_share_of_zero_change_nothing() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_impossible_shares_are_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="dropout must be"):
        Dropout(share)
