"""Trials written down as they are made, so that a long search can be taken up again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from smalti.data import Labelled
from smalti.embeddings import Compressor
from smalti.errors import ArtifactError
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.judging import Verdict


class Entry(NamedTuple):
    """Verdict, bytes and seconds of a trial."""

    verdict: Verdict
    size: int
    seconds: float


class Journal:
    """A file of JSON lines: what the search is about, then one line a trial.

    Args:
        path: Where it lies; None writes nothing down. A journal of another search is begun
            anew.
        about: What must be the same for a trial to be worth anything.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any]) -> None:
        self.path = path
        self._first = json.dumps({"about": dict(about)}, sort_keys=True)
        self._known: dict[str, Entry] = {}
        self._begun = False
        if path is not None and path.exists():
            self._read(path)

    def find(self, compressor: Compressor, taught: bool) -> Entry | None:
        """A trial that was made before."""
        return self._known.get(_key(compressor, taught))

    def add(
        self, compressor: Compressor, taught: bool, verdict: Verdict, size: int, seconds: float
    ) -> None:
        """Write a trial down."""
        if self.path is None:
            return
        known = len(self._known)
        self._known[_key(compressor, taught)] = Entry(verdict, size, seconds)
        lines = [
            json.dumps({"key": key, **entry._asdict(), "verdict": asdict(entry.verdict)})
            for key, entry in self._known.items()
        ]
        try:
            if self._begun:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("\n".join(lines[known:]) + "\n")
            else:
                # Without what was cut off when the last search was killed.
                self.path.write_text("\n".join([self._first, *lines]) + "\n", encoding="utf-8")
        except OSError as error:
            raise ArtifactError(f"can't write {self.path}: {error}") from error
        self._begun = True

    def close(self) -> None:
        """The search is done: nothing is left to take up."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise ArtifactError(f"can't read {path}: {error}") from error
        for line in lines[1:] if lines[:1] == [self._first] else []:
            try:
                entry = json.loads(line)
                verdict = Verdict(**entry["verdict"])
                self._known[entry["key"]] = Entry(verdict, entry["size"], entry["seconds"])
            except (ValueError, KeyError, TypeError):
                # A line that was cut off is a trial not made.
                continue


def about(
    table: Table, texts: Sequence[str], labelled: Labelled | None, **settings: Any
) -> dict[str, Any]:
    """What a search is about: its table, texts and labels, by checksum, and settings."""
    digest = hashlib.sha256(table.vectors.numpy().tobytes() + table.counts.numpy().tobytes())
    digest.update(json.dumps(texts).encode())
    if labelled is not None:
        digest.update(json.dumps([labelled.first, labelled.second, labelled.classes]).encode())
        digest.update(labelled.labels.numpy().tobytes())
    return {"inputs": digest.hexdigest(), "special": list(table.special), **settings}


def _key(compressor: Compressor, taught: bool) -> str:
    return json.dumps([compressor.spec(), taught], sort_keys=True)
