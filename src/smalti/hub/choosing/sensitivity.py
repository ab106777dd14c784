"""What an error of a table's rows costs a model: how far its outputs move.

Reference: Gardner, Rao, "Theoretical Analysis of the High-Rate Vector Quantization of LPC
Parameters", IEEE TSAP 3(5), 1995: near zero the loss of a small error is a quadratic form.

Differs from the paper: the form is a mean over all rows and texts, and it is measured, by
gradients of random projections of the outputs (Hutchinson's way to a trace).
"""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.hub.choosing.targets import Target, target_of
from smalti.hub.groups import find_group
from smalti.hub.opening import Opened
from smalti.progress import progress_bar

# Texts that the cost is measured on: more of them change it little.
TEXTS = 768
# Random projections of each output.
PROJECTIONS = 2


def output_metric(
    opened: Opened, texts: list[str], *, seed: int = 0, progress: bool | None = None
) -> Tensor:
    """The metric ``(dim, dim)``: an error ``e`` moves outputs by ``e @ metric @ e``, up to scale.

    All places where the table stands count: a tied output layer too. The model is as before
    afterwards.

    Args:
        opened: The model.
        texts: The kind of text that it is used on.
        seed: Where the projections come from.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    return metric_of(opened, target_of(opened, texts[:TEXTS]), seed=seed, progress=progress)


def metric_of(
    opened: Opened,
    target: Target,
    *,
    projections: int = PROJECTIONS,
    seed: int = 0,
    progress: bool | None = None,
) -> Tensor:
    """The metric of the texts that a target is made of, its diagonal 1 on the average."""
    group = find_group(opened.model)
    generator = torch.Generator().manual_seed(seed)
    learning = {name: p.requires_grad for name, p in opened.model.named_parameters()}
    opened.model.requires_grad_(False)
    group.weight.requires_grad_(True)
    metric = torch.zeros(group.dim, group.dim, dtype=torch.float64)
    total = len(target.made.inputs)
    try:
        with progress_bar("sensitivity", "batches", total=total, shown=progress) as advance:
            for place in range(total):
                outputs = target.outputs(opened.model, place)
                for left in range(projections - 1, -1, -1):
                    signs = torch.randint(0, 2, outputs.shape, generator=generator) * 2.0 - 1
                    moved = (outputs * signs.to(outputs)).sum()
                    (gradient,) = torch.autograd.grad(moved, group.weight, retain_graph=left > 0)
                    used = gradient[gradient.any(dim=1)].float()
                    metric += (used.T @ used).double().cpu()
                advance(1)
    finally:
        for name, parameter in opened.model.named_parameters():
            parameter.requires_grad_(learning[name])
    return metric / metric.diagonal().mean().clamp(min=1e-300)
