"""``smalti evaluate``: what a model is worth, by itself and beside its original."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smalti.cli.evaluating_images import evaluate_images, is_image_model
from smalti.cli.evaluating_translations import evaluate_translations, is_translation_model
from smalti.cli.options import Seed, Side, Threads, use_threads
from smalti.cli.output import AsJson, show
from smalti.cli.translating import (
    Beam,
    CleanRepeats,
    LengthPenalty,
    Lengths,
    RescoreWith,
    Samples,
)
from smalti.errors import ConfigError

if TYPE_CHECKING:
    from smalti.analysis import Finding
    from smalti.data import TextFile
    from smalti.hub.evaluation import Evaluation
    from smalti.hub.opening import Opened

# How figures are printed, by their names: so many digits behind the point.
DIGITS = {"spearman": 2, "pearson": 2, "accuracy": 2, "f1": 2, "matthews": 2, "perplexity": 3}


def evaluate(
    model: Annotated[str, typer.Argument(help="A directory, a .gguf file, or a model's name.")],
    against: Annotated[
        str | None, typer.Option(help="Its original, measured on the same data.")
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Texts: fidelity to the original; coverage; error by frequency."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Columns of text, by name or number.")
    ] = None,
    texts: Annotated[
        int, typer.Option(min=1, help="Fidelity is measured on so many texts, chosen by chance.")
    ] = 1000,
    labelled: Annotated[
        list[Path] | None,
        typer.Option(help="Labelled texts or pairs; scores and classes are told apart."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The column of the label, by name or number.")
    ] = None,
    perplexity_text: Annotated[
        Path | None, typer.Option(help="A running text for a causal model to predict.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=2, help="Only so many tokens of it.")] = 20_000,
    context: Annotated[int, typer.Option(min=2, help="Tokens that are seen at once.")] = 1024,
    stride: Annotated[int, typer.Option(min=1, help="Tokens between two looks.")] = 512,
    speed: Annotated[bool, typer.Option("--speed", help="Time a forward pass of both.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts of a batch.")] = 64,
    data: Annotated[
        str | None,
        typer.Option(
            help="For an image model: a known set, a file or a folder of images. For a translation "
            "model: a file of sentences, or what the names of both files begin with."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="For a translation model: the file of translations.")
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    samples: Samples = 1,
    lengths: Lengths = 1,
    rescore_with: RescoreWith = None,
    clean_repeats: CleanRepeats = False,
    timed: Annotated[
        int, typer.Option(min=0, help="Translation models: time so many sentences.")
    ] = 100,
    split: Annotated[
        str | None,
        typer.Option(help="Of a set in parts: train, valid or test. The test part, or unseen."),
    ] = None,
    size: Side = None,
    threads: Threads = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure a model: bytes, fidelity, scores, perplexity, speed; whatever the data allows.

    Of an image model that smalti train made: distortion and rate, and what its codes look like.
    Of a translation model: BLEU and chrF with their signatures, bounds of its latents, time.

    Example: smalti evaluate small-model --against all-MiniLM-L6-v2 --labelled dev.tsv

    Example: smalti evaluate runs/digits --data digits

    Example: smalti evaluate runs/latent --data test.en --reference test.de --against runs/en-de
    """
    texts_given = [text, labelled, perplexity_text, speed or None]
    if is_translation_model(model):
        evaluate_translations(
            model,
            data,
            reference,
            [*texts_given, split, size],
            beam=beam,
            length_penalty=length_penalty,
            samples=samples,
            lengths=lengths,
            clean_repeats=clean_repeats,
            rescore_with=rescore_with,
            against=against,
            timed=timed,
            threads=threads,
            as_json=as_json,
        )
        return
    if reference is not None:
        raise ConfigError(f"--reference is for translation models, and {model} is none")
    if is_image_model(model):
        evaluate_images(model, data, split, size, [against, *texts_given], threads, seed, as_json)
        return
    if data is not None:
        raise ConfigError(f"--data is for trained runs, and {model} is none; see smalti train")
    if against is None and speed:
        raise ConfigError("--speed is a ratio: say against which model, with --against")
    import torch

    from smalti.data import open_texts, read_labelled, read_texts
    from smalti.hub.library import transformers_library

    transformers_library()
    from smalti.hub import evaluating

    use_threads(threads)
    # Files are looked at before anything takes long.
    files = [open_texts(path, column or ()) for path in text or ()]
    sets = [read_labelled(path, texts=column or (), label=label) for path in labelled or ()]
    mine = evaluating.open_checked(model)
    other = None if against is None else evaluating.open_checked(against)
    findings = table_findings(mine, other, files) if files else {}
    chosen = some(read_texts(files), texts, seed) if files and other is not None else []
    found = evaluating.evaluate(
        mine,
        other,
        texts=chosen,
        labelled=sets,
        running=perplexity_text,
        tokens=tokens,
        context=context,
        stride=stride,
        speed=speed,
        batch_size=batch_size,
        seed=seed,
    )
    if as_json:
        content = found.as_dict()
        content |= {name: finding.as_dict() for name, finding in findings.items()}
        show({**content, "threads": torch.get_num_threads(), "seed": seed}, as_json)
        return
    for role, one in (("model", found.model), ("against", found.against)):
        if one is not None:
            typer.echo(f"{role}: {one.name}, {one.kind}, {one.architecture}")
    show(rows(found), as_json)
    for sentence in [*(str(finding.caption) for finding in findings.values()), *found.notes]:
        typer.echo(sentence)


