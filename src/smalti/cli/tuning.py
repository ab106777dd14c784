"""``smalti tune``: its commands, and ``tune table``: what each size of a table costs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from smalti.artifacts import write_file
from smalti.cli.options import (
    Columns,
    CountsFile,
    DropLimit,
    DryRun,
    LabelledFile,
    ModelName,
    Seed,
    SizeLimit,
    TextFiles,
    Threads,
    split_columns,
    use_threads,
)
from smalti.cli.output import AsJson, check_file, show, show_plan, tell
from smalti.cli.tuning_codebook import codebook

app = typer.Typer(
    name="tune",
    help="Choose by measuring.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _tune() -> None:
    """Choose by measuring."""


app.command("codebook")(codebook)


@app.command("table")
def table(
    model: ModelName,
    text: TextFiles = None,
    column: Columns = None,
    counts: CountsFile = None,
    labelled: LabelledFile = None,
    size: SizeLimit = None,
    max_drop: DropLimit = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write all that was tried.")
    ] = Path("frontier.json"),
    seed: Seed = 0,
    threads: Threads = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Try tables of every method; print those that no other beats, and the best in budget.

    Example: smalti tune table all-MiniLM-L6-v2 --text corpus.txt --max-drop 0.5%
    """
    from smalti.data import read_labelled
    from smalti.hub.library import transformers_library

    transformers_library()
    from smalti.hub import compressing, tuning

    use_threads(threads)
    inputs: dict[str, Any] = {
        "text": text or [],
        "columns": split_columns(column),
        "counts": counts,
        "seed": seed,
        "size": size,
        "max_drop": max_drop,
    }
    if dry_run:
        plan = compressing.plan(model, **inputs, ladder=tuning.SIZES, every_method=True)
        show_plan(plan, as_json)
        return
    # Minutes of work must not end at a file that can't be written.
    check_file(output, holds="trials")
    examples = None if labelled is None else read_labelled(labelled)
    journal = output.with_name(f".{output.name}.journal")
    found = tuning.tune_table(model, **inputs, labelled=examples, journal=journal)
    content = found.as_dict()
    write_file(output, json.dumps({"model": model, **content}, indent=2) + "\n")
    tell(found.notes)
    if as_json:
        show(content, as_json)
        return
    show(_rows(content), as_json)
    typer.echo(f"* no other is better at that size or less. All settings: {output}")
    if content["best"] is not None:
        chosen = content["best"]
        same = [f"--seed={seed}", *(f"--text={path}" for path in text or ())]
        same += [f"--column={name}" for name in column or ()]
        same += [] if counts is None else [f"--counts={counts}"]
        command = ["smalti", "compress", model, *same, *_settings(chosen), "-o", "DIR"]
        typer.echo(f"best: {chosen['table']}, {chosen['percent']} %")
        typer.echo(f"to make it: {shlex.join(command)}")


def _rows(content: dict[str, Any]) -> list[dict[str, Any]]:
    """All tables from small to large, those of the frontier with a mark."""
    scored = any(trial["score"] is not None for trial in content["trials"])
    columns = ("percent", "cosine", *(["score"] if scored else []), "drop_percent", "table")
    return [
        {"": "*" if trial in content["frontier"] else "", **{key: trial[key] for key in columns}}
        for trial in sorted(content["trials"], key=lambda trial: trial["percent"])
    ]


def _settings(trial: dict[str, Any]) -> list[str]:
    """The options of ``smalti compress`` that make a table."""
    spec = dict(trial["spec"])
    given = [f"--method={spec.pop('compressor')}"]
    for key, value in spec.items():
        given.append(f"--set={key}={value if isinstance(value, str) else json.dumps(value)}")
    return [*given, *(["--teach"] if trial["taught"] else [])]
