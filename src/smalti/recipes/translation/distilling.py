"""A file translated by a trained model, for another model to learn from; resumed where stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from smalti.artifacts import write_file
from smalti.data import check_apart, read_lines, write_lines
from smalti.errors import ArtifactError, DataError, require
from smalti.progress import progress_bar
from smalti.recipes.run_directories import weights_digest
from smalti.recipes.translation.saved_run import TranslationRun
from smalti.recipes.translation.translating import BATCH_TOKENS, Batches, Parts
from smalti.translation import Decoding


@dataclass(frozen=True)
class Distilled:
    """What was done to distil a file.

    Args:
        lines: Of the file, and of what was written.
        sentences: Parts of lines that were translated; blank lines have none.
        found: Of these, how many an earlier sitting had translated.
        split: Lines that were too long and translated in parts.
    """

    lines: int
    sentences: int
    found: int
    split: int


def distill(
    run: TranslationRun,
    source: str | Path,
    output: str | Path,
    options: Decoding | None = None,
    *,
    resume: bool = False,
    batch_tokens: int = BATCH_TOKENS,
) -> Distilled:
    """Translate a file line by line; what is finished is written down batch after batch.

    Args:
        run: The model.
        source: Sentences, one a line, plain or gzipped.
        output: Where translations are written, gzipped where the name ends in ``.gz``. A
            journal lies beside it until all is done.
        options: How to look for translations; None as the model was saved to.
        resume: Go on with the journal of an earlier sitting, if there is one. Without it, one
            that is there is left alone.
        batch_tokens: Tokens of a batch, padding included.
    """
    source, output = Path(source), Path(output)
    check_apart(source, output, "translate")
    options = options or run.decoding
    lines = [line for _, line in read_lines(source)]
    require(bool(lines), f"{source} holds no lines", DataError)
    parts = Parts(run, lines)
    batches = Batches(run.translator, run.subwords, parts.texts, batch_tokens)
    about = {
        "model": weights_digest(run.translator),
        "tokenizer": run.subwords.fingerprint(),
        "texts": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "decoding": asdict(options),
        "batch_tokens": batch_tokens,
    }
    with _Journal(output.with_name(f"{output.name}.journal"), about, resume) as journal:
        found = sum(len(texts) for texts in journal.batches.values())
        with progress_bar("distilling", "sentences", total=len(parts.texts)) as advance:
            advance(found)
            for number, texts in batches.translated(options, skip=journal.batches):
                journal.add(number, texts)
                advance(len(texts))
        translated = [""] * len(parts.texts)
        for number, texts in journal.batches.items():
            for row, text in zip(batches.rows[number], texts, strict=True):
                translated[row] = text
        made = parts.joined(translated)
        write_lines(output, made.texts)
        journal.done()
    return Distilled(len(lines), len(parts.texts), found, len(made.split))


class _Journal:
    """A file of JSON lines: what is distilled, then a line for each batch that is done.

    Args:
        path: Where it lies.
        about: What must be the same for its batches to be of use.
        resume: Whether one that is there may be taken up.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], resume: bool) -> None:
        self.path, self.batches = path, dict[int, list[str]]()
        first = json.dumps({"about": about}, sort_keys=True)
        if path.exists():
            require(
                resume,
                f"{path} holds what an earlier sitting finished; go on with --resume, or remove it",
                DataError,
            )
            self._read(first)
        # Without what was cut off when the last sitting was killed.
        kept = [json.dumps([number, texts]) for number, texts in self.batches.items()]
        write_file(path, "".join(f"{line}\n" for line in [first, *kept]))
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise ArtifactError(f"can't write {path}: {error}") from error

    def add(self, number: int, texts: list[str]) -> None:
        """Write a batch down."""
        self.batches[number] = texts
        try:
            self._file.write(f"{json.dumps([number, texts])}\n")
            self._file.flush()
        except OSError as error:
            raise ArtifactError(f"can't write {self.path}: {error}") from error

    def done(self) -> None:
        """Nothing is left to take up."""
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self, first: str) -> None:
        try:
            header, *lines = self.path.read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise ArtifactError(f"can't read {self.path}: {error}") from error
        require(
            header == first,
            f"{self.path} is of another model, file or way of decoding; remove it, or write to "
            "another file",
            DataError,
        )
        for line in lines:
            try:
                number, texts = json.loads(line)
            except ValueError:
                break
            self.batches[number] = texts
