"""Teaches a table's codewords to keep the model's outputs; codes stay as they are.

Reference: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network", 2015,
arXiv:1503.02531: an original's outputs as the goal.

Differs from the paper: only the codewords of the table learn, all else is fixed; the loss
is one minus the cosine of outputs, and steps are sized by each tensor's own scale.
"""

from __future__ import annotations

import copy

import torch

from smalti.embeddings import CompressedEmbedding
from smalti.hub.choosing.targets import Target
from smalti.hub.opening import Opened
from smalti.hub.replacing import replace_table
from smalti.progress import progress_bar

# Adam moves each number by about this share of its tensor's root mean square a step.
RATE = 0.03


def calibrate(
    opened: Opened,
    table: CompressedEmbedding,
    target: Target,
    *,
    epochs: int = 1,
    seed: int = 0,
    progress: bool | None = None,
) -> CompressedEmbedding:
    """A copy of ``table`` whose codewords have learned from the original's outputs.

    Args:
        opened: The original model, which stays as it is.
        table: What a compressor made of the model's table.
        target: The original's outputs for the texts to learn from.
        epochs: How often the texts are gone through.
        seed: Orders the texts.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    student = replace_table(copy.deepcopy(opened.model), copy.deepcopy(table))
    learning = student.get_input_embeddings().table
    student.requires_grad_(False)
    learning.requires_grad_(True)
    groups = [
        {"params": [p], "lr": RATE * float(p.detach().square().mean().sqrt())}
        for p in learning.parameters()
    ]
    if not groups:
        return copy.deepcopy(table)
    optimizer = torch.optim.Adam(groups)
    generator = torch.Generator().manual_seed(seed)
    batches = len(target.made.inputs)
    total = epochs * batches
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
    with progress_bar("calibrating", "batches", total=total, shown=progress) as advance:
        for _ in range(epochs):
            for place in torch.randperm(batches, generator=generator).tolist():
                loss = (1 - target.cosines(student, place)).mean()
                optimizer.zero_grad()
                # Where all rows of a batch are kept as they are, there is nothing to learn.
                if loss.requires_grad:
                    loss.backward()
                optimizer.step()
                schedule.step()
                advance(1)
    taught: CompressedEmbedding = learning.cpu()
    return taught
