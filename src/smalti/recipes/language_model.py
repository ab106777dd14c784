"""A small word-level LSTM language model, with a full or a coded input table.

Only the input table is coded, as in the paper on differentiable product quantization; the
output layer is an adaptive softmax, which still gives a probability to every word.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from smalti.data.locate import locate
from smalti.data.text import read_texts
from smalti.embeddings.base import Compressor
from smalti.errors import DataError, require
from smalti.recipes.loop import Watch, learn
from smalti.recipes.outcome import Outcome, exported, input_table, table_bytes

SPLITS = ("train", "valid", "test")
END, UNKNOWN = "<eos>", "<unk>"
# Words of a window that gradients flow through, and columns of text in evaluation.
WINDOW = 35
EVALUATION_COLUMNS = 10

State = tuple[Tensor, Tensor] | None


class LanguageModel(nn.Module):
    """An LSTM over embedded words, with dropout before and after.

    Args:
        embedding: The input table.
        dim: Its width.
        words: How many words there are; ids must fall with frequency.
        hidden: Width of the LSTM.
        dropout: Share of numbers that are dropped.
    """

    def __init__(
        self, embedding: nn.Module, dim: int, words: int, hidden: int, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.lstm = nn.LSTM(dim, hidden)
        self.dropout = nn.Dropout(dropout)
        cutoffs = [max(1, words // 20), max(2, 3 * words // 10)]
        self.output = nn.AdaptiveLogSoftmaxWithLoss(hidden, words, cutoffs, div_value=2.0)

    def forward(self, ids: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Mean negative log-likelihood of the targets, and the state after the window."""
        hidden, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.output(self.dropout(hidden).flatten(0, 1), targets.flatten()).loss, state


def penn_treebank() -> dict[str, list[str]]:
    """The lines of the Penn Treebank, by split."""
    return {name: list(read_texts(locate(f"text/ptb/ptb.{name}.txt"))) for name in SPLITS}


def as_ids(texts: Mapping[str, Sequence[str]]) -> tuple[dict[str, Tensor], list[str]]:
    """Lines of the splits as ids, the commonest training word first; and the words.

    A line ends with ``<eos>``; words that the training text lacks become ``<unk>``.
    """
    require(
        set(SPLITS) <= set(texts) and len(texts["train"]) > 0,
        f"expected lines of text for {', '.join(SPLITS)}, got {', '.join(texts)}",
        DataError,
    )
    split_words = {
        name: [word for line in texts[name] for word in (*line.split(), END)] for name in SPLITS
    }
    counts = Counter(split_words["train"])
    counts[UNKNOWN] += 0
    words = sorted(counts, key=lambda word: (-counts[word], word))
    number = {word: index for index, word in enumerate(words)}
    unknown = number[UNKNOWN]
    ids = {
        name: torch.tensor([number.get(word, unknown) for word in found])
        for name, found in split_words.items()
    }
    return ids, words


def windows(ids: Tensor, columns: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Ids and the ids that follow them, ``(window, columns)``, in the order of the text."""
    text = ids[: len(ids) // columns * columns].view(columns, -1).T.contiguous()
    for first in range(0, len(text) - 1, WINDOW):
        targets = text[first + 1 : first + 1 + WINDOW]
        yield text[first : first + len(targets)], targets


@torch.no_grad()
def perplexity(model: LanguageModel, ids: Tensor) -> float:
    """Of a text, read once from its beginning in a few columns."""
    model.eval()
    total, seen, state = 0.0, 0, None
    for inputs, targets in windows(ids, EVALUATION_COLUMNS):
        loss, state = model(inputs, targets, state)
        total += float(loss) * targets.numel()
        seen += targets.numel()
    return math.exp(total / max(seen, 1))


def train(
    embedding: Compressor | None = None,
    *,
    texts: Mapping[str, Sequence[str]] | None = None,
    dim: int = 200,
    hidden: int = 200,
    dropout: float = 0.3,
    epochs: int = 10,
    columns: int = 32,
    learning_rate: float = 2e-3,
    seed: int = 0,
    checkpoint: Path | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Train a language model and report its perplexity and its input table's size.

    Args:
        embedding: How the input table is coded; None for a full table.
        texts: Lines for ``"train"``, ``"valid"`` and ``"test"``; without them the Penn Treebank.
        dim: Width of the input table.
        hidden: Width of the LSTM.
        dropout: Share of numbers that are dropped.
        epochs: How often the training text is read.
        columns: Places of the training text that are read at the same time.
        learning_rate: The highest, of Adam.
        seed: Of everything random.
        checkpoint: A file to write after each epoch and to resume from.
        watch: Called with the epochs done and the model, after each epoch.
    """
    began = time.monotonic()
    ids, words = as_ids(penn_treebank() if texts is None else texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        table = input_table(embedding, len(words), dim)
        model = LanguageModel(table, dim, len(words), hidden, dropout)
        state: State = None

        def loss_of(batch: tuple[Tensor, Tensor]) -> Tensor:
            nonlocal state
            loss: Tensor
            loss, after = model(*batch, state)
            state = (after[0].detach(), after[1].detach())
            return loss

        def epoch_of() -> Iterator[tuple[Tensor, Tensor]]:
            nonlocal state
            state = None
            return windows(ids["train"], columns)

        learn(
            model,
            epoch_of,
            loss_of,
            epochs=epochs,
            steps=sum(1 for _ in windows(ids["train"], columns)),
            learning_rate=learning_rate,
            checkpoint=checkpoint,
            watch=watch,
        )
    model.embedding, same = exported(table)
    stored = table_bytes(model.embedding)
    return Outcome(
        task="language model",
        metric="perplexity",
        valid=perplexity(model, ids["valid"]),
        test=perplexity(model, ids["test"]),
        rows=len(words),
        dim=dim,
        table_bytes=stored,
        compression_ratio=4 * len(words) * dim / stored,
        exported_equals_trained=same,
        embedding=None if embedding is None else embedding.spec(),
        epochs=epochs,
        seed=seed,
        seconds=time.monotonic() - began,
    )
