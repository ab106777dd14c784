"""``smalti compress``: a model's embedding table becomes codes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    settings_from,
    split_columns,
    use_threads,
)
from smalti.cli.output import AsJson, show, show_plan, tell
from smalti.cli.reporting import WithPage, page_beside
from smalti.errors import ConfigError

if TYPE_CHECKING:
    from smalti.hub.compressing import Compressed


def compress(
    model: ModelName,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to save.")] = None,
    text: TextFiles = None,
    column: Columns = None,
    counts: CountsFile = None,
    labelled: LabelledFile = None,
    size: SizeLimit = None,
    max_drop: DropLimit = None,
    method: Annotated[
        str | None,
        typer.Option(help="A compressor, instead of a search; see smalti list compressors."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the method, key=value; the value may be JSON."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="Rows to keep: a share of the rows that occur (50%), or rows (1000)."),
    ] = None,
    kept: Annotated[
        str | None, typer.Option(help="How kept rows are stored: float32, float16, int8, int4.")
    ] = None,
    teach: Annotated[
        bool | None,
        typer.Option(
            help="Let codewords learn from the model's outputs. Without a method they do.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace whatever is at the output.")
    ] = False,
    with_page: WithPage = True,
    seed: Seed = 0,
    threads: Threads = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Compress the embedding table of a model, and save the model.

    Without a method the best table for the size, or the smallest for the drop, is searched for;
    with neither size nor drop, the smallest that loses at most 2%. A page in the directory,
    report.html, shows what was gained and lost.

    Example: smalti compress all-MiniLM-L6-v2 --text corpus.txt --size 4% -o small
    """
    from smalti.artifacts import PAGE, as_path
    from smalti.data import read_labelled
    from smalti.hub.library import transformers_library

    transformers_library()
    from smalti.hub import compressing
    from smalti.hub.choosing.budget import rows_or_share
    from smalti.hub.saving import check_free

    if output is None and not dry_run:
        raise ConfigError("say where to save the model: -o DIR (or ask for --dry-run)")
    use_threads(threads)
    if output is not None:
        # Minutes of work must not end at a directory that can't be written.
        inputs_at = [Path(model), *(text or []), *filter(None, (counts, labelled)), Path.cwd()]
        check_free(as_path(output), overwrite, inputs_at)
    wish: dict[str, Any] = {
        "size": size,
        "max_drop": max_drop,
        "method": method,
        "settings": settings_from(settings),
        "keep": None if keep is None else rows_or_share(keep),
        "kept": kept,
        "teach": teach,
    }
    inputs: dict[str, Any] = {
        "text": text or [],
        "columns": split_columns(column),
        "counts": counts,
        "seed": seed,
    }
    if dry_run:
        show_plan(compressing.plan(model, **inputs, **wish), as_json)
        return
    examples = None if labelled is None else read_labelled(labelled)
    found = compressing.compress(model, **inputs, **wish, labelled=examples)
    assert output is not None  # checked above
    place = found.save(output, overwrite=overwrite)
    tell(found.notes)
    page = None
    if with_page:
        from smalti.report import report_compressed

        page = page_beside(lambda: report_compressed(found), place / PAGE)
    _report(found, place, page, as_json)


def _report(found: Compressed, place: Path, page: str | None, as_json: bool) -> None:
    content = {"directory": str(place), **found.figures}
    if as_json:
        content["sizes"] = found.table.size().as_dict()
        content["trials"] = [trial.as_dict() for trial in found.trials]
        content["notes"] = list(found.notes)
        content |= {"report": page} if page else {}
    show(content, as_json)
    if page and not as_json:
        typer.echo(f"report: {page}")
