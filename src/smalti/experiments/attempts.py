"""Who worked on a run and for how long: kept beside its folder, across interruptions."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from smalti.artifacts import write_file


@dataclass(frozen=True)
class Earlier:
    """What interrupted attempts have left for this one.

    Args:
        seconds: That went into what they left; what came after their last file is lost and
            is done again.
        sources: Hashes of the sources that wrote it.
    """

    seconds: float
    sources: tuple[str, ...]


def attempts_file(place: Path) -> Path:
    """Where the attempts at a run are noted: not in its folder, which is empty at first.

    Args:
        place: The run's folder.
    """
    return place.with_name(f"{place.name}.attempts.json")


def begin_attempt(place: Path, source: str) -> Earlier:
    """Note that a run begins, or goes on, and say what is there already.

    Args:
        place: Where the run keeps its checkpoints.
        source: Hash of the source that runs it now.
    """
    path = attempts_file(place)
    kept = json.loads(path.read_text()) if path.exists() else []
    if kept and kept[-1]["seconds"] is None:
        # A killed process says nothing: its last file tells how far it came.
        kept[-1]["seconds"] = max(0.0, _last_written(place) - kept[-1]["began"])
    kept = [attempt for attempt in kept if attempt["seconds"] > 0]
    now = {"source": source, "began": time.time(), "seconds": None}
    write_file(path, json.dumps([*kept, now], indent=1) + "\n")
    return Earlier(
        seconds=sum(attempt["seconds"] for attempt in kept),
        sources=tuple(dict.fromkeys(attempt["source"] for attempt in kept)),
    )


def _last_written(place: Path) -> float:
    files = (path for path in place.rglob("*") if path.is_file())
    return max((path.stat().st_mtime for path in files), default=0.0)
