"""Texts in, texts out: batches of like lengths, the order kept, what is too long in parts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import torch

from smalti.data import Subwords, cut_by_tokens, padded
from smalti.errors import require
from smalti.progress import Advance, progress_bar
from smalti.recipes.translation.saved_run import TranslationRun
from smalti.recipes.translation.splitting import pieces
from smalti.translation import Decoding, Translator

# Tokens of sources that are translated together.
BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Translations:
    """What became of some texts.

    Args:
        texts: A translation each, in one line; nothing for a blank text.
        split: The numbers of the texts, from 1 on, that were too long and translated in parts.
    """

    texts: tuple[str, ...]
    split: tuple[int, ...]


class Parts:
    """Texts cut into parts that a model can read.

    Args:
        run: The model.
        texts: In any number and of any length.
    """

    def __init__(self, run: TranslationRun, texts: Sequence[str]) -> None:
        self.texts: list[str] = []
        self._owners: list[int] = []
        self._count = len(texts)

        def tokens_of(some: Sequence[str]) -> list[int]:
            # Without the mark of the end.
            return [len(ids) - 1 for ids in run.subwords.encode(some)]

        lines = [" ".join(text.split()) for text in texts]
        most = max(1, run.longest - 1)
        for number, (line, size) in enumerate(zip(lines, tokens_of(lines), strict=True)):
            own = [line] if 0 < size <= most else pieces(line, most, tokens_of) if line else []
            self.texts += own
            self._owners += [number] * len(own)

    def joined(self, translated: Sequence[str]) -> Translations:
        """The translations of the texts from those of their parts."""
        made: list[list[str]] = [[] for _ in range(self._count)]
        counts = [0] * self._count
        for owner, text in zip(self._owners, translated, strict=True):
            counts[owner] += 1
            if text:
                made[owner].append(text)
        split = (number for number, count in enumerate(counts, start=1) if count > 1)
        return Translations(tuple(" ".join(some) for some in made), tuple(split))


def translate_texts(
    run: TranslationRun,
    texts: Sequence[str],
    options: Decoding | None = None,
    *,
    rescore_with: TranslationRun | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Translations:
    """Translate texts, whatever they hold.

    Args:
        run: The model.
        texts: In any number and of any length.
        options: How to look for translations; None as the model was saved to.
        rescore_with: A model that chooses among several translations.
        batch_tokens: Tokens of a batch, padding included.
    """
    require_same_vocabulary(run, rescore_with)
    parts = Parts(run, texts)
    teacher = None if rescore_with is None else rescore_with.translator
    batches = Batches(run.translator, run.subwords, parts.texts, batch_tokens)
    with progress_bar("translating", "sentences", total=len(parts.texts)) as advance:
        found = batches.all_translated(options or run.decoding, teacher, advance=advance)
    return parts.joined(found)


class Batches:
    """Texts of like lengths together, to be translated in one go.

    Args:
        translator: The model.
        subwords: Its vocabulary.
        texts: None of them longer than the model can read.
        batch_tokens: Tokens of a batch, padding included.
    """

    def __init__(
        self,
        translator: Translator,
        subwords: Subwords,
        texts: Sequence[str],
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        require(batch_tokens >= 1, f"expected batches of at least one token, got {batch_tokens}")
        self.translator, self.subwords = translator, subwords
        self.tokens = subwords.encode(texts)
        order = sorted(range(len(self.tokens)), key=lambda row: len(self.tokens[row]))
        runs = cut_by_tokens([len(self.tokens[row]) for row in order], batch_tokens)
        self.rows = [[order[place] for place in run] for run in runs]

    def translated(
        self,
        options: Decoding,
        rescore_with: Translator | None = None,
        skip: Container[int] = (),
    ) -> Iterator[tuple[int, list[str]]]:
        """The number of each batch and the translations of its rows.

        Args:
            options: How to look for translations.
            rescore_with: A model that chooses among several translations.
            skip: The numbers of batches that are left out.
        """
        device = next(self.translator.parameters()).device
        for number, rows in enumerate(self.rows):
            if number in skip:
                continue
            source = padded([self.tokens[row] for row in rows]).to(device)
            # Precision matters where the likeliest of many words is chosen.
            with torch.autocast(device.type, enabled=False):
                found = self.translator.translate(source, options, rescore_with=rescore_with)
            yield number, self.subwords.decode(found)

    def all_translated(
        self,
        options: Decoding,
        rescore_with: Translator | None = None,
        advance: Advance | None = None,
    ) -> list[str]:
        """The translations of all texts, in their order."""
        found = [""] * len(self.tokens)
        for number, texts in self.translated(options, rescore_with):
            for row, text in zip(self.rows[number], texts, strict=True):
                found[row] = text
            if advance is not None:
                advance(len(texts))
        return found


def require_same_vocabulary(run: TranslationRun, other: TranslationRun | None) -> None:
    """Refuse two models that give the same number to different parts of words."""
    require(
        other is None or other.subwords.fingerprint() == run.subwords.fingerprint(),
        "expected two models with the same vocabulary; train one with start_from the other",
    )
