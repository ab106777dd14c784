"""The journal of a run: a JSON object a line, and no line twice."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smalti.artifacts import write_file
from smalti.errors import ArtifactError, DataError, require

FILE = "journal.jsonl"


class Journal:
    """Writes lines, each at once.

    Args:
        run: The directory of the run.
        told: The last step of each kind of line that a run which goes on knows of; later lines
            are removed, since it will write them again.
    """

    def __init__(self, run: Path, told: Mapping[str, int]) -> None:
        self.path = run / FILE
        try:
            run.mkdir(parents=True, exist_ok=True)
            kept = [line for line in self._lines() if _is_known(line, told)]
            write_file(self.path, "".join(f"{line}\n" for line in kept).encode())
            # Without a buffer: a line is in the file when it is written, or fails now.
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise ArtifactError(f"can't write the journal {self.path}: {error}") from error

    def write(self, kind: str, step: int, entries: Mapping[str, Any]) -> None:
        """Write a line; numbers that JSON does not know become null."""
        line = f"{json.dumps(_plain({'step': step, 'kind': kind, **entries}))}\n".encode()
        try:
            written = self._file.write(line)
            if written != len(line):
                # No half lines.
                self._file.truncate(self.path.stat().st_size - written)
        except OSError as error:
            raise ArtifactError(f"can't write the journal {self.path}: {error}") from error
        require(
            written == len(line),
            f"can't write the journal {self.path}: there is no room left; make room and resume",
            ArtifactError,
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []


def read_journal(run: str | Path) -> list[dict[str, Any]]:
    """The lines of a run's journal; one that a killed process left half written is left out."""
    path = Path(run) / FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"can't read the journal {path}: {error}") from error
    return [json.loads(line) for line in lines if _step_of(line) < math.inf]


def _is_known(line: str, told: Mapping[str, int]) -> bool:
    step = _step_of(line)
    return step < math.inf and step <= told.get(json.loads(line).get("kind", ""), 0)


def _step_of(line: str) -> float:
    """The step of a line; infinite where it is no line of ours."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
