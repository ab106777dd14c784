"""A temperature that falls while a model trains, counted in its own steps."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from smalti.quantizers.settings import count, number, word

SCHEDULES = ("exponential", "paper")


class Annealing(nn.Module):
    """A temperature that goes from ``first`` to ``last`` over ``steps`` training steps.

    Args:
        first: At step 0.
        last: From step ``steps`` on.
        steps: Length of the way.
        schedule: ``"exponential"``; or ``"paper"``, the count-down of adaptive dynamic
            quantization: steps + 1, ..., 2, and 1 in evaluation.
    """

    step: Tensor

    def __init__(
        self, first: float, last: float, steps: int, schedule: str = "exponential"
    ) -> None:
        super().__init__()
        self.first = number("temperature", first, above=0)
        self.last = number("final_temperature", last, above=0)
        self.steps = count("anneal_steps", steps)
        self.schedule = word("schedule", schedule, SCHEDULES)
        self.register_buffer("step", torch.tensor(0))

    def value(self) -> Tensor:
        """The temperature now, a scalar tensor (so that a compiled graph need not change)."""
        if self.schedule == "paper":
            counted = (self.steps - self.step).clamp(min=1).float() + 1
            return counted if self.training else torch.ones_like(counted)
        share = (self.step.float() / self.steps).clamp(max=1.0)
        return (math.log(self.first) + share * math.log(self.last / self.first)).exp()

    @torch.no_grad()
    def advance(self) -> None:
        """Count one training step."""
        self.step.add_(1)
