"""A small word-level language model, an LSTM or a transformer, with a full or a coded input table.

Only the input table is coded, as in the paper on differentiable product quantization; the
output layer is an adaptive softmax, which still gives a probability to every word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from smalti.errors import DataError, require
from smalti.recipes.texts.config import LanguageModelConfig
from smalti.recipes.texts.networks import Attending, Recurrent, State, WordChances
from smalti.recipes.texts.outcome import Learned
from smalti.recipes.texts.table_task import TableTask, learn, start_table
from smalti.recipes.texts.word_texts import Texts, as_ids, read_word_texts
from smalti.training import Counted

# Places of a text that are read at the same time in evaluation.
EVALUATION_ROWS = 10


class Window(NamedTuple):
    """Some words of several places of a text, and the words that follow them."""

    ids: Tensor
    targets: Tensor
    first: bool
    """Whether no window came before: nothing is remembered."""


class LanguageModel(nn.Module):
    """A network over embedded words, with dropout before and after.

    Args:
        embedding: The input table.
        words: How many words there are; ids must fall with frequency.
        config: Widths, depth, dropout, which network.
    """

    def __init__(self, embedding: nn.Module, words: int, config: LanguageModelConfig) -> None:
        super().__init__()
        self.embedding = embedding
        sizes = (config.dim, config.hidden, config.depth)
        self.network: Recurrent | Attending
        if config.network == "lstm":
            self.network = Recurrent(*sizes, config.dropout)
        else:
            self.network = Attending(*sizes, config.heads, config.dropout, causal=True)
        self.dropout = nn.Dropout(config.dropout)
        self.output = WordChances(config.hidden, words)

    def forward(self, ids: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Mean negative log-likelihood of the targets, and the state after the window."""
        hidden, state = self.network(self.dropout(self.embedding(ids)), state)
        return self.output(self.dropout(hidden).flatten(0, 1), targets.flatten()).loss, state


def windows(ids: Tensor, rows: int, length: int) -> Iterator[Window]:
    """Ids and the ids that follow them, ``(rows, length)``, in the order of the text."""
    text = ids[: len(ids) // rows * rows].view(rows, -1)
    for first in range(0, text.shape[1] - 1, length):
        targets = text[:, first + 1 : first + 1 + length]
        yield Window(text[:, first : first + targets.shape[1]], targets, first == 0)


@torch.no_grad()
def perplexity(model: LanguageModel, ids: Tensor, length: int) -> float:
    """Of a text, read once from its beginning in a few places, in evaluation."""
    total, seen, state = 0.0, 0, None
    device = next(model.parameters()).device
    # A word and the next one at least, in each place.
    rows = max(1, min(EVALUATION_ROWS, len(ids) // 2))
    for window in windows(ids.to(device), rows, length):
        loss, state = model(window.ids, window.targets, state)
        total += float(loss) * window.targets.numel()
        seen += window.targets.numel()
    return math.exp(total / max(seen, 1))


class LanguageTask(TableTask[Window]):
    """Predict each word from those before it.

    Args:
        model: What learns.
        config: Its settings.
        words: All words.
        ids: The numbers of the words of each split.
    """

    name, metric = "language model", "perplexity"

    def __init__(
        self,
        model: LanguageModel,
        config: LanguageModelConfig,
        words: list[str],
        ids: Mapping[str, Tensor],
    ) -> None:
        super().__init__(model, config, words)
        self.reader, self.length, self.ids = model, config.window, ids
        self.state: State = None

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[Window]:
        """The whole text, in its order."""
        del epoch, generator
        rows = self.training.batch_size
        words = len(self.ids["train"]) // rows
        found = windows(self.ids["train"], rows, self.length)
        return Counted(found, -(-(words - 1) // self.length))

    def loss(self, batch: Window) -> Tensor:
        """Mean nats of a word."""
        before = None if batch.first else self.state
        loss: Tensor
        loss, self.state = self.reader(batch.ids, batch.targets, before)
        return loss

    def scores(self, split: str) -> dict[str, float]:
        """The perplexity."""
        return {"perplexity": perplexity(self.reader, self.ids[split], self.length)}

    def state_dict(self) -> dict[str, Any]:
        """What the network remembers of the words before, too."""
        return {**super().state_dict(), "state": self.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with it."""
        super().load_state_dict(state)
        self.state = state["state"]


def train_language_model(
    config: LanguageModelConfig,
    run: Path | None = None,
    resume: bool = False,
    *,
    texts: Texts | None = None,
) -> Learned:
    """Train a language model, and measure its perplexity and its input table's size.

    Args:
        config: What is trained and how.
        run: A directory for checkpoints and the journal; None writes nothing.
        resume: Go on from what is there.
        texts: Lines for ``"train"``, ``"valid"`` and ``"test"``, in the place of those that the
            config names.
    """
    ids, words = as_ids(read_word_texts(config.data, config.limit) if texts is None else texts)
    rows = config.training.batch_size
    require(
        len(ids["train"]) >= 2 * rows,
        f"expected at least {2 * rows} words, two for each of {rows} places that are read at the "
        f"same time, got {len(ids['train'])}; give a smaller training.batch_size",
        DataError,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        model = LanguageModel(start_table(config, len(words)), len(words), config)
    return learn(LanguageTask(model, config, words, ids), config, run, resume)
