"""A classifier of short texts by the mean of their word vectors, full or coded."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.data.labelled import Labelled, read_labelled
from smalti.data.locate import locate
from smalti.embeddings.base import Compressor
from smalti.recipes.loop import Watch, learn
from smalti.recipes.outcome import Outcome, exported, input_table, table_bytes

WORD = re.compile(r"\w+")
# Rows 0 of every table: words that were not seen in training.
UNKNOWN = 0
# The share of the training set that is held out to validate.
HELD_OUT = 0.1
EVALUATION_BATCH = 512

Batch = tuple[Tensor, Tensor, Tensor]


class TextClassifier(nn.Module):
    """A hidden layer over the mean of a text's word vectors.

    Args:
        embedding: The input table.
        dim: Its width.
        classes: How many classes.
        hidden: Width of the hidden layer.
        dropout: Share of numbers that are dropped.
    """

    def __init__(
        self, embedding: nn.Module, dim: int, classes: int, hidden: int, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.head = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(dim, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Scores ``(texts, classes)`` of texts that lie one after the other in ``ids``."""
        # No padding: a padded word would count in the statistics of a coded table.
        owner = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        vectors = self.embedding(ids)
        sums = vectors.new_zeros(len(lengths), vectors.shape[1]).index_add(0, owner, vectors)
        scores: Tensor = self.head(sums / lengths.clamp(min=1)[:, None])
        return scores


def ag_news() -> tuple[Labelled, Labelled]:
    """News by topic, to train and to test; texts that stand in both are left out of the first."""
    test = read_labelled(locate("text/agnews/test.tsv"))
    train = read_labelled(locate("text/agnews/train_subset10k.tsv"), classes=test.classes)
    return train.without(test), test


def held_out(known: Labelled) -> tuple[Labelled, Labelled]:
    """The texts that validate, the same for every seed, and those that are learned from."""
    held = int(HELD_OUT * len(known))
    mixed = torch.randperm(len(known), generator=torch.Generator().manual_seed(0)).tolist()
    return known.pick(mixed[:held]), known.pick(mixed[held:])


def words_of(texts: Sequence[str], least: int = 2) -> dict[str, int]:
    """A number from 1 on for each word that occurs ``least`` times, the commonest first."""
    counts = Counter(word for text in texts for word in WORD.findall(text.lower()))
    frequent = [word for word, seen in counts.items() if seen >= least]
    ordered = sorted(frequent, key=lambda word: (-counts[word], word))
    return {word: number + 1 for number, word in enumerate(ordered)}


def as_ids(texts: Sequence[str], words: dict[str, int]) -> list[Tensor]:
    """The ids of each text's words; a text without words is one unknown word."""
    found = ([words.get(word, UNKNOWN) for word in WORD.findall(text.lower())] for text in texts)
    return [torch.tensor(ids or [UNKNOWN]) for ids in found]


def batches(ids: Sequence[Tensor], labels: Tensor, order: Tensor, size: int) -> Iterator[Batch]:
    """Joined ids, lengths and labels of the texts in ``order``, ``size`` at a time."""
    for places in order.split(size):
        texts = [ids[place] for place in places.tolist()]
        yield torch.cat(texts), torch.tensor([len(text) for text in texts]), labels[places]


@torch.no_grad()
def accuracy(model: TextClassifier, ids: Sequence[Tensor], labels: Tensor) -> float:
    """Share of texts, in percent, whose best score is their label's."""
    model.eval()
    order = torch.arange(len(ids))
    right = 0
    for joined, lengths, wanted in batches(ids, labels, order, EVALUATION_BATCH):
        right += int((model(joined, lengths).argmax(dim=1) == wanted).sum())
    return 100 * right / len(ids)


def train(
    embedding: Compressor | None = None,
    *,
    texts: tuple[Labelled, Labelled] | None = None,
    dim: int = 300,
    hidden: int = 100,
    dropout: float = 0.5,
    epochs: int = 10,
    batch: int = 64,
    learning_rate: float = 1e-3,
    seed: int = 0,
    checkpoint: Path | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Train a classifier and report its accuracy in percent and its input table's size.

    Args:
        embedding: How the input table is coded; None for a full table.
        texts: To train and to test; without them AG News. A tenth of the first validates.
        dim: Width of the input table.
        hidden: Width of the hidden layer.
        dropout: Share of numbers that are dropped.
        epochs: How often the training texts are read.
        batch: Texts of a batch.
        learning_rate: The highest, of Adam.
        seed: Of everything random.
        checkpoint: A file to write after each epoch and to resume from.
        watch: Called with the epochs done and the model, after each epoch.
    """
    began = time.monotonic()
    known, test = ag_news() if texts is None else texts
    valid, known = held_out(known)
    words = words_of(known.first)
    rows = len(words) + 1
    ids = as_ids(known.first, words)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        table = input_table(embedding, rows, dim)
        model = TextClassifier(table, dim, len(test.classes), hidden, dropout)

        def loss_of(some: Batch) -> Tensor:
            joined, lengths, wanted = some
            return functional.cross_entropy(model(joined, lengths), wanted)

        learn(
            model,
            lambda: batches(ids, known.labels, torch.randperm(len(ids)), batch),
            loss_of,
            epochs=epochs,
            steps=-(-len(ids) // batch),
            learning_rate=learning_rate,
            checkpoint=checkpoint,
            watch=watch,
        )
    model.embedding, same = exported(table)
    stored = table_bytes(model.embedding)
    return Outcome(
        task="text classifier",
        metric="accuracy",
        valid=accuracy(model, as_ids(valid.first, words), valid.labels),
        test=accuracy(model, as_ids(test.first, words), test.labels),
        rows=rows,
        dim=dim,
        table_bytes=stored,
        compression_ratio=4 * rows * dim / stored,
        exported_equals_trained=same,
        embedding=None if embedding is None else embedding.spec(),
        epochs=epochs,
        seed=seed,
        seconds=time.monotonic() - began,
    )
