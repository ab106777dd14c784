"""Two artifacts side by side: sizes, scores, codes that changed, neighbours that were lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from smalti.analysis import find_neighbours
from smalti.analysis.neighbours import NEIGHBOURS, row_cosines
from smalti.analysis.storage import FLOAT32
from smalti.embeddings.full import FullTable
from smalti.embeddings.tiers import Tier, tiers
from smalti.errors import ConfigError, DataError, SmaltiError
from smalti.recipes.images import load_run, read_unseen_images
from smalti.recipes.images.coding import encode_all, has_codes
from smalti.report.frontiers import read_search
from smalti.report.opening import kind_at, open_subject, original_table
from smalti.report.tables import TableSubject

# Rows whose neighbours are compared, and images whose codes are.
ROWS, IMAGES = 5_000, 256


def compare(one: str | Path, other: str | Path, data: str | None = None) -> dict[str, Any]:
    """What differs between two artifacts of a kind.

    Args:
        one: A compressed model or table, its original, an image run, or a file of
            ``smalti tune table``.
        other: Another one of the same kind.
        data: Images, for runs; without it those that the first was trained on.

    Returns:
        ``a`` and ``b``, each with its figures, and ``between``, what lies between the two.
    """
    first, second = _kind(one), _kind(other)
    if first != second:
        raise ConfigError(f"can't compare {one}, a {first}, with {other}, a {second}")
    if first in {"study", "translation"}:
        raise ConfigError(
            f"can't compare a {first} with another: give tables, models or image runs"
        )
    if first == "run":
        return _runs(Path(one), Path(other), data)
    if data is not None:
        raise ConfigError("images are for runs, and these are none")
    if first == "frontier":
        return _frontiers(Path(one), Path(other))
    return _tables(one, other)


def _kind(name: str | Path) -> str:
    place = Path(name).expanduser()
    if not place.exists():
        return "table"  # A model by its name.
    kind = kind_at(place)
    return "table" if kind == "model" else kind


def _tables(one: str | Path, other: str | Path) -> dict[str, Any]:
    a, b = _subject(one), _subject(other)
    shape = (a.table.rows, a.table.dim)
    if shape != (b.table.rows, b.table.dim):
        raise ConfigError(
            f"can't compare tables of {shape[0]} x {shape[1]} and {b.table.rows} x {b.table.dim}: "
            "they are of different models"
        )
    dense_a, dense_b = a.table.dense().float(), b.table.dense().float()
    between: dict[str, Any] = {
        "bytes_ratio": b.table.size().total / a.table.size().total,
        "mean_cosine_of_rows": float(row_cosines(dense_a, dense_b).double().mean()),
        "rows_equal": float((dense_a == dense_b).all(dim=1).double().mean()),
        **_codes_changed(tiers(a.table), tiers(b.table), shape[0]),
    }
    if shape[0] > 2 * NEIGHBOURS:
        found = find_neighbours(dense_a, dense_b, torch.arange(min(ROWS, shape[0])))
        between["neighbours_lost"] = 1 - float(found.overlap().mean())
        between["neighbours_of_rows"] = len(found.rows)
    return {
        "a": _table_figures(str(one), a),
        "b": _table_figures(str(other), b),
        "between": between,
    }


def _subject(name: str | Path) -> TableSubject:
    place = Path(name).expanduser()
    if place.exists() and _is_compressed(place):
        return open_subject(place)[0]
    dense = original_table(name).float()
    full = FullTable(*dense.shape)
    full.load_state_dict({next(iter(full.state_dict())): dense})
    return TableSubject(str(name), full)


def _is_compressed(place: Path) -> bool:
    from smalti.hub.loading import read_json  # noqa: PLC0415  (transformers is an extra)

    if kind_at(place) == "table":
        return True
    own = read_json(place / "config.json").get("quantization_config")
    return isinstance(own, Mapping) and own.get("quant_method") == "smalti"


def _table_figures(name: str, subject: TableSubject) -> dict[str, Any]:
    table = subject.table
    size = table.size()
    scores = ("output_cosine", "score", "original_score", "drop_percent")
    return {
        "name": name,
        "rows": table.rows,
        "dim": table.dim,
        **{f"{part}_bytes": value for part, value in size.as_dict().items()},
        "times_smaller": FLOAT32 * table.rows * table.dim / size.total,
        "stored_as": [f"{len(tier.ids):,} rows as {tier.words}" for tier in tiers(table)],
        **{key: subject.figures[key] for key in scores if key in subject.figures},
    }


def _codes_changed(one: list[Tier], other: list[Tier], rows: int) -> dict[str, Any]:
    """The share of codes that differ, over rows that have as many codes in both."""
    same = changed = codes = 0
    for first in one:
        for second in other:
            if not first.code_sizes or first.code_sizes != second.code_sizes:
                continue
            shared = first.ids[torch.isin(first.ids, second.ids)]
            before = first.codes()[torch.searchsorted(first.ids, shared)]
            after = second.codes()[torch.searchsorted(second.ids, shared)]
            same += len(shared)
            changed += int((before != after).sum())
            codes += before.numel()
    return {
        "rows_coded_alike": same / rows,
        "codes_changed": changed / codes if codes else None,
    }


def _runs(one: Path, other: Path, data: str | None) -> dict[str, Any]:
    a, b = load_run(one), load_run(other)
    between: dict[str, Any] = {}
    try:
        images, part = read_unseen_images(a, data or a.config.data.source)
        between["images"] = f"{images.source}, {part}"
        pixels = images.pixels[:IMAGES]
    except DataError as error:
        if data is not None:
            raise
        between["images"] = f"none: {error}"
        pixels = None
    alike = a.autoencoder.code_sizes == b.autoencoder.code_sizes and a.size == b.size
    if pixels is not None and alike and has_codes(a.autoencoder):
        try:
            grids = encode_all(a.autoencoder, pixels), encode_all(b.autoencoder, pixels)
        except SmaltiError as error:
            raise ConfigError(f"{other} can't code the images of {one}: {error}") from error
        between["codes_changed"] = {
            a.autoencoder.level_name(level): _share(first, second)
            for level, (first, second) in enumerate(zip(*grids, strict=True))
        }
    else:
        between["codes_changed"] = None
    return {"a": _run_figures(one, a), "b": _run_figures(other, b), "between": between}


def _share(first: Tensor, second: Tensor) -> float | None:
    return float((first != second).double().mean()) if first.shape == second.shape else None


def _run_figures(path: Path, run: Any) -> dict[str, Any]:
    modules = {"autoencoder": run.autoencoder, **run.priors}
    return {
        "name": str(path),
        "autoencoder": run.autoencoder.spec()["autoencoder"],
        "parameters": {
            name: sum(p.numel() for p in module.parameters()) for name, module in modules.items()
        },
        "code_sizes": [list(sizes) for sizes in run.autoencoder.code_sizes],
        "bits_per_image": (
            run.autoencoder.bits_per_image(*run.size) if has_codes(run.autoencoder) else None
        ),
        **{
            f"{stage}, {what}": value
            for stage, figures in run.figures.items()
            for what, value in figures.items()
        },
    }


def _frontiers(one: Path, other: Path) -> dict[str, Any]:
    a, b = read_search(one), read_search(other)
    return {
        side: {
            "name": str(path),
            "model": content.get("model"),
            "tried": len(content["trials"]),
            "smallest_percent": min((t["percent"] for t in content["trials"]), default=None),
            "least_drop_percent": min((t["drop_percent"] for t in content["trials"]), default=None),
        }
        for side, path, content in (("a", one, a), ("b", other, b))
    } | {"between": {}}
