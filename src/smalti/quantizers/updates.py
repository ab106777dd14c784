"""When moving averages are applied: at each training step, or at each optimizer step.

By default a codebook learns in ``forward``. Under gradient accumulation that would be too
often: :func:`follow` makes a model's codebooks collect the statistics of all batches (and,
with several processes, of all ranks) and learn once, when the optimizer steps.
"""

from __future__ import annotations

from typing import Any

from torch import nn, optim

from smalti.quantizers.codebook import Codebook


def defer_updates(model: nn.Module, deferred: bool = True) -> None:
    """Make codebooks collect statistics until :func:`apply_updates`, or stop doing so."""
    for part in model.modules():
        if isinstance(part, Codebook):
            part.apply_pending()
            part.deferred = deferred


def apply_updates(model: nn.Module) -> None:
    """Let every codebook of ``model`` learn from what it has collected.

    With several processes, all of them must call this at the same time.
    """
    for part in model.modules():
        if isinstance(part, Codebook):
            part.apply_pending()


def follow(model: nn.Module, optimizer: optim.Optimizer) -> None:
    """Let the codebooks of ``model`` learn whenever ``optimizer`` steps.

    Example:
        >>> import torch
        >>> from smalti.quantizers import VectorQuantizer
        >>> model = nn.Sequential(nn.Linear(8, 4), VectorQuantizer(4, 16))
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> follow(model, optimizer)
    """
    defer_updates(model)

    def applied(*_: Any) -> None:
        apply_updates(model)

    optimizer.register_step_post_hook(applied)
