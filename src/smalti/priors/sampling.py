"""Codes drawn from probabilities: one number between 0 and 1 decides each code."""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.priors.stepper import Stepper


def uniforms(shape: tuple[int, ...], generator: torch.Generator | None, like: Tensor) -> Tensor:
    """Float64 numbers from 0 to 1 on the device of ``like``, drawn where the generator lives."""
    source = like.device if generator is None else generator.device
    drawn = torch.rand(shape, dtype=torch.float64, generator=generator, device=source)
    return drawn.to(like.device)


def draw(logits: Tensor, chances: Tensor, temperature: float) -> Tensor:
    """The code at which the running sum of the probabilities passes the chance.

    Logits that differ by a rounding error give the same code, unless a chance lies within
    that error of a border.

    Args:
        logits: ``(..., size)``.
        chances: ``(..., n)`` from 0 to 1.
        temperature: Divides the logits; 0 always takes the likeliest code.

    Returns:
        Codes ``(..., n)``.
    """
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True).expand(chances.shape)
    scaled = logits.double() if temperature == 1 else logits.double() / temperature
    sums = scaled.softmax(dim=-1).cumsum(dim=-1)
    chances = (chances * sums[..., -1:]).contiguous()
    codes = torch.searchsorted(sums, chances, right=True)
    return codes.clamp(max=logits.shape[-1] - 1)


def walk(stepper: Stepper, chances: Tensor, temperature: float) -> Tensor:
    """Grids of codes ``(count, height, width, num_codebooks)``, drawn place by place.

    Args:
        stepper: At its beginning.
        chances: ``(codes of a grid, count)``.
        temperature: As for ``draw``.
    """
    drawn = []
    for chance in chances:
        codes = draw(stepper.logits(), chance[:, None], temperature)[:, 0]
        stepper.advance(codes)
        drawn.append(codes)
    level = stepper.level
    return torch.stack(drawn, dim=1).view(stepper.count, *level.grid, level.num_codebooks)
