"""``smalti splice``: further sentences for a teacher to translate, made from those there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.options import Seed
from smalti.cli.output import AsJson, check_file, show


def splice(
    source: Annotated[Path, typer.Argument(help="Sentences, one a line, or gzipped.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    lines: Annotated[int, typer.Option(help="How many new sentences to make.")],
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make new sentences: the beginning of one and the end of another that share two words.

    They are for a small training set. A teacher translates them (smalti distill), and another
    model learns from them besides, by its settings data.more_source and data.more_distilled.

    Example: smalti splice multi30k/train.en --lines 87000 -o runs/spliced.en
    """
    check_file(output)
    from smalti import data
    from smalti.recipes.translation.text_sets import find_file

    found = find_file(source)
    data.check_apart(found, output, "splice")
    texts = [text for _, text in data.read_lines(found)]
    made = data.splice(texts, lines, seed)
    data.write_lines(output, made)
    show({"file": str(output), "lines": len(made), "made_of": len(texts)}, as_json)
