"""``smalti evaluate`` for translation models: which runs are such, and their figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smalti.cli.options import use_threads
from smalti.cli.output import AsJson, show
from smalti.cli.translating import decoding_of
from smalti.errors import ConfigError

if TYPE_CHECKING:
    from smalti.recipes.translation import TranslationRun


def is_translation_model(name: str) -> bool:
    """Whether a name is the directory of a translation model; the light look comes first."""
    from smalti.artifacts import MANIFEST

    for part in ("", "model"):
        try:
            manifest = json.loads((Path(name) / part / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        from smalti.recipes.translation.saved_run import KIND

        return isinstance(manifest, dict) and manifest.get("kind") == KIND
    return False


def evaluate_translations(
    name: str,
    data: str | None,
    reference: str | None,
    others: Sequence[Any],
    *,
    beam: int | None,
    length_penalty: float | None,
    samples: int,
    lengths: int,
    clean_repeats: bool,
    rescore_with: Path | None,
    against: str | None,
    timed: int,
    threads: int | None,
    as_json: AsJson,
) -> None:
    """Measure a translation model and print its figures.

    Args:
        name: Its directory.
        data: The sentences, or the common beginning of the names of both files.
        reference: Their translations.
        others: What was given for other models.
        beam: Hypotheses; None as the model was saved to.
        length_penalty: The same.
        samples: Translations to choose from.
        lengths: Lengths to choose from.
        clean_repeats: Whether repeated tokens are left out, in a row of its own.
        rescore_with: A model that chooses.
        against: Another model, scored and timed beside it.
        timed: Sentences to time.
        threads: To compute with.
        as_json: How to print.
    """
    if any(other is not None for other in others):
        raise ConfigError(f"{name} is a translation model; options for other models do not fit it")
    if data is None:
        raise ConfigError(
            "say on which sentences: --data FILE --reference FILE, or the common beginning of both "
            "names, such as --data multi30k:test_2016_flickr"
        )
    import torch

    from smalti.data import read_aligned
    from smalti.recipes import translation

    use_threads(threads)
    run = translation.load_translation_run(name)
    teacher = None if rescore_with is None else translation.load_translation_run(rescore_with)
    if teacher is not None and samples == lengths == 1:
        raise ConfigError("--rescore-with chooses among several: give --samples or --lengths, too")
    pairs = read_aligned(*translation.find_pair(data, reference, run.config.data))
    options = decoding_of(
        run,
        beam,
        length_penalty,
        samples,
        lengths,
        clean_repeats=clean_repeats,
        rescore_with=teacher,
    )
    found = translation.evaluate_translation_run(
        run,
        pairs,
        options,
        rescore_with=teacher,
        against=None if against is None else translation.load_translation_run(against),
        timed=timed,
    )
    content: dict[str, Any] = {
        "run": name,
        "source": pairs.names[0],
        "reference": pairs.names[1],
        **found.as_dict(),
        "threads": torch.get_num_threads(),
    }
    show(content if as_json else dict(_lines(content, run)), as_json)


def _lines(content: dict[str, Any], run: TranslationRun) -> Iterator[tuple[str, str]]:
    """The figures for people, a line each."""
    yield "data", f"{content['sentences']:,} sentences, {content['source']}"
    rows = {**content["scores"], **content["bounds"]}
    for name, one in rows.items():
        bound = " (a bound, no translation)" if name in content["bounds"] else ""
        yield (
            name.replace("_", " "),
            f"BLEU {one['bleu']:.2f}, chrF {one['chrf']:.2f}, "
            f"length {one['length_ratio']:.3f}{bound}",
        )
    if content["codes"] is not None:
        books = content["codes"]["codebooks"]
        used = ", ".join(f"{book['in_use']} of {book['size']}" for book in books)
        yield "codes in use", used
    for name, one in content["latency"].items():
        yield (
            f"{name.replace('_', ' ')}, time",
            f"{one['milliseconds']:.1f} ms a sentence alone (median), "
            f"{one['sentences_per_second']:.1f} sentences/s in batches of 32",
        )
        for words, milliseconds in one["long_milliseconds"].items():
            yield f"{name.replace('_', ' ')}, {words} words and more", f"{milliseconds:.1f} ms"
    yield from _ratios(content["latency"])
    for use, table in content["tables"].items():
        if table["saved"] < table["full"]:
            ratio = table["full"] / table["saved"]
            yield (
                f"word table, {use}",
                f"{table['saved']:,} bytes, {ratio:.1f} times smaller than float32",
            )
    if run.decoding.beam > 1:
        yield "length penalty", f"{run.decoding.length_penalty:g}"
    first = next(iter(rows.values()))
    yield "signature, BLEU", first["bleu_signature"]
    yield "signature, chrF", first["chrf_signature"]


def _ratios(latency: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """How many times faster than the other model's ways."""
    from smalti.recipes.translation.evaluating import AGAINST

    mine = next((one for name, one in latency.items() if not name.startswith(AGAINST)), None)
    for name, other in latency.items():
        if mine is None or not name.startswith(AGAINST):
            continue
        longer = [
            f"{other['long_milliseconds'][words] / milliseconds:.2f} ({words} words and more)"
            for words, milliseconds in mine["long_milliseconds"].items()
        ]
        alone = f"{other['milliseconds'] / mine['milliseconds']:.2f} (a sentence)"
        rate = mine["sentences_per_second"] / other["sentences_per_second"]
        yield (
            f"times faster than {name.removeprefix(AGAINST).replace('_', ' ')}",
            ", ".join([alone, *longer, f"{rate:.2f} (batches of 32)"]),
        )
