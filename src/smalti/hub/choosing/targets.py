"""What a model gives for calibration texts, and how far another model's outputs are from it.

Sentence encoders are compared by the cosines of sentence vectors. Language models are
compared by the cosine of the roots of next-token probabilities (Bhattacharyya's coefficient),
because their table is also their output layer; those with encoder and decoder get a text on
both sides. Both are 1 for equal outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from smalti.hub.batching import Batches, batches, limit_of
from smalti.hub.library import Model
from smalti.hub.opening import Opened
from smalti.hub.outputs import call, last_hidden
from smalti.hub.pooling import POOLING, sentence_settings

# Longer texts teach nothing new about single tokens and cost much.
LONGEST = 128
# A language model is large, and every position of a text is an output: few texts will do.
FEW_TEXTS = 32
# Of a language model, one position in so many is compared: scores of all tokens are large.
EVERY = 4


class Target(Protocol):
    """Outputs of an original model for some batches, to which others are compared."""

    made: Batches

    def outputs(self, model: Model, place: int) -> Tensor:
        """A model's outputs for batch ``place``, as vectors ``(n, width)`` of length 1."""

    def cosines(self, model: Model, place: int) -> Tensor:
        """Cosines ``(n,)`` of a model's outputs and the original's for batch ``place``."""


class VectorTarget:
    """Sentence vectors of an encoder."""

    def __init__(self, opened: Opened, made: Batches) -> None:
        self.made = made
        self.pool = POOLING[sentence_settings(opened.path).pooling]
        with torch.no_grad():
            self.wanted = [self._vectors(opened.model, inputs) for inputs in made.inputs]

    def _vectors(self, model: Model, inputs: dict[str, Tensor]) -> Tensor:
        hidden = last_hidden(model, inputs).float()
        mask = inputs["attention_mask"].to(hidden)[..., None]
        return functional.normalize(self.pool(hidden, mask), dim=-1)

    def outputs(self, model: Model, place: int) -> Tensor:
        """One vector a text."""
        return self._vectors(model, self.made.inputs[place])

    def cosines(self, model: Model, place: int) -> Tensor:
        """One cosine a text."""
        return (self.outputs(model, place) * self.wanted[place]).sum(dim=-1)


class TokenTarget:
    """Next-token probabilities of a language model, at some positions of each text."""

    def __init__(self, opened: Opened, made: Batches) -> None:
        self.made = made
        with torch.no_grad():
            self.wanted = [
                self._logits(opened.model, inputs).log_softmax(dim=-1).half()
                for inputs in made.inputs
            ]

    def _logits(self, model: Model, inputs: dict[str, Tensor]) -> Tensor:
        every = inputs["attention_mask"].bool()
        some = every & (torch.arange(every.shape[1]) % EVERY == EVERY - 1)
        # All positions of texts that are shorter than that.
        where = some if bool(some.any()) else every
        if model.config.is_encoder_decoder:
            inputs = {**inputs, "decoder_input_ids": inputs["input_ids"]}
        logits: Tensor = call(model, inputs, model.device).logits
        return logits[where].float()

    def outputs(self, model: Model, place: int) -> Tensor:
        """The roots of a position's probabilities."""
        logits = self._logits(model, self.made.inputs[place])
        return (0.5 * logits.log_softmax(dim=-1)).exp()

    def cosines(self, model: Model, place: int) -> Tensor:
        """One coefficient a position."""
        wanted = self.wanted[place].float()
        got = self._logits(model, self.made.inputs[place]).log_softmax(dim=-1)
        return (0.5 * (wanted + got)).exp().sum(dim=-1)


def target_of(opened: Opened, texts: Sequence[str], batch_size: int = 64) -> Target:
    """The original's outputs for some texts."""
    limit = min(filter(None, (LONGEST, limit_of(opened.model, opened.tokenizer))))
    speaks = opened.kind in {"causal", "masked", "seq2seq"}
    if speaks:
        # Long ones first: a heading says little about what comes next.
        texts, batch_size = sorted(texts, key=len, reverse=True)[:FEW_TEXTS], 8
    made = batches(opened.tokenizer, texts, batch_size=batch_size, limit=limit)
    return TokenTarget(opened, made) if speaks else VectorTarget(opened, made)


def mean_cosine(target: Target, model: Model) -> float:
    """How closely a model keeps the original's outputs; 1 is exactly."""
    with torch.no_grad():
        parts = [target.cosines(model, place) for place in range(len(target.made.inputs))]
    return float(torch.cat(parts).double().mean())