def table_findings(
    mine: Opened, other: Opened | None, files: Sequence[TextFile]
) -> dict[str, Finding]:
    """What texts say about a compressed table; needs the original for all but coverage."""
    from smalti.analysis import coverage, frequency_bands
    from smalti.data import count_tokens, read_texts
    from smalti.embeddings import PartialTable, TurnedTable
    from smalti.hub.groups import input_embedding
    from smalti.hub.modules import TableEmbedding

    owner = input_embedding(mine.model)
    table = owner.table if isinstance(owner, TableEmbedding) else None
    findings: dict[str, Finding] = {}
    tiers = table.rest if isinstance(table, TurnedTable) else table
    if table is not None and isinstance(tiers, PartialTable):
        kept = tiers.kept_ids()
        findings["coverage"] = coverage(read_texts(files), mine.tokenizer, kept, table.rows)
    if table is not None and other is not None:
        counts = count_tokens(read_texts(files), mine.tokenizer, table.rows).counts
        original = input_embedding(other.model).weight
        findings["frequency_bands"] = frequency_bands(original, table, counts)
    if not findings and other is None:
        raise ConfigError(
            f"nothing can be measured on --text for {mine.name} alone: "
            "say what it is compared with, with --against"
        )
    return findings


def some(texts: Iterable[str], many: int, seed: int) -> list[str]:
    """So many of the texts, each with the same chance, in their order; memory stays bounded.

    Example:
        >>> some(["a", "b"], 3, seed=0)
        ['a', 'b']
    """
    import random

    chance = random.Random(seed)
    kept: list[tuple[int, str]] = []
    for number, text in enumerate(texts):
        if number < many:
            kept.append((number, text))
        elif (place := chance.randrange(number + 1)) < many:
            kept[place] = number, text
    return [text for _, text in sorted(kept)]


def rows(found: Evaluation) -> list[dict[str, str]]:
    """An evaluation for people: a line a figure, the original beside the model."""
    return [
        {"what": what, "model": model, "against": against, "change": change}
        for what, model, against, change in _lines(found)
    ]


def _lines(found: Evaluation) -> Iterator[tuple[str, str, str, str]]:
    mine, other = found.model, found.against
    sizes = [("table bytes", mine.table["total"], other.table["total"] if other else None)]
    sizes.append(("memory bytes", mine.memory["total"], other.memory["total"] if other else None))
    sizes.append(("disk bytes", mine.disk or 0, other.disk if other else None))
    for what, one, beside in sizes:
        if one and beside:
            yield what, f"{one:,}", f"{beside:,}", f"{100 * one / beside:.1f} %"
        elif one:
            yield what, f"{one:,}", "", ""
    for name, value in found.fidelity.items():
        yield f"fidelity, {name.replace('_', ' ')}", _shown(name, value), "", ""
    for task in found.tasks:
        for name, value in task.figures.items():
            beside_value = task.against[name] if task.against else None
            change = None if value is None or beside_value is None else value - beside_value
            yield (
                f"{task.task}, {name}",
                _shown(name, value),
                _shown(name, beside_value) if task.against else "",
                "" if change is None else f"{change:+.{DIGITS[name]}f}",
            )
    if found.speed:
        mine_took, other_took = found.speed["seconds"], found.speed["seconds_against"]
        ratio = f"x {found.speed['ratio']:.3f}, best of {found.speed['rounds']} each"
        yield "forward pass", f"{mine_took:.4f} s", f"{other_took:.4f} s", ratio


def _shown(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{DIGITS.get(name, 4)}f}"
    return "not defined" if value is None else str(value)
