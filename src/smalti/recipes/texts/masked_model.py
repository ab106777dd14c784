"""A small BERT on words: a transformer that fills in masked words, with a full or a coded table.

Reference:
    Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for
    Language Understanding", NAACL 2019, arXiv:1810.04805, section 3.1 (task 1).

Differs from the paper:
    Words in the place of word pieces, no second task, norms before the parts of a layer. Of each
    piece of text the same number of words is masked. The output layer is an adaptive softmax of
    its own, which is not tied to the input table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from smalti.errors import DataError, require
from smalti.recipes.texts.config import MaskedModelConfig
from smalti.recipes.texts.networks import Attending, WordChances
from smalti.recipes.texts.outcome import Learned
from smalti.recipes.texts.table_task import TableTask, learn, start_table
from smalti.recipes.texts.word_texts import Texts, as_ids, read_word_texts
from smalti.training import Counted

MASK = "<mask>"
# The share of words to fill in; of them so many are masked, and so many become any word.
CHOSEN, MASKED, SWAPPED = 0.15, 0.8, 0.1
# Pieces of text of a batch in evaluation.
EVALUATION_ROWS = 64


class Gaps(NamedTuple):
    """Pieces of text with words to fill in."""

    ids: Tensor
    places: Tensor
    """Where, ``(rows, count)``."""
    targets: Tensor
    """Which words stood there."""


class MaskedModel(nn.Module):
    """A transformer that sees a whole piece of text, with dropout before and after.

    Args:
        embedding: The input table, the last row of which stands for a masked word.
        words: How many words there are; ids must fall with frequency.
        config: Widths, depth, dropout.
    """

    def __init__(self, embedding: nn.Module, words: int, config: MaskedModelConfig) -> None:
        super().__init__()
        self.embedding = embedding
        self.network = Attending(
            config.dim, config.hidden, config.depth, config.heads, config.dropout, causal=False
        )
        self.dropout = nn.Dropout(config.dropout)
        self.output = WordChances(config.hidden, words)

    def forward(self, ids: Tensor, places: Tensor) -> Tensor:
        """The hidden vectors ``(rows * count, hidden)`` of some places."""
        hidden, _ = self.network(self.dropout(self.embedding(ids)))
        wanted = places[:, :, None].expand(-1, -1, hidden.shape[2])
        found: Tensor = self.dropout(hidden.gather(1, wanted).flatten(0, 1))
        return found


def with_gaps(pieces: Tensor, words: int, generator: torch.Generator) -> Gaps:
    """Choose words of each piece ``(rows, length)`` and mask most of them; ``words`` is the mask.

    Of those that are chosen some become any word and some stay, so that no word can be trusted.
    """
    count = max(1, round(CHOSEN * pieces.shape[1]))
    places = torch.rand(pieces.shape, generator=generator).argsort(dim=1)[:, :count]
    targets = pieces.gather(1, places)
    chance = torch.rand(places.shape, generator=generator)
    any_word = torch.randint(words, places.shape, generator=generator)
    shown = torch.where(chance < MASKED, torch.tensor(words), targets)
    shown = torch.where((chance >= MASKED) & (chance < MASKED + SWAPPED), any_word, shown)
    return Gaps(pieces.scatter(1, places, shown), places, targets)


class MaskedTask(TableTask[Gaps]):
    """Fill in the words that are masked.

    Args:
        model: What learns.
        config: Its settings.
        words: All words, the mask last.
        ids: The numbers of the words of each split.
    """

    name, metric = "masked language model", "perplexity"

    def __init__(
        self,
        model: MaskedModel,
        config: MaskedModelConfig,
        words: list[str],
        ids: Mapping[str, Tensor],
    ) -> None:
        super().__init__(model, config, words)
        self.filler = model
        self.pieces = {
            split: found[: len(found) // config.window * config.window].view(-1, config.window)
            for split, found in ids.items()
        }

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[Gaps]:
        """All pieces in random order, with gaps of their own in each epoch."""
        del epoch
        order = torch.randperm(len(self.pieces["train"]), generator=generator)
        groups = order.split(self.training.batch_size)
        return Counted(self._gaps("train", groups, generator), len(groups))

    def loss(self, batch: Gaps) -> Tensor:
        """Mean nats of a word that is filled in."""
        hidden = self.filler(batch.ids, batch.places)
        loss: Tensor = self.filler.output(hidden, batch.targets.flatten()).loss
        return loss

    @torch.no_grad()
    def scores(self, split: str) -> dict[str, float]:
        """The perplexity of words to fill in, and how many are right, in percent."""
        total, right, seen = 0.0, 0, 0
        groups = torch.arange(len(self.pieces[split])).split(EVALUATION_ROWS)
        device = next(self.model.parameters()).device
        # The same gaps for every model.
        for batch in self._gaps(split, groups, torch.Generator().manual_seed(0)):
            hidden = self.filler(batch.ids.to(device), batch.places.to(device))
            targets = batch.targets.flatten().to(device)
            total += float(self.filler.output(hidden, targets).loss) * len(targets)
            right += int((self.filler.output.predict(hidden) == targets).sum())
            seen += len(targets)
        return {"perplexity": math.exp(total / seen), "accuracy": 100 * right / seen}

    def _gaps(
        self, split: str, groups: tuple[Tensor, ...], generator: torch.Generator
    ) -> Iterator[Gaps]:
        for rows in groups:
            yield with_gaps(self.pieces[split][rows], len(self.words) - 1, generator)


def train_masked_model(
    config: MaskedModelConfig,
    run: Path | None = None,
    resume: bool = False,
    *,
    texts: Texts | None = None,
) -> Learned:
    """Pre-train a small BERT, and measure how well it fills in words and its table's size.

    Args:
        config: What is trained and how.
        run: A directory for checkpoints and the journal; None writes nothing.
        resume: Go on from what is there.
        texts: Lines for ``"train"``, ``"valid"`` and ``"test"``, in the place of those that the
            config names.
    """
    ids, words = as_ids(read_word_texts(config.data, config.limit) if texts is None else texts)
    for split, found in ids.items():
        require(
            len(found) >= config.window,
            f"expected at least {config.window} words to {split} with, a window, got {len(found)}",
            DataError,
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        model = MaskedModel(start_table(config, len(words) + 1), len(words), config)
    return learn(MaskedTask(model, config, [*words, MASK], ids), config, run, resume)
