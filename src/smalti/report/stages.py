"""How the stages of a run learned, from their journals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from smalti.analysis import Finding, training_curves
from smalti.recipes.run_directories import FOLDER
from smalti.training import read_journal
from smalti.training.journal import FILE


def run_directory(path: Path) -> Path:
    """The directory of a run, also where its part ``model`` alone is named."""
    return path.parent if path.name == FOLDER and not (path / FOLDER).exists() else path


def stage_curves(run: Path, first: str) -> Iterator[Finding]:
    """What each stage's journal tells; stages without one are left out.

    Args:
        run: The directory of the run.
        first: The stage whose finding has no name of its own.
    """
    for folder in sorted(path.parent for path in run.glob(f"*/{FILE}")):
        journal = read_journal(folder)
        if not any(line.get("metrics") for line in journal):
            continue
        curves = training_curves(journal, f"training the {folder.name}")
        name = curves.name if folder.name == first else f"{curves.name}_{folder.name}"
        yield replace(curves, name=name)
