"""A teacher and what it makes of its texts: made once, for the arms of all tables."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalti.artifacts import MANIFEST
from smalti.errors import ConfigError, require
from smalti.recipes.run_directories import FOLDER, weights_digest
from smalti.recipes.translation import (
    TranslationConfig,
    TranslationRun,
    distill,
    load_translation_run,
    train_translation_run,
)
from smalti.recipes.translation.text_sets import find_file
from smalti.together import is_first, locked, meet

# In the teacher's directory; the same that ``smalti distill`` writes.
DISTILLED = "distilled.txt"


@dataclass(frozen=True)
class Teacher:
    """A trained model that others learn from.

    Args:
        place: The directory that it was trained into.
        run: The model.
    """

    place: Path
    run: TranslationRun

    def distilled(self) -> Path:
        """What it makes of the sentences that it was trained on; translated where missing."""
        made = self.place / DISTILLED
        with locked(f"{made}.lock"):
            if is_first() and not made.exists():
                distill(self.run, find_file(self.run.config.data.source), made, resume=True)
            meet()
        return made

    def given_to(self, pupil: TranslationRun) -> dict[str, Any]:
        """What tells this teacher, and the texts that another model had from it, from others."""
        texts = pupil.config.data.distilled
        return {
            "weights": weights_digest(self.run.translator),
            "distilled": texts and hashlib.sha256(Path(texts).read_bytes()).hexdigest(),
            "config": self.run.config.model_dump(mode="json"),
        }


def teacher_of(config: TranslationConfig, folder: Path) -> Teacher:
    """The teacher of these settings: found in a folder, or trained into it.

    Every run directory in the folder whose model was trained by these very settings will do,
    whoever put it there. What was interrupted goes on, and arms that run at the same time wait
    for the one that trains.

    Args:
        config: How the teacher is trained, its seed included.
        folder: Where teachers lie.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = json.dumps(config.model_dump(mode="json"), sort_keys=True)
    place = folder / f"teacher-{hashlib.sha256(settings.encode()).hexdigest()[:16]}"
    with locked(f"{place}.lock"):
        found = _trained_by(config, folder)
        if found is not None:
            return found
        outcome = train_translation_run(config, place, resume=place.exists())
        require(
            outcome.finished,
            "the teacher was stopped before the end; the same command goes on",
            ConfigError,
        )
    return Teacher(place, load_translation_run(place))


def _trained_by(config: TranslationConfig, folder: Path) -> Teacher | None:
    for manifest in sorted(folder.glob(f"*/{FOLDER}/{MANIFEST}")):
        place = manifest.parent.parent
        run = load_translation_run(place)
        if run.config == config:
            return Teacher(place, run)
    return None
