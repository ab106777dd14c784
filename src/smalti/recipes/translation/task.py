"""The task of a translator: say what people said, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn, optim
from torch.optim.swa_utils import AveragedModel

from smalti.data import AlignedTexts, PairBatch, Subwords, TokenPairs
from smalti.embeddings.differentiable_table import learning_loss
from smalti.quantizers import follow
from smalti.recipes.translation.config import TranslationConfig
from smalti.recipes.translation.scoring import score
from smalti.recipes.translation.text_sets import as_tokens
from smalti.recipes.translation.translating import Batches
from smalti.training import Counted
from smalti.translation import Decoding, Latent, Translator

BETAS = (0.9, 0.98)


class TranslationTask:
    """Trains a translator on pairs of sentences.

    Args:
        model: What learns.
        subwords: The vocabulary.
        train: Pairs to learn from.
        valid: Pairs to evaluate with.
        config: Batch size, learning rate, averaging.
    """

    def __init__(
        self,
        model: Translator,
        subwords: Subwords,
        train: TokenPairs,
        valid: AlignedTexts,
        config: TranslationConfig,
    ) -> None:
        self.model: nn.Module = model
        self.translator, self.subwords, self.config = model, subwords, config
        self.train, self.valid = train, valid
        self.valid_pairs = as_tokens(valid, subwords, config.data.longest)
        self.progress = 0.0
        self.averaged: AveragedModel | None = None

    def batches(self, epoch: int, generator: torch.Generator) -> Counted[PairBatch]:
        """All pairs in random order, those of like lengths together."""
        del epoch
        rows = self.train.shuffled(self.config.training.batch_size, generator)
        return Counted(map(self.train.batch, rows), len(rows))

    def heed(self, progress: float) -> None:
        """Warm-ups, and what is frozen or averaged at the end, go by it."""
        self.progress = progress
        if self._is_within(self.config.frozen_codes_share) and isinstance(self.translator, Latent):
            self.translator.freeze_codes()

    def step(self, batch: PairBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The translator's loss, and that of tables that learn their codes."""
        loss, metrics = self.translator.loss(batch.source, batch.target, progress=self.progress)
        return loss + learning_loss(self.model).to(loss.device), metrics

    def optimizer(self) -> optim.Optimizer:
        """Adam, whose steps the codebooks and the averages follow."""
        made = optim.Adam(
            [item for item in self.model.parameters() if item.requires_grad],
            lr=self.config.training.learning_rate,
            betas=BETAS,
            fused=True,
        )
        follow(self.model, made)
        made.register_step_post_hook(self._average)
        return made

    def evaluate(self) -> dict[str, float]:
        """The losses of held-out pairs, and the score of some greedy translations."""
        model = self.finished()
        sums: dict[str, float] = {}
        tokens = 0
        for batch in self._valid_batches():
            loss, metrics = model.loss(batch.source, batch.target)
            for name, value in {"loss": loss, **metrics}.items():
                sums[name] = sums.get(name, 0.0) + float(value) * len(batch)
            tokens += len(batch)
        many = self.config.judged_sentences
        batches = Batches(model, self.subwords, self.valid.source[:many])
        found = batches.all_translated(Decoding())
        means = {name: value / tokens for name, value in sums.items()}
        return {**means, "greedy_bleu": score(found, self.valid.target[:many]).bleu}

    def picture(self) -> None:
        """There is nothing to look at."""

    def finished(self) -> Translator:
        """The model with averaged weights, where there are any."""
        if self.averaged is None:
            return self.translator
        return cast("Translator", self.averaged.module.eval())

    def state_dict(self) -> dict[str, Any]:
        """The averages."""
        return {"averaged": None if self.averaged is None else self.averaged.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from averages that ``state_dict`` gave."""
        if state["averaged"] is not None:
            self._begin_averaging().load_state_dict(state["averaged"])

    def _average(self, *_: Any) -> None:
        """After a step: take in its weights, if it is one of the last."""
        if self._is_within(self.config.averaged_share):
            (self.averaged or self._begin_averaging()).update_parameters(self.model)

    def _is_within(self, last_share: float) -> bool:
        return last_share > 0 and self.progress >= 1 - last_share

    def _begin_averaging(self) -> AveragedModel:
        self.averaged = AveragedModel(self.model)
        return self.averaged

    def _valid_batches(self) -> Iterator[PairBatch]:
        device = next(self.model.parameters()).device
        for rows in self.valid_pairs.in_order(self.config.training.batch_size):
            yield self.valid_pairs.batch(rows).to(device)
