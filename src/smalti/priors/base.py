"""The contract that every prior keeps: how likely a grid of codes is, and samples of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from smalti.errors import require
from smalti.layers.modes import evaluating
from smalti.priors.border import checked_above, checked_assignments, checked_grid
from smalti.priors.level import Level, as_level
from smalti.priors.stepper import Stepper
from smalti.quantizers import settings
from smalti.registry import Registry
from smalti.specs import build_from, spec_of


class Prior(nn.Module, ABC):
    """A distribution of the codes of one level, given the codes of the levels above it.

    A constructor stores each argument under its own name; ``spec`` and ``build_prior`` rely
    on it. Codes are ``(batch, height, width, num_codebooks)``. ``loss`` is to train with;
    all else runs without dropout and gradients, whatever mode the prior is in.

    Args:
        level: Grid and code sizes of the codes.
        above: The levels that are known before, top first.
    """

    example: ClassVar[Mapping[str, Any]] = {}
    """Settings of a small instance besides the levels, for the contract suite."""
    here: Tensor

    def __init__(self, level: Level | Sequence[Any], above: Sequence[Any] = ()) -> None:
        super().__init__()
        self.level = as_level(level)
        require(
            isinstance(above, Sequence) and not isinstance(above, Level),
            f"expected the levels above as a list, top first, got {above!r}",
        )
        self.above = tuple(as_level(item) for item in above)
        # Follows the prior from device to device, also where there are no parameters.
        self.register_buffer("here", torch.empty(0), persistent=False)

    @abstractmethod
    def _nats(
        self,
        codes: Tensor,
        above: tuple[Tensor, ...],
        assignments: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        """Nats ``(batch, height, width, num_codebooks)`` of each code given those before it.

        With assignments: the mean over the codewords that they share a position among.
        Everything is checked. Probabilities are normalised in ``dtype``.
        """

    @abstractmethod
    def _sample(
        self,
        count: int,
        above: tuple[Tensor, ...],
        generator: torch.Generator | None,
        temperature: float,
        cached: bool,
    ) -> Tensor:
        """Draw grids; everything is checked."""

    @abstractmethod
    def _stepper(self, count: int, above: tuple[Tensor, ...]) -> Stepper:
        """Begin a walk; everything is checked."""

    def loss(
        self,
        codes: Tensor,
        above: Sequence[Tensor] = (),
        assignments: Tensor | None = None,
    ) -> Tensor:
        """Mean nats a code, to minimise.

        Args:
            codes: Whole grids.
            above: Grids of the levels above, top first.
            assignments: ``(batch, height, width, num_codebooks, size)``, shares of the codewords
                that add up to 1: the labels, in the place of ``codes``, which still are what a
                prior sees of earlier positions. A codebook smaller than the largest has zeros
                at the end. Gradients reach them; detach them to keep an encoder out of it.
        """
        codes, given = self._checked(codes, above)
        if assignments is not None:
            assignments = checked_assignments(assignments, len(codes), self.level)
        return self._nats(codes, given, assignments, torch.float32).mean()

    def forward(
        self,
        codes: Tensor,
        above: Sequence[Tensor] = (),
        assignments: Tensor | None = None,
    ) -> Tensor:
        """``loss``, for wrappers of modules such as data-parallel ones."""
        return self.loss(codes, above, assignments)

    @torch.no_grad()
    def code_nats(self, codes: Tensor, above: Sequence[Tensor] = ()) -> Tensor:
        """Minus the log-probability of each code given those before it, like ``codes``, float64."""
        codes, given = self._checked(codes, above)
        with evaluating(self):
            return self._nats(codes, given, None, torch.float64)

    def nats(self, codes: Tensor, above: Sequence[Tensor] = ()) -> Tensor:
        """Minus the log-probability ``(batch,)`` of each whole grid, float64."""
        return self.code_nats(codes, above).flatten(1).sum(dim=1)

    @torch.no_grad()
    def sample(
        self,
        count: int,
        above: Sequence[Tensor] = (),
        *,
        generator: torch.Generator | None = None,
        temperature: float = 1.0,
        cached: bool = True,
    ) -> Tensor:
        """Draw grids of codes.

        Args:
            count: How many.
            above: For each of them the grids of the levels above, top first.
            generator: Where random numbers come from.
            temperature: Below 1 likely codes become likelier; 0 always takes the likeliest.
            cached: Whether a place builds on what was computed for earlier ones. The codes are
                the same; without, it takes longer.
        """
        count = settings.count("count", count)
        temperature = settings.number("temperature", temperature, least=0)
        given = checked_above(above, self.above, count)
        with evaluating(self):
            return self._sample(count, given, generator, temperature, cached)

    @torch.no_grad()
    def stepper(self, count: int, above: Sequence[Tensor] = ()) -> Stepper:
        """Begin a walk over ``count`` grids, for an entropy coder."""
        count = settings.count("count", count)
        return self._stepper(count, checked_above(above, self.above, count))

    def spec(self) -> dict[str, Any]:
        """The settings as plain data; ``build_prior`` is the inverse."""
        return spec_of(self, priors, "prior")

    def extra_repr(self) -> str:
        """The settings, as ``print`` shows them."""
        return ", ".join(f"{key}={value}" for key, value in self.spec().items() if key != "prior")

    def _checked(self, codes: Tensor, above: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        codes = checked_grid(codes, self.level)
        return codes, checked_above(above, self.above, len(codes))


priors: Registry[Prior] = Registry("prior")


def build_prior(spec: Mapping[str, Any] | str | Prior, **more: Any) -> Prior:
    """Make a prior from a spec, or from a registered name and settings.

    Example:
        >>> build_prior("uniform", level=[[4, 4], [256]]).level
        Level(grid=(4, 4), code_sizes=(256,))
    """
    if isinstance(spec, Prior):
        return spec
    built: Prior = build_from(priors, "prior", spec, more)
    return built
