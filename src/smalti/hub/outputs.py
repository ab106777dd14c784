"""What a model gives for a batch: its last hidden states, and its scores of all tokens.

Scores of a large vocabulary are the largest thing in memory by far, so they are made for some
positions at a time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalti.errors import require
from smalti.hub.library import Model

# Numbers of a piece of scores: 64 MB as float32.
PIECE = 1 << 24


def call(module: Model, inputs: Mapping[str, Tensor], device: torch.device, **more: Any) -> Any:
    """Call a module with what it takes of some inputs."""
    known = inspect.signature(module.forward).parameters
    given = {name: tensor.to(device) for name, tensor in inputs.items() if name in known}
    # Keys and values of all layers would be kept for nothing.
    return module(**given, **more, **({"use_cache": False} if "use_cache" in known else {}))


def last_hidden(model: Model, inputs: Mapping[str, Tensor]) -> Tensor:
    """The last hidden states ``(batch, length, dim)``, without the model's head.

    Of a model with encoder and decoder those of the encoder.
    """
    body = model.get_encoder() if model.config.is_encoder_decoder else model.base_model
    hidden: Tensor = call(body, inputs, model.device).last_hidden_state
    return hidden


@dataclass(frozen=True, eq=False)
class TokenOutputs:
    """A language model's outputs for a batch.

    Args:
        hidden: ``(batch, length, dim)`` the last hidden states.
        score: Gives the scores of positions, which are places in the batch and in a sequence.
        rows: How many tokens are scored.
    """

    hidden: Tensor
    score: Callable[[Tensor, Tensor], Tensor]
    rows: int

    def scores(self, where: Tensor) -> Iterator[Tensor]:
        """Scores ``(n, rows)`` float32 of the positions where ``(batch, length)`` is true."""
        sequences, places = torch.nonzero(where.to(self.hidden.device), as_tuple=True)
        many = max(1, PIECE // self.rows)
        for part in zip(sequences.split(many), places.split(many), strict=True):
            yield self.score(*part).float()


class TokenModel:
    """A language model, causal or masked, taken apart into its body and its head.

    Some models do more than that: they transform hidden states before the head, or scale or cap
    scores behind it. They are noticed, and run as a whole.

    Args:
        model: The transformers model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.head = model.get_output_embeddings()
        require(
            self.head is not None,
            f"expected a language model with an output layer, got {type(model).__name__}",
        )
        self.comes_apart = self._comes_apart()

    @torch.inference_mode()
    def __call__(self, inputs: Mapping[str, Tensor]) -> TokenOutputs:
        """The outputs for a batch."""
        if self.comes_apart:
            hidden = last_hidden(self.model, inputs)
            rows = self.head.out_features
            return TokenOutputs(hidden, lambda *at: self.head(hidden[at]), rows)
        whole = call(self.model, inputs, self.model.device, output_hidden_states=True)
        logits = whole.logits
        return TokenOutputs(whole.hidden_states[-1], lambda *at: logits[at], logits.shape[-1])

    @torch.inference_mode()
    def _comes_apart(self) -> bool:
        ids = {"input_ids": torch.arange(4)[None]}
        whole = call(self.model, ids, self.model.device).logits
        parts = self.head(last_hidden(self.model, ids))
        # The same products of the same shapes: a difference, however small, has a reason.
        return parts.shape == whole.shape and torch.equal(parts.float(), whole.float())
