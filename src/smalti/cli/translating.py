"""``smalti translate``: a text or a file, by a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, check_file, show, tell
from smalti.errors import ConfigError

if TYPE_CHECKING:
    from smalti.recipes.translation import TranslationRun
    from smalti.translation import Decoding

Beam = Annotated[
    int | None, typer.Option(min=1, help="Hypotheses of an autoregressive model; 1 is greedy.")
]
LengthPenalty = Annotated[
    float | None, typer.Option(min=0, help="Of a beam: 0 favours short translations.")
]
Samples = Annotated[
    int, typer.Option(min=1, help="Latent models: so many translations to choose from.")
]
Lengths = Annotated[
    int, typer.Option(min=1, help="Parallel models: so many lengths to choose from.")
]
RescoreWith = Annotated[
    Path | None, typer.Option(help="An autoregressive run of the same vocabulary, which chooses.")
]
CleanRepeats = Annotated[
    bool, typer.Option("--clean-repeats", help="Leave out tokens that repeat the one before.")
]
BatchTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens of a batch; fewer take less memory.")
]


def translate(
    run: Annotated[Path, typer.Argument(help="The directory of a trained translation model.")],
    text: Annotated[str | None, typer.Argument(help="What to translate.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="A file instead: a text a line, or gzipped.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the file's translation goes.")
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    samples: Samples = 1,
    lengths: Lengths = 1,
    rescore_with: RescoreWith = None,
    clean_repeats: CleanRepeats = False,
    batch_tokens: BatchTokens = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Translate a text, or a file line by line: as many lines, in the same order.

    Example: smalti translate runs/en-de "A man rides a horse."

    Example: smalti translate runs/en-de --file captions.en -o captions.de
    """
    if (text is None) == (file is None):
        raise ConfigError('give a text to translate, or a file with --file: translate RUN "text"')
    if output is not None and file is None:
        raise ConfigError("-o is for files; the translation of a text is printed")
    from smalti.data import check_apart, read_lines, write_lines

    if output is not None and file is not None:
        check_file(output)
        check_apart(file, output, "translate")
    from smalti.recipes.translation import load_translation_run, translate_texts
    from smalti.recipes.translation.translating import BATCH_TOKENS

    use_threads(threads)
    texts = [text or ""] if file is None else [line for _, line in read_lines(file)]
    trained = load_translation_run(run)
    teacher = None if rescore_with is None else load_translation_run(rescore_with)
    options = decoding_of(
        trained,
        beam,
        length_penalty,
        samples,
        lengths,
        clean_repeats=clean_repeats,
        rescore_with=teacher,
    )
    found = translate_texts(
        trained,
        texts,
        options,
        rescore_with=teacher,
        batch_tokens=batch_tokens or BATCH_TOKENS,
    )
    tell_split(found.split, trained)
    if output is not None:
        write_lines(output, found.texts)
        content = {"file": str(output), "lines": len(found.texts), "split_lines": len(found.split)}
        show(content, as_json)
    elif as_json:
        content = {"translations": list(found.texts), "split_lines": list(found.split)}
        show(content, as_json)
    else:
        for line in found.texts:
            typer.echo(line)


def decoding_of(
    run: TranslationRun,
    beam: int | None,
    length_penalty: float | None,
    samples: int = 1,
    lengths: int = 1,
    *,
    clean_repeats: bool = False,
    rescore_with: TranslationRun | None = None,
) -> Decoding:
    """How the model was saved to translate, with what was asked for."""
    from dataclasses import replace

    if length_penalty is None and rescore_with is not None:
        # Who chooses does so by what was tuned for it.
        length_penalty = rescore_with.decoding.length_penalty
    given: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty}
    asked = {name: value for name, value in given.items() if value is not None}
    return replace(
        run.decoding, samples=samples, lengths=lengths, clean_repeats=clean_repeats, **asked
    )


def tell_split(lines: tuple[int, ...], run: TranslationRun) -> None:
    """Say which lines were too long."""
    if lines:
        some = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
        word = "lines" if len(lines) > 1 else "line"
        note = (
            f"{word} {some}: more than the {run.longest} tokens of the longest sentence that the "
            "model was trained on, and translated in parts"
        )
        tell([note])
