"""The settings of a task on texts: which texts, which table, which network, how it is trained."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, PositiveInt

from smalti.training import Linear, Settings, TrainingSettings

# A short rise and a straight fall to zero, the same for full and for coded tables.
SCHEDULE = Linear(warm_up=0.02)


class TableTaskConfig(Settings):
    """What all tasks have in common.

    Args:
        data: The name of the texts.
        limit: Only so many of each part of them, the first ones; None for all.
        embedding: The spec of a compressor that can start untrained, for the input table; None
            for a full table.
        dim: Width of the input table.
        hidden: Width of the network.
        dropout: Share of numbers that are dropped in training.
        training: How it is trained. Codes are kept at each evaluation, to see them settle.
    """

    data: str
    limit: PositiveInt | None = None
    embedding: dict[str, Any] | None = None
    dim: PositiveInt
    hidden: PositiveInt
    dropout: float = Field(ge=0, lt=1)
    training: TrainingSettings

    def with_seed(self, seed: int) -> Self:
        """The same, with another seed of everything random."""
        training = self.training.model_copy(update={"seed": seed})
        return self.model_copy(update={"training": training})


class RunningTextConfig(TableTaskConfig):
    """A model of the words of a running text.

    Args:
        data: ``"ptb"`` or ``"wikitext2"``.
        limit: As above, in lines.
        embedding: As above.
        dim: As above.
        hidden: As above.
        dropout: As above.
        training: As above.
        depth: Layers.
        heads: Views that attention takes.
        window: Words that are seen at once.
    """

    data: Literal["ptb", "wikitext2"]
    depth: PositiveInt
    heads: PositiveInt = 4
    window: PositiveInt


class LanguageModelConfig(RunningTextConfig):
    """A word-level language model; ``batch_size`` places of the text are read at the same time.

    Args:
        network: ``"lstm"``, which remembers all words before, or ``"transformer"``, which sees
            those of its window. Gradients flow through a window in either.
    """

    data: Literal["ptb", "wikitext2"] = "ptb"
    dim: PositiveInt = 200
    hidden: PositiveInt = 200
    dropout: float = Field(default=0.3, ge=0, lt=1)
    network: Literal["lstm", "transformer"] = "lstm"
    depth: PositiveInt = 1
    window: PositiveInt = 35
    training: TrainingSettings = TrainingSettings(
        epochs=10, batch_size=32, learning_rate=2e-3, schedule=SCHEDULE, clip_norm=1.0
    )


class MaskedModelConfig(RunningTextConfig):
    """A small BERT that fills in masked words; ``batch_size`` windows of text are a batch."""

    data: Literal["ptb", "wikitext2"] = "wikitext2"
    dim: PositiveInt = 128
    hidden: PositiveInt = 128
    dropout: float = Field(default=0.1, ge=0, lt=1)
    depth: PositiveInt = 2
    window: PositiveInt = 64
    training: TrainingSettings = TrainingSettings(
        epochs=10, batch_size=32, learning_rate=1e-3, schedule=SCHEDULE, clip_norm=1.0
    )


class ClassifierConfig(TableTaskConfig):
    """A classifier of short texts.

    Args:
        data: ``"agnews"`` or ``"trec"``.
        limit: As above, in texts.
        embedding: As above.
        dim: As above.
        hidden: As above.
        dropout: As above.
        training: As above; ``batch_size`` texts are a batch.
    """

    data: Literal["agnews", "trec"] = "agnews"
    dim: PositiveInt = 300
    hidden: PositiveInt = 100
    dropout: float = Field(default=0.5, ge=0, lt=1)
    training: TrainingSettings = TrainingSettings(
        epochs=10, batch_size=64, learning_rate=1e-3, schedule=SCHEDULE, clip_norm=1.0
    )
