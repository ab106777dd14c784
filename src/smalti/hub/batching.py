"""Texts as padded batches of token ids: made once, used for as many models as one likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from smalti.errors import DataError, require
from smalti.hub.library import Model
from smalti.progress import progress_bar

# Tokenizers without a limit name a huge number.
ENDLESS = 10**9


@dataclass(frozen=True, eq=False)
class Batches:
    """Tokenized texts, the longest first, so that little padding is needed.

    Args:
        inputs: What the model takes, a mapping for each batch.
        order: ``(texts,)`` the place of each row, batch after batch, among the texts.
    """

    inputs: list[dict[str, Tensor]]
    order: Tensor

    def __len__(self) -> int:
        return len(self.order)

    def restored(self, rows: Sequence[Tensor]) -> Tensor:
        """The rows of all batches in the order of the texts."""
        joined = torch.cat(list(rows))
        result = torch.empty_like(joined)
        result[self.order.to(joined.device)] = joined
        return result

    def watched(self, what: str, progress: bool | None = None) -> Iterator[dict[str, Tensor]]:
        """Batch after batch, with a bar on stderr; None draws it on a terminal."""
        with progress_bar(what, "texts", total=len(self), shown=progress) as advance:
            for inputs in self.inputs:
                yield inputs
                advance(len(inputs["input_ids"]))


@dataclass(frozen=True, eq=False)
class Encoded:
    """Tokenized texts, of which batches are made in any order.

    Args:
        columns: What the model takes, a list of numbers for each text.
        padding: What each column is filled up with.
        lengths: ``(texts,)`` how many tokens each text has.
    """

    columns: dict[str, list[list[int]]]
    padding: dict[str, int]
    lengths: Tensor

    def batch(self, places: Sequence[int]) -> dict[str, Tensor]:
        """Some of the texts, padded to the longest of them."""
        return {
            name: _padded([rows[place] for place in places], self.padding[name], name)
            for name, rows in self.columns.items()
        }


def batches(
    tokenizer: Any,
    first: Sequence[str],
    second: Sequence[str] | None = None,
    *,
    batch_size: int = 64,
    limit: int | None = None,
) -> Batches:
    """Tokenize texts, or pairs of texts.

    Args:
        tokenizer: The model's, of transformers.
        first: The texts, or the first of each pair.
        second: The second of each pair.
        batch_size: Texts of a batch.
        limit: Longer texts are cut to so many tokens; see :func:`limit_of`.
    """
    require(batch_size > 0, f"batch_size must be > 0, got {batch_size}")
    texts = encoded(tokenizer, first, second, limit=limit)
    order = torch.argsort(-texts.lengths, stable=True)
    return Batches([texts.batch(part.tolist()) for part in order.split(batch_size)], order)


def encoded(
    tokenizer: Any,
    first: Sequence[str],
    second: Sequence[str] | None = None,
    *,
    limit: int | None = None,
) -> Encoded:
    """Tokenize texts, or pairs of texts, of which batches are made later."""
    require(len(first) > 0, "expected at least one text, got none", DataError)
    cut = {"truncation": limit is not None, "max_length": limit}
    pair = None if second is None else list(second)
    made = tokenizer(list(first), pair, padding=False, verbose=False, **cut)
    padding = {
        "input_ids": _padding_id(tokenizer),
        "attention_mask": 0,
        "token_type_ids": getattr(tokenizer, "pad_token_type_id", 0),
    }
    columns = {name: made[name] for name in padding if name in made}
    return Encoded(columns, padding, torch.tensor([len(ids) for ids in columns["input_ids"]]))


def limit_of(model: Model, tokenizer: Any) -> int | None:
    """The longest sequence that a model takes, in tokens, if there is a longest."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    known = [positions] if isinstance(positions, int) and positions > 0 else []
    words = model.get_input_embeddings()
    for module in model.modules() if known else ():
        tabled = isinstance(module, nn.Embedding) and module is not words
        # RoBERTa and its kin count positions from behind the padding's id on.
        if tabled and module.num_embeddings == positions and module.padding_idx is not None:
            known = [positions - module.padding_idx - 1]
    named = getattr(tokenizer, "model_max_length", None)
    known += [named] if isinstance(named, int) and 0 < named < ENDLESS else []
    return min(known, default=None)


def _padding_id(tokenizer: Any) -> int:
    # Where there is none, any will do: the mask hides it.
    return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0


def _padded(rows: Sequence[Sequence[int]], value: int, name: str) -> Tensor:
    """Rows filled up from behind, so that the first token stays the first."""
    width = max(1, *map(len, rows), 1)
    padded = torch.full((len(rows), width), value)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = torch.tensor(row, dtype=torch.int64)
        if not row and name == "attention_mask":
            # An empty text is one token of padding: nothing can be said about no token.
            padded[place, 0] = 1
    return padded
