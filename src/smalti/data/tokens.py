"""Texts become token ids, a batch at a time, as the model sees them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from smalti.errors import require

# A batch ends with so many texts or characters: enough for all cores, little memory.
BATCH_TEXTS = 1024
BATCH_CHARACTERS = 1 << 20


class TokenBatch(NamedTuple):
    """The tokens of some texts, one after the other.

    Args:
        ids: ``(tokens,)`` int64.
        lengths: ``(texts,)`` int64, how many of them each text has.
    """

    ids: np.ndarray
    lengths: np.ndarray


def encode(texts: Iterable[str], tokenizer: Any, *, special: bool = True) -> Iterator[TokenBatch]:
    """The tokens of texts, without padding and without cutting off long ones.

    Args:
        texts: Read as a stream.
        tokenizer: Of transformers, or of tokenizers.
        special: Whether tokens are added that the model gets around a text.
    """
    encoder = _encoder(tokenizer, special)
    for batch in _batches(texts):
        ids = encoder(batch)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        flat = np.fromiter(chain.from_iterable(ids), np.int64, int(lengths.sum()))
        yield TokenBatch(flat, lengths)


def fingerprint(tokenizer: Any) -> str:
    """The SHA-256 of the vocabulary: which token has which id."""
    _checked(tokenizer)
    vocabulary = sorted(tokenizer.get_vocab().items())
    return hashlib.sha256(json.dumps(vocabulary).encode()).hexdigest()


def _checked(tokenizer: Any) -> None:
    require(
        hasattr(tokenizer, "get_vocab") and (callable(tokenizer) or hasattr(tokenizer, "to_str")),
        f"expected a tokenizer of transformers or tokenizers, got {type(tokenizer).__name__}",
    )


def _encoder(tokenizer: Any, special: bool) -> Callable[[list[str]], list[list[int]]]:
    _checked(tokenizer)
    # The compiled tokenizer inside one of transformers is faster than calling that one.
    compiled = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(compiled, "encode_batch_fast"):
        settings = {"add_special_tokens": special, "padding": False, "truncation": False}
        return lambda texts: list(tokenizer(texts, verbose=False, **settings)["input_ids"])
    if compiled.truncation or compiled.padding:
        # Files may ask for either; the user's object stays as it is.
        compiled = copy.deepcopy(compiled)
        compiled.no_truncation()
        compiled.no_padding()
    return lambda texts: [
        encoding.ids for encoding in compiled.encode_batch_fast(texts, add_special_tokens=special)
    ]


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == BATCH_TEXTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
