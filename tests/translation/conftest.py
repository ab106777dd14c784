"""A made-up pair of languages that small models learn in seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from smalti.translation import Autoregressive, Translator
from smalti.translation.ids import BEGIN, EOS, PAD

VOCABULARY = 40
FIRST = BEGIN + 1
# Words of the source; those of the target follow them.
WORDS = 16


def translated(words: list[int]) -> list[int]:
    """The rule: words in reverse order, each another word, every fourth word as two tokens."""
    found: list[int] = []
    for word in reversed(words):
        found.append(word + WORDS)
        if word % 4 == 0:
            found.append(FIRST + 2 * WORDS)
    return found


def padded(sentences: list[list[int]]) -> Tensor:
    longest = max(len(one) for one in sentences) + 1
    rows = [[*one, EOS] + [PAD] * (longest - len(one) - 1) for one in sentences]
    return torch.tensor(rows)


def sentences(count: int, seed: int, longest: int = 9) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
    return [
        (torch.randint(WORDS, (length,), generator=generator) + FIRST).tolist()
        for length in lengths
    ]


def pairs(count: int, seed: int, longest: int = 9) -> tuple[Tensor, Tensor]:
    source = sentences(count, seed, longest)
    return padded(source), padded([translated(one) for one in source])


def trained(model: Translator, steps: int, rate: float = 3e-3) -> Translator:
    """Train on sentences of which each is seen a few times."""
    torch.manual_seed(1)
    batches = [pairs(64, seed) for seed in range(60)]
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, step / 20, 2 * (1 - step / steps))
        loss, _ = model.loss(*batches[step % len(batches)], progress=step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def share_right(translate: Callable[[Tensor], list[list[int]]]) -> float:
    """Which share of sentences that were not trained on is translated without a fault."""
    source = sentences(200, seed=10_000)
    found = translate(padded(source))
    right = [one == translated(words) for one, words in zip(found, source, strict=True)]
    return sum(right) / len(right)


@pytest.fixture(scope="session")
def teacher() -> Autoregressive:
    """An autoregressive model that has learned the rule, not perfectly."""
    torch.manual_seed(1)
    model = Autoregressive(
        VOCABULARY, dim=32, depth=1, decoder_depth=2, heads=2, ratio=2, dropout=0.0
    )
    trained(model, 250)
    return model
