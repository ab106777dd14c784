"""Means of what steps report, over pieces, processes and the steps since the last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Totals = dict[str, tuple[float, float]]


class Averages:
    """Weighted sums by name, kept on the device until someone asks."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._weights: dict[str, float] = {}

    def add(self, values: Mapping[str, Tensor | float], weight: float) -> None:
        """Take in the values of a share of a batch."""
        for name, value in values.items():
            found = torch.as_tensor(value).detach().float().mean() * weight
            known = self._sums.get(name)
            self._sums[name] = found if known is None else known + found
            self._weights[name] = self._weights.get(name, 0.0) + weight

    def totals(self) -> Totals:
        """Sums and weights by name."""
        return {name: (float(value), self._weights[name]) for name, value in self._sums.items()}

    def state_dict(self) -> dict[str, Any]:
        """The sums, for a checkpoint."""
        return {"sums": dict(self._sums), "weights": dict(self._weights)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from sums that ``state_dict`` gave."""
        self._sums, self._weights = dict(state["sums"]), dict(state["weights"])


def joined_means(everyone: Sequence[Totals]) -> dict[str, float]:
    """The means over the totals of all processes, in the order in which names came up."""
    names = dict.fromkeys(name for totals in everyone for name in totals)
    means = {}
    for name in names:
        pairs = [totals[name] for totals in everyone if name in totals]
        means[name] = sum(value for value, _ in pairs) / sum(weight for _, weight in pairs)
    return means
