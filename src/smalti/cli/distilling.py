"""``smalti distill``: what a model makes of a file, for another model to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, check_file, show
from smalti.cli.translating import BatchTokens, Beam, LengthPenalty, decoding_of


def distill(
    run: Annotated[Path, typer.Argument(help="The directory of a trained translation model.")],
    source: Annotated[Path, typer.Option(help="The sentences, one a line, or gzipped.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    batch_tokens: BatchTokens = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what an earlier sitting finished.")
    ] = False,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Translate the sentences of a training set, batch by batch, by beam search.

    What is finished is written down beside the output; a run that was stopped or killed goes on
    with --resume. Another model learns from the result by its setting data.distilled.

    Example: smalti distill runs/en-de --source multi30k/train.en -o runs/distilled.de
    """
    check_file(output)
    import time

    from smalti.recipes import translation
    from smalti.recipes.translation.text_sets import find_file
    from smalti.recipes.translation.translating import BATCH_TOKENS

    use_threads(threads)
    trained = translation.load_translation_run(run)
    began = time.perf_counter()
    found = translation.distill(
        trained,
        find_file(source),
        output,
        decoding_of(trained, beam, length_penalty),
        resume=resume,
        batch_tokens=batch_tokens or BATCH_TOKENS,
    )
    content = {
        "file": str(output),
        "lines": found.lines,
        "sentences": found.sentences,
        "found_before": found.found,
        "split_lines": found.split,
        "seconds": round(time.perf_counter() - began, 2),
    }
    show(content, as_json)
