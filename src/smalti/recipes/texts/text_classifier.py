"""A classifier of short texts by the mean of their word vectors, full or coded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.data import Labelled, locate, read_labelled
from smalti.recipes.texts.config import ClassifierConfig
from smalti.recipes.texts.outcome import Learned
from smalti.recipes.texts.table_task import TableTask, learn, start_table
from smalti.training import Counted

WORD = re.compile(r"\w+")
# Row 0 of every table: words that were not seen in training.
UNKNOWN, UNKNOWN_WORD = 0, "<unknown>"
# The share of the training set that is held out to validate.
HELD_OUT = 0.1
EVALUATION_BATCH = 512
# Where the texts to train with and to test with are found.
PLACES = {
    "agnews": ("text/agnews/train_subset10k.tsv", "text/agnews/test.tsv"),
    "trec": ("text/trec/trec_train.txt", "text/trec/trec_test.txt"),
}


@dataclass(frozen=True)
class TextBatch:
    """Texts that lie one after the other.

    There is no padding: a padded word would count in the statistics of a coded table.

    Args:
        ids: The words of all texts.
        lengths: How many words each text has.
        labels: The class of each text.
    """

    ids: Tensor
    lengths: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def share(self, part: int, parts: int) -> TextBatch:
        """The texts of one of several shares, in order."""
        span = slice(len(self) * part // parts, len(self) * (part + 1) // parts)
        before, own = int(self.lengths[: span.start].sum()), int(self.lengths[span].sum())
        return TextBatch(self.ids[before : before + own], self.lengths[span], self.labels[span])

    def to(self, device: torch.device) -> TextBatch:
        """The same on a device."""
        return TextBatch(self.ids.to(device), self.lengths.to(device), self.labels.to(device))


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
        texts = torch.arange(len(lengths), device=lengths.device)
        owner = torch.repeat_interleave(texts, lengths)
        vectors = self.embedding(ids)
        sums = vectors.new_zeros(len(lengths), vectors.shape[1]).index_add(0, owner, vectors)
        scores: Tensor = self.head(sums / lengths.clamp(min=1)[:, None])
        return scores


def read_classes(name: str, limit: int | None = None) -> tuple[Labelled, Labelled]:
    """Texts to train and to test with; those that stand in both are left out of the first.

    Args:
        name: ``"agnews"``, news by topic, or ``"trec"``, questions by what they ask for.
        limit: Only so many of each.
    """
    train_file, test_file = PLACES[name]
    test = read_labelled(locate(test_file))
    train = read_labelled(locate(train_file), classes=test.classes).without(test)
    if limit is None:
        return train, test
    return train.pick(range(min(limit, len(train)))), test.pick(range(min(limit, len(test))))


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


def as_ids(texts: Sequence[str], words: Mapping[str, int]) -> list[Tensor]:
    """The ids of each text's words; a text without words is one unknown word."""
    found = ([words.get(word, UNKNOWN) for word in WORD.findall(text.lower())] for text in texts)
    return [torch.tensor(ids or [UNKNOWN]) for ids in found]


def batches(ids: Sequence[Tensor], labels: Tensor, groups: Sequence[Tensor]) -> Iterator[TextBatch]:
    """The texts of each group of places."""
    for places in groups:
        texts = [ids[place] for place in places.tolist()]
        lengths = torch.tensor([len(text) for text in texts])
        yield TextBatch(torch.cat(texts), lengths, labels[places])


@torch.no_grad()
def accuracy(model: TextClassifier, ids: Sequence[Tensor], labels: Tensor) -> float:
    """Share of texts, in percent, whose best score is their label's; in evaluation."""
    right = 0
    device = next(model.parameters()).device
    for some in batches(ids, labels, torch.arange(len(ids)).split(EVALUATION_BATCH)):
        batch = some.to(device)
        right += int((model(batch.ids, batch.lengths).argmax(dim=1) == batch.labels).sum())
    return 100 * right / len(ids)


class ClassifierTask(TableTask[TextBatch]):
    """Tell the class of a text.

    Args:
        model: What learns.
        config: Its settings.
        words: All words, the unknown one first.
        texts: The ids and labels of each split.
    """

    name, metric = "text classifier", "accuracy"

    def __init__(
        self,
        model: TextClassifier,
        config: ClassifierConfig,
        words: list[str],
        texts: Mapping[str, tuple[list[Tensor], Tensor]],
    ) -> None:
        super().__init__(model, config, words)
        self.classifier, self.texts = model, texts

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[TextBatch]:
        """All texts in random order."""
        del epoch
        ids, labels = self.texts["train"]
        groups = torch.randperm(len(ids), generator=generator).split(self.training.batch_size)
        return Counted(batches(ids, labels, groups), len(groups))

    def loss(self, batch: TextBatch) -> Tensor:
        """Mean nats of a class."""
        return functional.cross_entropy(self.classifier(batch.ids, batch.lengths), batch.labels)

    def scores(self, split: str) -> dict[str, float]:
        """The accuracy."""
        return {"accuracy": accuracy(self.classifier, *self.texts[split])}


def train_text_classifier(
    config: ClassifierConfig,
    run: Path | None = None,
    resume: bool = False,
    *,
    texts: tuple[Labelled, Labelled] | None = None,
) -> Learned:
    """Train a classifier, and measure its accuracy in percent and its input table's size.

    Args:
        config: What is trained and how.
        run: A directory for checkpoints and the journal; None writes nothing.
        resume: Go on from what is there.
        texts: To train and to test, in the place of those that the config names. A tenth of the
            first validates.
    """
    known, test = read_classes(config.data, config.limit) if texts is None else texts
    valid, known = held_out(known)
    words = words_of(known.first)
    splits = {"train": known, "valid": valid, "test": test}
    ids = {name: (as_ids(split.first, words), split.labels) for name, split in splits.items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        table = start_table(config, len(words) + 1)
        model = TextClassifier(table, config.dim, len(test.classes), config.hidden, config.dropout)
    task = ClassifierTask(model, config, [UNKNOWN_WORD, *words], ids)
    return learn(task, config, run, resume)
