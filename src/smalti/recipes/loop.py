"""The training loop of the small recipes: epochs, a falling learning rate, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from smalti.embeddings.differentiable_table import learning_loss
from smalti.progress import progress_bar

Batch = TypeVar("Batch")
# Called with how many epochs are done, and the model in evaluation mode.
Watch = Callable[[int, nn.Module], None]
# The share of all steps in which the learning rate rises.
WARM_UP = 0.02


def learn(
    model: nn.Module,
    epoch_of: Callable[[], Iterable[Batch]],
    loss_of: Callable[[Batch], Tensor],
    *,
    epochs: int,
    steps: int,
    learning_rate: float,
    clip: float = 1.0,
    checkpoint: Path | None = None,
    watch: Watch | None = None,
) -> None:
    """Adam with a warm-up and a linear fall to zero; coded tables add their own loss.

    Args:
        model: What learns.
        epoch_of: The batches of one epoch, drawn anew at each call.
        loss_of: The task's loss of a batch.
        epochs: How many epochs.
        steps: How many batches an epoch has.
        learning_rate: The highest.
        clip: The largest norm of the gradient.
        checkpoint: A file that is written after each epoch and resumed from.
        watch: Called after each epoch; it must not change the model.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    total = epochs * steps
    rise = max(1, int(WARM_UP * total))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / rise, (total - step) / total)
    )
    kept = {"model": model, "optimizer": optimizer, "schedule": schedule}
    done = _resume(kept, checkpoint)
    with progress_bar("training", "steps", total=total) as advance:
        advance(done * steps)
        for epoch in range(done, epochs):
            model.train()
            for batch in epoch_of():
                optimizer.zero_grad(set_to_none=True)
                (loss_of(batch) + learning_loss(model)).backward()
                nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                schedule.step()
                advance(1)
            _keep(kept, epoch + 1, checkpoint)
            if watch is not None:
                watch(epoch + 1, model.eval())


def _resume(kept: dict[str, Any], checkpoint: Path | None) -> int:
    """Load what was kept, and say how many epochs are done."""
    if checkpoint is None or not checkpoint.exists():
        return 0
    state = torch.load(checkpoint, weights_only=True)
    for name, part in kept.items():
        part.load_state_dict(state[name])
    torch.set_rng_state(state["randomness"])
    epoch: int = state["epoch"]
    return epoch


def _keep(kept: dict[str, Any], epoch: int, checkpoint: Path | None) -> None:
    """Write to a sibling and rename it, so that a killed process leaves a whole file."""
    if checkpoint is None:
        return
    state = {name: part.state_dict() for name, part in kept.items()}
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    sibling = checkpoint.with_name(checkpoint.name + ".part")
    torch.save({**state, "epoch": epoch, "randomness": torch.get_rng_state()}, sibling)
    sibling.replace(checkpoint)
