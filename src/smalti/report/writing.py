"""A page becomes a file: whole or not at all, and never over a file that is something else."""

from __future__ import annotations

import os
from pathlib import Path

from smalti.artifacts import is_page, write_file
from smalti.errors import ArtifactError, require
from smalti.report.page import Report


def check_page(path: Path) -> None:
    """Refuse a place that a page can't be written to, before work is put into it."""
    require(
        (path.is_file() or not path.exists())
        and path.parent.is_dir()
        and os.access(path.parent, os.W_OK),
        f"can't write the page {path}: name a file in a directory that can be written to",
        ArtifactError,
    )
    require(
        not path.exists() or is_page(path),
        f"{path} holds something else: choose another file",
        ArtifactError,
    )


def write_page(report: Report, path: str | Path) -> Path:
    """Write the page of a report; an older page at that place is replaced."""
    place = Path(path)
    check_page(place)
    write_file(place, report.html())
    return place
