"""A made-up pair of languages that small models learn in seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from smalti.translation import Autoregressive, Translator
from smalti.translation.ids import BEGIN, EOS, PAD


class Language:
    """Sentences of random words, and the rule by which they are translated."""

    vocabulary = 40
    first, words = BEGIN + 1, 16

    def translated(self, words: list[int]) -> list[int]:
        """Each word becomes another, every fourth one two tokens; the last word comes first."""
        found: list[int] = []
        for word in [words[-1], *words[:-1]]:
            found.append(word + self.words)
            if word % 4 == 0:
                found.append(self.first + 2 * self.words)
        return found

    def sentences(self, count: int, seed: int) -> list[list[int]]:
        """Random sentences of one to eight words."""
        generator = torch.Generator().manual_seed(seed)
        lengths = torch.randint(1, 9, (count,), generator=generator).tolist()
        return [
            (torch.randint(self.words, (length,), generator=generator) + self.first).tolist()
            for length in lengths
        ]

    def padded(self, sentences: list[list[int]]) -> Tensor:
        """Sentences as one tensor of ids."""
        longest = max(len(one) for one in sentences) + 1
        rows = [[*one, EOS] + [PAD] * (longest - len(one) - 1) for one in sentences]
        return torch.tensor(rows)

    def pairs(self, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """Sentences and their translations."""
        source = self.sentences(count, seed)
        return self.padded(source), self.padded([self.translated(one) for one in source])

    def teach(self, model: Translator, steps: int, rate: float = 4e-3) -> None:
        """Train on sentences of which each is seen a few times."""
        torch.manual_seed(1)
        batches = [self.pairs(48, seed) for seed in range(50)]
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, step / 20, 2 * (1 - step / steps))
            loss, _ = model.loss(*batches[step % len(batches)], progress=step / steps)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()

    def share_right(self, translate: Callable[[Tensor], list[list[int]]]) -> float:
        """Which share of sentences that were not trained on is translated without a fault."""
        source = self.sentences(200, seed=10_000)
        found = translate(self.padded(source))
        right = [one == self.translated(words) for one, words in zip(found, source, strict=True)]
        return sum(right) / len(right)


@pytest.fixture(scope="session")
def language() -> Language:
    return Language()


@pytest.fixture(scope="session")
def teacher(language: Language) -> Autoregressive:
    """An autoregressive model that has learned the rule, not perfectly."""
    torch.manual_seed(1)
    model = Autoregressive(
        language.vocabulary, dim=32, depth=1, decoder_depth=2, heads=2, ratio=2, dropout=0.0
    )
    language.teach(model, 200)
    return model


@pytest.fixture(scope="session")
def source(language: Language) -> Tensor:
    """Sentences to translate, of different lengths."""
    return language.padded(language.sentences(64, seed=20_000))
