"""How learning rates rise and fall."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from smalti.errors import ConfigError
from smalti.training import Constant, Cosine, InverseRoot, Linear, ScheduledRates, Stairs


def test_a_constant_rate_rises_in_a_straight_line_and_stays() -> None:
    factors = [Constant(warm_up=4).factor(step, None) for step in range(6)]
    assert factors == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert Constant().factor(0, None) == 1.0


def test_a_linear_rate_falls_to_nothing() -> None:
    factors = [Linear(warm_up=2).factor(step, 5) for step in range(5)]
    assert factors == pytest.approx([0.5, 0.8, 0.6, 0.4, 0.2])
    # Beyond the end, where epochs turned out longer than the first.
    assert Linear().factor(7, 5) == 0.0


def test_a_share_of_all_steps_can_be_the_warm_up() -> None:
    assert Linear(warm_up=0.02).factor(0, 1000) == Linear(warm_up=20).factor(0, 1000) == 1 / 20
    # Few steps: the rise takes one.
    assert Constant(warm_up=0.02).factor(0, 10) == 1.0


@pytest.mark.parametrize("step", [0, 3, 10, 20])
def test_a_cosine_rate_is_that_of_torch(step: int) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    peer = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.1)
    for _ in range(step):
        optimizer.step()
        peer.step()
    assert Cosine(lowest=0.1).factor(step, 20) == pytest.approx(peer.get_last_lr()[0])


@pytest.mark.parametrize("step", [0, 99, 100, 3000])
def test_an_inverse_root_rate_is_that_of_the_transformer(step: int) -> None:
    # Vaswani et al., section 5.3, divided by its highest value.
    number = step + 1
    expected = min(number**-0.5, number * 100**-1.5) / 100**-0.5
    assert InverseRoot(warm_up=100).factor(step, None) == pytest.approx(expected)


def test_stairs_leave_a_share_at_each_step() -> None:
    stairs = Stairs(at=(2, 4), share=0.5)
    assert [stairs.factor(step, None) for step in range(5)] == [1.0, 1.0, 0.5, 0.5, 0.25]
    with pytest.raises(ConfigError, match="rising steps"):
        Stairs(at=(4, 2))


def test_a_schedule_that_must_know_its_end_says_so() -> None:
    for schedule in (Linear(), Cosine(), Constant(warm_up=0.1)):
        with pytest.raises(ConfigError, match="has to know how many steps"):
            schedule.factor(0, None)


def test_each_group_keeps_its_own_highest_rate() -> None:
    one, other = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([{"params": [one], "lr": 1.0}, {"params": [other], "lr": 0.1}])
    rates = ScheduledRates(optimizer, Cosine())
    assert rates.set(5, total=10) == pytest.approx(0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.5, 0.05])
    assert rates.set(10, total=10) == pytest.approx(0.0, abs=1e-12)
    assert not math.isnan(optimizer.param_groups[1]["lr"])
