"""What experiments with fine-tuned models are declared with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from smalti.training import Settings, TrainingSettings

# Tasks that a small model learns in some epochs; with others it stays near what the commonest
# class scores.
LEARNED = ("SST-2", "MRPC", "STS-B")


class SmallModel(Settings):
    """A random BERT with a vocabulary of the task's own texts, for trials.

    Args:
        rows: Of its table.
        dim: Width of its vectors.
        layers: How many blocks.
    """

    rows: PositiveInt
    dim: PositiveInt
    layers: PositiveInt = 1


class GlueData(Settings):
    """Which tasks, and how much of them.

    Args:
        tasks: By their names.
        model: Whose tokenizer reads them; a name or directory, or a small random one.
        most: At most so many examples of a task to learn from.
        test_most: At most so many of a task to report.
        longest: Longer texts are cut to so many tokens.
        train_files: Other training files than usual, by task.
    """

    tasks: tuple[str, ...]
    model: str | SmallModel = "all-MiniLM-L6-v2"
    most: PositiveInt | None = None
    test_most: PositiveInt | None = None
    longest: PositiveInt = 128
    train_files: dict[str, str] = Field(default_factory=dict)


class Budget(Settings):
    """Bytes that a table may have.

    Args:
        of: A compressor whose bytes are the measure, as plain data.
        share: The share of them that is allowed.
    """

    of: dict[str, Any]
    share: PositiveFloat = 1.0


class Original(Settings):
    """The table as it is."""

    kind: Literal["original"] = "original"


class Coded(Settings):
    """The best of some compressors, chosen on the validation set.

    Args:
        kind: ``"coded"``.
        options: Families of compressors as plain data, each from large to small. Without a
            budget the first of each is tried, otherwise the first that fits. The row
            ``"unknown"`` is that of the unknown token.
        within: The budget.
        space: Where a sparse code's weights are computed: in the fine-tuned table or in the
            table before.
    """

    kind: Literal["coded"] = "coded"
    options: tuple[tuple[dict[str, Any], ...], ...] = Field(min_length=1)
    within: Budget | None = None
    space: Literal["fine-tuned", "pre-trained"] = "fine-tuned"


class Searched(Settings):
    """What ``smalti compress --size`` makes of the model.

    Args:
        kind: ``"searched"``.
        within: The budget.
        teach: Whether codewords learn from the model's outputs.
    """

    kind: Literal["searched"] = "searched"
    within: Budget
    teach: bool = True


class Noisy(Settings):
    """Noise on some rows.

    Args:
        kind: ``"noisy"``.
        rows: The commoner half of the rows that occur, the rarer half, those that do not occur,
            or so many of the commoner half as are used as often as the rarer half.
        size: The noise's length as a share of each row's.
    """

    kind: Literal["noisy"] = "noisy"
    rows: Literal["common", "rare", "unseen", "common, as often"]
    size: PositiveFloat


Change = Annotated[Original | Coded | Searched | Noisy, Field(discriminator="kind")]


class FineTunedSettings(GlueData):
    """An arm: models that are fine-tuned, and what is done to their tables.

    Args:
        training: How models are fine-tuned; without ``epochs``.
        epochs: How often a task's examples are read.
        epochs_of: The same for single tasks.
        change: What takes the table's place.
        measured_in: What models compute in when they are measured.
    """

    training: dict[str, Any] = Field(default_factory=dict)
    epochs: PositiveInt = 3
    epochs_of: dict[str, PositiveInt] = Field(default_factory=dict)
    change: Change
    measured_in: Literal["float32", "bf16"] = "float32"

    def training_of(self, task: str, seed: int) -> TrainingSettings:
        """How the model of a task is fine-tuned."""
        epochs = self.epochs_of.get(task, self.epochs)
        return TrainingSettings(**self.training, epochs=epochs, seed=seed)
