"""Tasks on texts: trained with a full or a coded input table, and measured on unseen text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar

from smalti.analysis import CodeGroup, change_rate, code_distribution, rank
from smalti.embeddings.coded import CodedTable
from smalti.embeddings.differentiable import compression_ratio
from smalti.embeddings.tiers import tiers
from smalti.errors import require
from smalti.experiments.kinds.base import Kind, Measured, kinds
from smalti.recipes.texts import (
    ClassifierConfig,
    LanguageModelConfig,
    Learned,
    MaskedModelConfig,
    TableTaskConfig,
    train_language_model,
    train_masked_model,
    train_text_classifier,
)
from smalti.training import as_settings

# By name: the settings of a task, and what trains it.
TASKS: dict[str, tuple[type[TableTaskConfig], Callable[..., Learned]]] = {
    "language_model": (LanguageModelConfig, train_language_model),
    "masked_model": (MaskedModelConfig, train_masked_model),
    "text_classifier": (ClassifierConfig, train_text_classifier),
}


@kinds.register("texts")
class Texts(Kind):
    """Settings are ``task`` and those of its config."""

    together: ClassVar[bool] = True

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Train, export the table, measure the test texts and the codes."""
        learned = learned_by(settings, seed, place)
        course = _course(learned)
        details = {"outcome": learned.outcome.as_dict(), "course": course}
        metrics = {**scores_of(learned), **_codes(learned), **_settling(course)}
        return Measured(metrics, details)


def learned_by(settings: dict[str, Any], seed: int, place: Path) -> Learned:
    """Train what settings describe; a run that was interrupted goes on.

    Args:
        settings: ``task`` and those of its config.
        seed: Of everything random.
        place: Where unfinished work is found again.
    """
    name = settings.pop("task", None)
    require(name in TASKS, f"there is no task {name!r}; the known ones are: {', '.join(TASKS)}")
    kind, train = TASKS[name]
    config = as_settings(kind, settings).with_seed(seed)
    resume = place.is_dir() and any(place.iterdir())
    return train(config, place, resume)


def scores_of(learned: Learned) -> dict[str, float]:
    """Scores and sizes."""
    outcome = learned.outcome
    made = {
        **outcome.test,
        **{f"valid_{name}": value for name, value in outcome.valid.items()},
        "ratio": outcome.compression_ratio,
        "formula_ratio": 1.0,
        "table_kb": outcome.table_bytes / 1000,
    }
    if outcome.embedding is not None:
        names = ("num_codebooks", "codebook_size")
        books, size = (outcome.embedding[name] for name in names)
        shared = outcome.embedding.get("shared", False)
        made["formula_ratio"] = compression_ratio(
            outcome.rows, outcome.dim, books, size, shared
        ).ideal
    if outcome.exported_equals_trained is not None:
        made["exported_equals_trained"] = float(outcome.exported_equals_trained)
    return made


def coded_table(learned: Learned) -> CodedTable | None:
    """The input table, where it has codes."""
    table = learned.model.get_submodule("embedding")
    return table if isinstance(table, CodedTable) else None


def _codes(learned: Learned) -> dict[str, float]:
    """How evenly codewords are used by all words, and which rank their vectors have."""
    table = coded_table(learned)
    if table is None:
        return {}
    (tier,) = tiers(table)
    found = code_distribution([CodeGroup("codes", tier.codes(), tier.code_sizes)]).numbers
    directions = rank(table).numbers
    return {
        "evenness": found["mean_evenness"],
        "entropy_bits": found["mean_entropy_bits"],
        "used_share": found["used_share"],
        "gini": mean(book["gini"] for book in found["groups"]["codes"]),
        "rank": float(directions["rank"]),
        "formula_rank": float(directions["formula"]),
    }


def _course(learned: Learned) -> list[dict[str, float]]:
    """How many codes changed from one evaluation to the next."""
    if len(learned.codes) < 2:
        return []
    found = change_rate({"codes": learned.codes}).numbers["runs"]["codes"]
    return [{"step": line["to"], "codes_changed": line["codes_changed"]} for line in found]


def _settling(course: list[dict[str, float]]) -> dict[str, float]:
    """Changes over all of training, and in its early and late half, in percent of codes."""
    if not course:
        return {}
    rates = [100 * line["codes_changed"] for line in course]
    half = len(rates) // 2
    early, late = mean(rates[: half or 1]), mean(rates[half:])
    made = {"changed": mean(rates), "changed_early": early, "changed_late": late}
    return {**made, "changes_left": late / early} if early > 0 else made
