"""How well a causal language model predicts a running text.

The text is read through windows that overlap. A window predicts only tokens that none before it
did, so that each token is predicted once, with at least ``context - stride`` tokens before it
(fewer at the beginning of the text only).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from smalti.data.lines import read_lines
from smalti.data.records import layout_of
from smalti.data.text import open_texts
from smalti.errors import DataError, require
from smalti.hub.batching import limit_of
from smalti.hub.library import Model
from smalti.hub.outputs import TokenModel
from smalti.progress import progress_bar

# Longer than nearly all tokens, in characters.
LONG_TOKEN = 8


@dataclass(frozen=True)
class RunningText:
    """The tokens of a text without breaks.

    Args:
        ids: ``(tokens,)`` int64.
        lead: What the model expects at the beginning of any text, such as ``<s>``.
        source: Where the text is from.
    """

    ids: Tensor
    lead: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class Perplexity:
    """The result.

    Args:
        surprise: Negative log-likelihood of all predicted tokens, in nats.
        tokens: How many tokens were predicted.
    """

    surprise: float
    tokens: int

    @property
    def value(self) -> float:
        """exp(surprise / tokens)."""
        return math.exp(self.surprise / self.tokens)


def read_running(
    path: str | Path,
    tokenizer: Any,
    tokens: int | None = None,
    columns: Sequence[str | int] = (),
) -> RunningText:
    """The first tokens of a file, its lines kept as they stand, empty ones included.

    Args:
        path: A text file, or one with columns, whose texts are then joined by line ends.
        tokenizer: The model's.
        tokens: How many; None reads all.
        columns: Which columns of a file that has some.
    """
    path = Path(path)
    plain = layout_of(path) == "lines" and not columns
    lines = (line for _, line in read_lines(path)) if plain else open_texts(path, columns).texts()
    wanted = math.inf if tokens is None else tokens * LONG_TOKEN
    text = ""
    ids: list[int] = []
    while more := "".join(_some(lines, wanted)):
        text += more
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        if tokens is not None and len(ids) >= tokens:
            break
    require(len(ids) > 1, f"expected a text of several tokens in {path}, got {len(ids)}", DataError)
    return RunningText(torch.tensor(ids[:tokens]), lead_of(tokenizer), str(path))


def lead_of(tokenizer: Any) -> tuple[int, ...]:
    """The tokens that a tokenizer puts before every text."""
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    return tuple(whole[: whole.index(plain[0])])


def perplexity(
    model: Model,
    text: RunningText,
    *,
    context: int = 1024,
    stride: int = 512,
    progress: bool | None = None,
) -> Perplexity:
    """The perplexity of a text.

    Without a token that begins every text, the first token can't be predicted.

    Args:
        model: A causal language model of transformers.
        text: What :func:`read_running` gives.
        context: Tokens of a window.
        stride: How far a window lies behind the one before it.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    limit = limit_of(model, None)
    require(
        limit is None or context <= limit,
        f"{type(model).__name__} takes {limit} tokens at most, got context={context}",
    )
    room = context - len(text.lead)
    require(
        0 < stride <= context and room > 1,
        f"expected 0 < stride <= context and a context of some tokens, got stride={stride} "
        f"and context={context}",
    )
    scorer = TokenModel(model)
    lead = torch.tensor(text.lead, dtype=torch.int64)
    surprise = torch.zeros((), dtype=torch.float64)
    predicted = 0
    with progress_bar("predicting", "tokens", len(text.ids), progress) as advance:
        for begin, first, end in windows(len(text.ids), room, stride):
            ids = torch.cat([lead, text.ids[begin:end]])
            # The output at a position predicts the token after it.
            start = max(first - begin + len(lead), 1)
            targets = ids[start:]
            where = torch.zeros(len(ids), dtype=torch.bool)
            where[start - 1 : -1] = True
            surprise += surprise_of(scorer, ids, where, targets)
            predicted += len(targets)
            advance(end - first)
    return Perplexity(float(surprise), predicted)


@torch.inference_mode()
def surprise_of(scorer: TokenModel, ids: Tensor, where: Tensor, targets: Tensor) -> Tensor:
    """Negative log-likelihood of ``targets`` after the positions ``where``, summed in float64."""
    outputs = scorer({"input_ids": ids[None], "attention_mask": torch.ones_like(ids)[None]})
    total = torch.zeros((), dtype=torch.float64)
    done = 0
    for scores in outputs.scores(where[None]):
        wanted = targets[done : done + len(scores)].to(scores.device)
        losses = functional.cross_entropy(scores, wanted, reduction="none")
        total += losses.double().sum().cpu()
        done += len(scores)
    return total


def windows(count: int, room: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Where each window begins, where its new tokens begin, and where it ends.

    Example:
        >>> list(windows(10, room=6, stride=3))
        [(0, 0, 6), (3, 6, 9), (6, 9, 10)]
    """
    # At least one token is seen before the first new one.
    stride = min(stride, room - 1)
    begin, end = 0, min(room, count)
    yield 0, 0, end
    while end < count:
        begin, first = begin + stride, end
        end = min(begin + room, count)
        yield begin, first, end


def _some(lines: Iterator[str], characters: float) -> Iterator[str]:
    """Lines with their ends, until there are so many characters."""
    seen = 0
    for line in lines:
        yield line + "\n"
        seen += len(line) + 1
        if seen >= characters:
            return
