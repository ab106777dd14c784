"""The report of a translation model: how it learned, and its words where they are codes."""

from __future__ import annotations

from pathlib import Path

from smalti.embeddings.base import CompressedEmbedding
from smalti.recipes.translation import TranslationRun, load_translation_run
from smalti.recipes.translation.running import STAGE
from smalti.report.page import Headline, Report
from smalti.report.stages import run_directory, stage_curves
from smalti.report.table_headline import megabytes
from smalti.report.tables import TableSubject, report_table


def report_translation(path: Path) -> Report:
    """Analyse a run.

    Args:
        path: The directory that was trained into, or its part ``model`` alone.
    """
    run = load_translation_run(path)
    curves = list(stage_curves(run_directory(path), STAGE))
    headline = _headline(path, run)
    words = run.translator.words.children()
    coded = [table for table in words if isinstance(table, CompressedEmbedding)]
    if not coded:
        return Report(headline, curves)
    tokens = [run.subwords.token(number) for number in range(len(run.subwords))]
    # One page, one search box: where source and target have tables of their own, the first.
    made = report_table(TableSubject(headline.title, coded[0], tokens=tokens))
    return Report(headline, [*made.findings, *curves], made.tokens, made.mosaic)


def _headline(path: Path, run: TranslationRun) -> Headline:
    parameters = sum(tensor.numel() for tensor in run.translator.parameters())
    size = sum(t.numel() * t.element_size() for t in run.translator.state_dict().values())
    figures = {
        f"{what.replace('_', ' ')}, {stage}": value
        for stage, those in run.figures.items()
        for what, value in those.items()
        if isinstance(value, (int, float))
    }
    kind = str(run.translator.spec()["translator"])
    scores = [(f"{value:.4g}", what) for what, value in figures.items() if "bleu" in what]
    others = [(f"{value:.4g}", what) for what, value in figures.items() if "bleu" not in what]
    told = f", with a {scores[0][1]} of {scores[0][0]}" if scores else ""
    return Headline(
        f"{path.resolve().name}: {kind} translator",
        f"A translator of {parameters:,} parameters, {megabytes(size)} of numbers{told}.",
        [*scores, (f"{parameters / 1e6:.3g} M", "parameters"), *others][:3],
    )
