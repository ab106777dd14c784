"""What choosing a table needs of a model: its rows and their use, what errors cost, a teacher."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from smalti.embeddings import CompressedEmbedding
from smalti.errors import require
from smalti.hub.choosing.calibrating import calibrate
from smalti.hub.choosing.candidates import Table
from smalti.hub.choosing.sensitivity import output_metric
from smalti.hub.choosing.survey import Survey
from smalti.hub.choosing.targets import Target, target_of
from smalti.hub.groups import find_group
from smalti.hub.kinds import kind_of
from smalti.hub.library import Model
from smalti.hub.opening import Opened, open_model

# Kinds of models whose codewords learn from outputs; with others it would take too long.
TAUGHT = ("encoder", "classifier")


def opened_model(model: str | Path | Model, tokenizer: Any = None) -> Opened:
    """A model by name, or a copy of a loaded one, that has a table to compress."""
    if isinstance(model, (str, Path)):
        opened = open_model(model)
    else:
        place = getattr(model.config, "name_or_path", "") or ""
        path = Path(place) if place and Path(place).exists() else None
        kind = kind_of([type(model).__name__])
        opened = Opened(copy.deepcopy(model).eval(), tokenizer, kind, path, place)
    other = getattr(opened.model.config, "quantization_config", None)
    require(
        other is None,
        f"{opened.name or type(opened.model).__name__} is compressed or quantized already; "
        "take its original, or what smalti export makes of it",
    )
    return opened


def measure_of(
    opened: Opened, known: Survey, seed: int, progress: bool | None
) -> Callable[[], Tensor]:
    """Finds out what errors of rows cost the model, once."""
    texts = known.teaching or known.judging
    return functools.cache(lambda: output_metric(opened, texts, seed=seed, progress=progress))


def table_of(
    opened: Opened,
    known: Survey,
    *,
    choosing: bool,
    measure: Callable[[], Tensor] | None = None,
) -> Table:
    """The model's table with the use of its rows, and what their errors cost."""
    tokenizer = opened.tokenizer
    group = find_group(opened.model)
    special = tuple(sorted(i for i in set(tokenizer.all_special_ids) if 0 <= i < group.rows))
    return Table(
        group.weight.detach().float().clone(),
        known.choosing if choosing else known.counts.counts.double(),
        special,
        tokenizer.unk_token_id,
        measure,
    )


def teacher_of(
    opened: Opened, known: Survey, seed: int, progress: bool | None
) -> Callable[[CompressedEmbedding], CompressedEmbedding] | None:
    """What lets a table learn from the model's outputs; None where that would take too long."""
    if not known.teaching or opened.kind not in TAUGHT:
        return None
    targets: list[Target] = []

    def teach(table: CompressedEmbedding) -> CompressedEmbedding:
        if not targets:
            targets.append(target_of(opened, known.teaching))
        return calibrate(opened, table, targets[0], seed=seed, progress=progress)

    return teach
