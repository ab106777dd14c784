"""What a reader of a table has to know of its results before comparing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smalti.experiments.results import Result
from smalti.experiments.table import Scale

OF_SCALE: dict[Scale, str] = {
    "tiny": "A few steps, mostly on small data in the place of what titles name: they show that "
    "tables run, and settle no claim."
}


def caveats(scale: Scale, results: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    """Sentences, none where there is nothing to beware of.

    Args:
        scale: How large the table was run.
        results: By arm.
    """
    if scale in OF_SCALE:
        yield OF_SCALE[scale]
    pupils = _by_teacher(results)
    if len(pupils) > 1:
        seeds = [{result.seed for result in group} for group in pupils]
        mixed = sorted(seed for seed in set.union(*seeds) if sum(seed in own for own in seeds) > 1)
        within = (
            f"with seed {' and '.join(map(str, mixed))} arms are compared that had different ones"
            if mixed
            else "arms of one seed had the same"
        )
        yield (
            f"The models learned from {len(pupils)} trainings of one teacher, which had the same "
            f"settings and other roundings: {within}. Results name their teacher by its hash; "
            "with another one the numbers are others."
        )


def _by_teacher(results: Mapping[str, Sequence[Result]]) -> list[list[Result]]:
    """Results of models that had a teacher, those with most pupils first."""
    found: dict[str, list[Result]] = {}
    for own in results.values():
        for result in own:
            teacher = result.details.get("teacher")
            if teacher is not None:
                found.setdefault(teacher["weights"], []).append(result)
    return sorted(found.values(), key=len, reverse=True)
