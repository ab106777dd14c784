"""The prior of all levels together: each given those above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from smalti.errors import ShapeError, require
from smalti.priors.base import Prior, build_prior
from smalti.priors.level import as_level


class LevelsPrior(nn.Module):
    """One prior a level, top first; the probability of all codes is the product of theirs.

    Args:
        priors: Priors or their specs. The levels above each must be those of the ones before.

    Example:
        >>> levels = [((2, 2), (8,)), ((4, 4), (16, 16))]
        >>> prior = LevelsPrior.over(levels, "autoregressive", dim=16, depth=1)
        >>> [tuple(codes.shape) for codes in prior.sample(5)]
        [(5, 2, 2, 1), (5, 4, 4, 2)]
    """

    def __init__(self, priors: Sequence[Prior | Mapping[str, Any]]) -> None:
        super().__init__()
        require(len(priors) > 0, "expected at least one prior")
        built = [build_prior(prior) for prior in priors]
        for number, prior in enumerate(built):
            before = tuple(other.level for other in built[:number])
            require(
                prior.above == before,
                f"expected prior {number} to know the levels above it, {before}, "
                f"got above={prior.above}; order priors from the top down",
            )
        self.priors = nn.ModuleList(built)

    @classmethod
    def over(
        cls, levels: Sequence[Any], prior: str | Mapping[str, Any] = "autoregressive", **more: Any
    ) -> Self:
        """Equal priors of all levels.

        Args:
            levels: Top first.
            prior: A registered name, or a spec without levels.
            more: Settings of each prior.
        """
        known = [as_level(level) for level in levels]
        return cls(
            [
                build_prior(prior, level=level, above=known[:number], **more)
                for number, level in enumerate(known)
            ]
        )

    def members(self) -> list[Prior]:
        """The priors, top first."""
        return [prior for prior in self.priors if isinstance(prior, Prior)]

    def loss(
        self, codes: Sequence[Tensor], assignments: Sequence[Tensor | None] | None = None
    ) -> Tensor:
        """Mean nats a code over all levels, to minimise.

        Args:
            codes: A grid of each level, top first.
            assignments: For each level soft labels or None; see ``Prior.loss``.
        """
        labels = [None] * len(codes) if assignments is None else list(assignments)
        self._check(codes)
        self._check(labels)
        codes_in_all = sum(prior.level.num_codes for prior in self.members())
        parts = []
        for number, (prior, label) in enumerate(zip(self.members(), labels, strict=True)):
            share = prior.level.num_codes / codes_in_all
            parts.append(share * prior.loss(codes[number], codes[:number], label))
        return torch.stack(parts).sum()

    def forward(
        self, codes: Sequence[Tensor], assignments: Sequence[Tensor | None] | None = None
    ) -> Tensor:
        """``loss``, for wrappers of modules such as data-parallel ones."""
        return self.loss(codes, assignments)

    def level_nats(self, codes: Sequence[Tensor]) -> Tensor:
        """Nats ``(batch, levels)`` of each level given those above it, float64."""
        self._check(codes)
        found = [
            prior.nats(codes[number], codes[:number]) for number, prior in enumerate(self.members())
        ]
        return torch.stack(found, dim=1)

    def nats(self, codes: Sequence[Tensor]) -> Tensor:
        """Minus the log-probability ``(batch,)`` of all codes together, float64."""
        return self.level_nats(codes).sum(dim=1)

    def sample(
        self,
        count: int,
        *,
        generator: torch.Generator | None = None,
        temperature: float = 1.0,
        cached: bool = True,
    ) -> tuple[Tensor, ...]:
        """Draw a grid of each level, from the top down; see ``Prior.sample``."""
        drawn: list[Tensor] = []
        for prior in self.members():
            codes = prior.sample(
                count, drawn, generator=generator, temperature=temperature, cached=cached
            )
            drawn.append(codes)
        return tuple(drawn)

    def spec(self) -> dict[str, Any]:
        """The settings as plain data: ``LevelsPrior(**spec)`` is the inverse."""
        return {"priors": [prior.spec() for prior in self.members()]}

    def _check(self, items: Sequence[Any]) -> None:
        require(
            isinstance(items, Sequence) and len(items) == len(self.priors),
            f"expected one for each of {len(self.priors)} levels, top first, got "
            f"{len(items) if isinstance(items, Sequence) else type(items).__name__}",
            ShapeError,
        )
