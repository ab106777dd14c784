"""Fine-tuned models with other embedding tables: scores of GLUE tasks and the tables' bytes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import Timeout

from smalti.artifacts import write_file
from smalti.experiments.fine_tuned.measuring import TIMINGS, measured, over_tasks
from smalti.experiments.fine_tuned.settings import FineTunedSettings
from smalti.experiments.fine_tuned.subjects import prepared
from smalti.experiments.kinds.base import Kind, Measured, kinds, shared_place
from smalti.training import as_settings

# The folder of fine-tuned models, beside those of the tables.
MODELS = "fine-tuned"


@kinds.register("fine_tuned")
class FineTuned(Kind):
    """Settings are those of ``FineTunedSettings``; the seed is that of the fine-tuning."""

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Fine-tune where that is not done, change the tables, measure task by task."""
        asked = as_settings(FineTunedSettings, settings)
        # An arm that was interrupted goes on with the next task.
        files = {task: place / f"{task}.json" for task in asked.tasks}
        # A model that another process is fine-tuning comes last: it may be there by then.
        for wait in (False, True):
            for task, file in files.items():
                with suppress(Timeout):
                    if not file.exists():
                        shared = shared_place(place, MODELS)
                        subject = prepared(task, asked, seed, shared, wait=wait)
                        write_file(file, json.dumps(measured(subject, asked, place)))
        found, words = {}, {}
        for task, file in files.items():
            found[task], words[task] = json.loads(file.read_text())
        figures = over_tasks(found)
        timings = {name: figures.pop(name) for name in TIMINGS if name in figures}
        return Measured(figures, {"tasks": found, "tables": words}, timings)
