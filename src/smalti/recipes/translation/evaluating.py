"""What a translation model is worth: scores, bounds of its latents, codes in use, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from smalti.codes import Usage
from smalti.data import AlignedTexts, TokenPairs
from smalti.errors import DataError, require
from smalti.progress import progress_bar
from smalti.recipes.translation.latency import Latency, latencies
from smalti.recipes.translation.saved_run import TranslationRun
from smalti.recipes.translation.scoring import Score, score
from smalti.recipes.translation.tables import TableBytes, table_bytes
from smalti.recipes.translation.translating import (
    BATCH_TOKENS,
    require_same_vocabulary,
    translate_texts,
)
from smalti.translation import Autoregressive, Decoding, Latent

# Bounds of a latent model: no translations, since they look at the reference or at another.
TEACHER_FORCED = "teacher_forced_latents"
SHUFFLED = "shuffled_latents"
# What the names of another model's ways of translating begin with.
AGAINST = "against_"


@dataclass(frozen=True)
class TranslationEvaluation:
    """The figures of a model on pairs of sentences.

    Args:
        sentences: How many.
        scores: By the way of translating.
        bounds: Of a latent model: what it writes from the latents of the references, and from
            those of other sentences. Neither is a translation of the source alone.
        codes: Of a latent model: the codes of the references in use.
        latency: By the way of translating.
        tables: Bytes of the tables of word vectors, by use.
    """

    sentences: int
    scores: Mapping[str, Score]
    bounds: Mapping[str, Score]
    codes: Mapping[str, Any] | None
    latency: Mapping[str, Latency]
    tables: Mapping[str, TableBytes]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "sentences": self.sentences,
            "scores": {name: one.as_dict() for name, one in self.scores.items()},
            "bounds": {name: one.as_dict() for name, one in self.bounds.items()},
            "codes": self.codes,
            "latency": {name: one.as_dict() for name, one in self.latency.items()},
            "table_bytes": sum(table.saved for table in self.tables.values()),
            "full_table_bytes": sum(table.full for table in self.tables.values()),
            "tables": {use: table._asdict() for use, table in self.tables.items()},
        }


def evaluate_translation_run(
    run: TranslationRun,
    pairs: AlignedTexts,
    options: Decoding | None = None,
    *,
    rescore_with: TranslationRun | None = None,
    against: TranslationRun | None = None,
    timed: int = 100,
) -> TranslationEvaluation:
    """Measure a model on sentences and their translations.

    Args:
        run: The model.
        pairs: To translate, and to compare with; better none that it has seen.
        options: How to look for translations; None as the model was saved to.
        rescore_with: A model that chooses among several translations, as a row of its own.
        against: Another model, which is scored too and timed by turns with this one.
        timed: On how many of the sentences translating is timed; 0 leaves it out.
    """
    require(len(pairs) > 0, "expected at least one pair of sentences, got none", DataError)
    require_same_vocabulary(run, rescore_with)
    options = options or run.decoding
    plain = replace(options, samples=1, lengths=1, clean_repeats=False)
    ways = {name: (run, way) for name, way in _ways(run, plain).items()}
    if against is not None:
        theirs = _ways(against, against.decoding).items()
        ways |= {f"{AGAINST}{name}": (against, way) for name, way in theirs}
    scores = {
        name: score(translate_texts(owner, pairs.source, way).texts, pairs.target)
        for name, (owner, way) in ways.items()
    }
    if options != plain:
        found = translate_texts(run, pairs.source, options, rescore_with=rescore_with)
        scores[_named(options, rescore_with)] = score(found.texts, pairs.target)
    timing = latencies(ways, pairs.source, timed) if timed else {}
    bounds, codes = _latents(run, pairs)
    tables = table_bytes(run.translator)
    return TranslationEvaluation(len(pairs), scores, bounds, codes, timing, tables)


def _ways(run: TranslationRun, options: Decoding) -> dict[str, Decoding]:
    """How a model of this kind can translate, by name."""
    if not isinstance(run.translator, Autoregressive):
        return {"predicted_latents" if isinstance(run.translator, Latent) else "parallel": options}
    ways = {"greedy": replace(options, beam=1)}
    if options.beam > 1:
        ways[f"beam_{options.beam}"] = options
    return ways


def _named(options: Decoding, rescore_with: TranslationRun | None) -> str:
    words = []
    if options.samples > 1:
        words.append(f"{options.samples}_samples")
    if options.lengths > 1:
        words.append(f"{options.lengths}_lengths")
    if rescore_with is not None:
        words.append("rescored")
    if options.clean_repeats:
        words.append("without_repeats")
    return "_".join(words)


@torch.no_grad()
def _latents(
    run: TranslationRun, pairs: AlignedTexts
) -> tuple[dict[str, Score], dict[str, Any] | None]:
    """What latents of references and of other sentences are worth, and which codes they have."""
    model = run.translator
    if not isinstance(model, Latent):
        return {}, None
    tokens = TokenPairs(run.subwords.encode(pairs.source), run.subwords.encode(pairs.target))
    usage = Usage(model.quantizer.code_sizes) if model.quantizer.code_sizes else None
    found: dict[str, list[str]] = {name: [""] * len(pairs) for name in (TEACHER_FORCED, SHUFFLED)}
    batches = tokens.in_order(BATCH_TOKENS)
    with progress_bar("latents of references", "sentences", total=len(pairs)) as advance:
        for rows in batches:
            batch = tokens.batch(rows)
            # In a batch sentences are about as long, so that only what they say is another.
            others = {TEACHER_FORCED: batch.target, SHUFFLED: batch.target.roll(1, dims=0)}
            for name, other in others.items():
                made = model.reconstruct(batch.source, batch.target, latents_of=other)
                for row, text in zip(rows, run.subwords.decode(made), strict=True):
                    found[name][row] = text
            if usage is not None:
                latents = model.latents_of(batch.source, batch.target)
                usage.update(latents.codes[latents.mask])
            advance(len(rows))
    scores = {name: score(texts, pairs.target) for name, texts in found.items()}
    if usage is None:
        return scores, None
    books = [
        {
            "size": size,
            "in_use": usage[book].in_use,
            "entropy_bits": usage[book].entropy_bits,
        }
        for book, size in enumerate(usage.code_sizes)
    ]
    return scores, {"used_share": usage.used_share, "codebooks": books}
