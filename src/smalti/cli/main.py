"""``smalti``: the command line's entry, and what all commands share.

Each command makes one library call to do its work and one to report. A ``SmaltiError``
becomes one line on stderr and status 2; any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from smalti import __version__
from smalti.cli import tuning
from smalti.cli.compressing import compress
from smalti.cli.decoding import decode
from smalti.cli.diffing import diff
from smalti.cli.distilling import distill
from smalti.cli.encoding import encode
from smalti.cli.evaluating import evaluate
from smalti.cli.exporting import export
from smalti.cli.inspecting import inspect
from smalti.cli.listing import list_family
from smalti.cli.reconstructing import reconstruct
from smalti.cli.reporting import report
from smalti.cli.reproducing import reproduce
from smalti.cli.sampling import sample
from smalti.cli.splicing import splice
from smalti.cli.training import train
from smalti.cli.translating import translate
from smalti.errors import SmaltiError

app = typer.Typer(
    name="smalti",
    help="Learned discrete codes: vectors become a few small integers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("list")(list_family)
app.command("inspect")(inspect)
app.command("compress")(compress)
app.add_typer(tuning.app)
app.command("evaluate")(evaluate)
app.command("export")(export)
app.command("report")(report)
app.command("diff")(diff)
app.command("train")(train)
app.command("reconstruct")(reconstruct)
app.command("sample")(sample)
app.command("encode")(encode)
app.command("decode")(decode)
app.command("translate")(translate)
app.command("distill")(distill)
app.command("splice")(splice)
app.command("reproduce")(reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"smalti {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    del version


def run() -> None:
    """Run the command line."""
    try:
        app()
    except SmaltiError as error:
        print(f"smalti: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
