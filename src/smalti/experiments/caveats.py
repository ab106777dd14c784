"""What a reader of a table has to know of its results before comparing them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

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
    for seeds in _seeds_by_teacher(results):
        if len(seeds) == 1:
            continue
        mixed = sorted(seed for seed in set.union(*seeds) if sum(seed in own for own in seeds) > 1)
        within = (
            f"with seed {' and '.join(map(str, mixed))} arms are compared that had different ones"
            if mixed
            else "arms of one seed had the same"
        )
        yield (
            f"The models learned from {len(seeds)} trainings of a teacher with the same settings: "
            f"{within}. Results name their teacher by its hash; with another one the numbers are "
            "others."
        )


def _seeds_by_teacher(results: Mapping[str, Sequence[Result]]) -> Iterator[list[set[int]]]:
    """For each settings of teachers: the seeds of their pupils, a set for each training."""
    found: dict[str, dict[str, set[int]]] = {}
    for result in chain.from_iterable(results.values()):
        teacher = result.details.get("teacher")
        if teacher is not None:
            settings = json.dumps(teacher["config"], sort_keys=True)
            trainings = found.setdefault(settings, {})
            trainings.setdefault(teacher["weights"], set()).add(result.seed)
    for trainings in found.values():
        yield list(trainings.values())
