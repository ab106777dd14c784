"""The one training loop: it knows no model, and goes on bit for bit where it was stopped."""

from smalti.training.checkpoints import Checkpoint, Checkpoints, read_weights
from smalti.training.configuring import Settings, as_settings, read_settings, with_changes
from smalti.training.journal import read_journal
from smalti.training.loop import train
from smalti.training.outcome import TrainingOutcome
from smalti.training.schedules import (
    Constant,
    Cosine,
    InverseRoot,
    Linear,
    Schedule,
    ScheduledRates,
    Stairs,
)
from smalti.training.settings import TrainingSettings
from smalti.training.sharding import Shareable
from smalti.training.task import Counted, HeedsProgress, KeepsState, Task

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Constant",
    "Cosine",
    "Counted",
    "HeedsProgress",
    "InverseRoot",
    "KeepsState",
    "Linear",
    "Schedule",
    "ScheduledRates",
    "Settings",
    "Shareable",
    "Stairs",
    "Task",
    "TrainingOutcome",
    "TrainingSettings",
    "as_settings",
    "read_journal",
    "read_settings",
    "read_weights",
    "train",
    "with_changes",
]
