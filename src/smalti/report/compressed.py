"""The report of a model that was just compressed, from what is known at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smalti.report.opening import tokens_of
from smalti.report.page import Report
from smalti.report.tables import TableSubject, report_table

if TYPE_CHECKING:
    from smalti.hub.compressing import Compressed

# Fewer than a report by itself looks at: compressing should not wait for it.
NEIGHBOUR_ROWS = 6_000


def report_compressed(
    found: Compressed, *, neighbour_rows: int = NEIGHBOUR_ROWS, progress: bool | None = None
) -> Report:
    """Analyse what ``smalti.compress`` made.

    Args:
        found: The model, its table and the original one.
        neighbour_rows: Of how many rows neighbours are looked for.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    origin = found.model.config.quantization_config.origin
    subject = TableSubject(
        name=str(origin.get("name") or type(found.model).__name__),
        table=found.table,
        original=found.original,
        tokens=tokens_of(found.tokenizer, found.table.rows),
        counts=found.counts.counts,
        figures=found.figures,
        trials=[trial.as_dict() for trial in found.trials],
        notes=found.notes,
    )
    return report_table(subject, neighbour_rows=neighbour_rows, progress=progress)
