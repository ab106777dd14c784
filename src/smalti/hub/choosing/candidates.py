"""Compressors worth trying for a budget: plain ones of every method, and tiers by frequency.

Tiers come from measured distortion: each way of storing rows is fitted once to a sample of
them, and the best split of the table follows from how often rows are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from smalti.embeddings import Compressor, Turned, build_compressor
from smalti.embeddings.allocation import Allocation, Storage, allocate
from smalti.embeddings.turned import turn_size
from smalti.embeddings.weighting import UNSEEN
from smalti.errors import SmaltiError, require

CODEWORDS = 256
# Shares of the rows that occur, for methods that keep some.
SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05)
# Codebooks of compositional codes: with more of them learning takes many minutes.
COMPOSITIONAL = (64, 32, 16, 8)
# Rows that distortions are measured on: half to learn from, half to measure.
SAMPLE = 8192
# How the use of a row becomes its importance. A rare word says more than a common one, so
# importance rises more slowly than use; and the next text will have words that this one has
# not, more of them than texts held out from this one.
POWERS = (0.35, 0.5)
# On axes where errors cost alike a coarse tier loses less that matters, and use may say more.
TURNED_POWERS = (0.5, 0.7, 0.85)
# The bits that tell a tier's rows apart, and then some.
TIER_BYTES_PER_ROW = 0.26


@dataclass
class Table:
    """A model's table and what is known of the use of its rows.

    Args:
        vectors: ``(rows, dim)`` float32.
        counts: ``(rows,)`` how often each row is used.
        special: Rows that must survive.
        unknown: The row of the unknown token, if there is one.
        measure: Finds out what errors of rows cost the model; None where all count alike.
    """

    vectors: Tensor
    counts: Tensor
    special: tuple[int, ...] = ()
    unknown: int | None = None
    measure: Callable[[], Tensor] | None = None
    _storages: list[tuple[Storage, dict[str, Any]]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many vectors."""
        return self.vectors.shape[0]

    @property
    def dim(self) -> int:
        """Width of a vector."""
        return self.vectors.shape[1]

    @property
    def dense_bytes(self) -> int:
        """The bytes of the table as float32."""
        return 4 * self.vectors.numel()

    def expected_bytes(self, compressor: Compressor) -> int:
        """The bytes that a compressor will need here."""
        return compressor.expected_size(
            self.rows, self.dim, counts=self.counts, special=self.special
        ).total

    def bytes_of(self, compressor: Compressor) -> int | None:
        """The bytes that a compressor would need here; None where it can't be used."""
        try:
            return self.expected_bytes(compressor)
        except SmaltiError:
            return None

    @cached_property
    def metric(self) -> Tensor | None:
        """What errors of rows cost; measured when it is first asked for."""
        return None if self.measure is None else self.measure()

    @cached_property
    def turned(self) -> Table:
        """The rows as ``turned`` codes them, where squared error is what errors cost."""
        turn = Turned().turn(self.vectors, self.counts, self.metric)
        return Table(self.vectors @ turn.there, self.counts, self.special, self.unknown)

    def fit(self, compressor: Compressor, seed: int) -> Any:
        """The table that a compressor makes."""
        return compressor.fit(
            self.vectors,
            counts=self.counts,
            metric=self.metric if compressor.heeds_metric else None,
            special=self.special,
            generator=torch.Generator().manual_seed(seed),
        )

    def storages(self, seed: int = 0) -> list[tuple[Storage, dict[str, Any]]]:
        """Ways to store a tier of rows, with measured distortion; measured once."""
        if not self._storages:
            self._storages = _measured(self, seed)
        return self._storages


def plain_candidates(table: Table, budget: float) -> list[Compressor]:
    """The largest member of each method that fits into ``budget`` bytes."""
    found = []
    for family in _families(table):
        fitting = _largest(table, family, budget)
        if fitting is not None:
            found.append(fitting)
    return found


def sized(
    table: Table, method: str, budget: float, keep: float | None, kept: str | None
) -> list[Compressor]:
    """The largest member of one method that fits, with ``keep`` rows kept beside it."""
    members = [
        spec
        for family in _families(table)
        for spec in family
        if spec["compressor"] == method and (keep is None or method != "partial")
    ]
    if method in {"sparse", "unknown"}:
        # By themselves these keep all rows that occur; their size follows from what is kept.
        shares = [keep] if keep is not None else list(SHARES)
        rest = {"compressor": method, **({"row": table.unknown} if method == "unknown" else {})}
        members = [partial(some, kept or "float32", rest) for some in shares]
        keep = None
    require(
        len(members) > 0,
        f"{method} can't be sized by a budget; give its settings",
    )
    specs = [with_kept(build_compressor(spec), keep, kept).spec() for spec in members]
    fitting = _largest(table, specs, budget)
    return [] if fitting is None else [fitting]


def with_kept(method: Compressor, keep: float | None, kept: str | None) -> Compressor:
    """A method for the rows that are left when ``keep`` rows are kept."""
    if keep is None:
        return method
    return build_compressor("partial", keep=keep, kept=kept or "float32", rest=method)


def ordinary(dim: int) -> Compressor:
    """Product codes of about a byte for eight numbers, for rows of any width."""
    parts = min(widths(dim), key=lambda parts: abs(parts - dim / 8), default=1)
    return build_compressor(product(parts))


def _largest(table: Table, family: Sequence[dict[str, Any]], budget: float) -> Compressor | None:
    """The first of a family, sorted from large to small, that fits."""
    for spec in family:
        compressor = build_compressor(spec)
        size = table.bytes_of(compressor)
        if size is not None and size <= budget:
            return compressor
    return None


def _families(table: Table) -> list[list[dict[str, Any]]]:
    """Members of each method, from large to small."""
    sparse = {"compressor": "sparse"}
    half = {"compressor": "sparse", "precision": "float16"}
    unknown = {"compressor": "unknown", "row": table.unknown}
    stages = (12, 8, 6, 4, 3, 2)
    parts = widths(table.dim)[::-1]
    learned = [[_learned(choice, some) for some in parts] for choice in ("softmax", "centroid")]
    return [
        [product(some) for some in parts],
        [{"compressor": "turned", "rest": product(some)} for some in parts],
        [{"compressor": "integer", "bits": bits} for bits in (8, 6, 5, 4, 3, 2)],
        [{"compressor": "low_rank", "rank": rank} for rank in _ranks(table.dim)],
        [{"compressor": "residual", "num_codebooks": some, "precision": "int8"} for some in stages],
        [{"compressor": "compositional", "num_codebooks": some} for some in COMPOSITIONAL],
        *learned,
        [partial(some, kept, half) for some in SHARES for kept in ("float16", "int8")],
        [partial(some, "float32", sparse) for some in SHARES],
        [partial(some, "float32", unknown) for some in SHARES],
    ]


def turned_candidates(table: Table, budget: float, seed: int = 0) -> list[Compressor]:
    """Tiers on axes where errors cost alike; none where nobody knows what they cost."""
    if table.measure is None:
        return []
    tiers = tiered_candidates(
        table.turned, budget - turn_size(table.dim).total, seed, TURNED_POWERS
    )
    return [build_compressor("turned", rest=rest) for rest in tiers]


def tiered_candidates(
    table: Table, budget: float, seed: int = 0, powers: Sequence[float] = POWERS
) -> list[Compressor]:
    """Tiers by frequency that use up ``budget`` bytes, for some ideas of importance."""
    measured = table.storages(seed)
    specs = {storage.name: spec for storage, spec in measured}
    storages = [storage for storage, _ in measured]
    found: dict[str, Compressor] = {}
    for power in powers:
        importance = (table.counts.double() + UNSEEN) ** power
        importance[list(table.special)] = importance.max()
        for tiers in (2, 3):
            split = allocate(importance, storages, budget, tiers)
            if split is not None and len(split.tiers) > 1:
                compressor = _nested(split, specs, power)
                found.setdefault(repr(compressor), compressor)
    return [c for c in found.values() if (table.bytes_of(c) or budget + 1) <= budget]


def product(parts: int, power: float = 0.6) -> dict[str, Any]:
    """Product codes of one byte a part."""
    return {
        "compressor": "product",
        "num_codebooks": parts,
        "codebook_size": CODEWORDS,
        "precision": "int8",
        "power": power,
    }


def _learned(choice: str, parts: int) -> dict[str, Any]:
    """Differentiable product codes."""
    return {"compressor": "differentiable", "choice": choice, "num_codebooks": parts}


def partial(keep: float, kept: Any, rest: Any) -> dict[str, Any]:
    """Some rows kept, the rest coded."""
    return {"compressor": "partial", "keep": keep, "kept": kept, "rest": rest}


def widths(dim: int) -> list[int]:
    """How many parts a row of that width may be cut into, coarse to fine."""
    return [parts for parts in range(4, dim // 2 + 1) if dim % parts == 0]


def _ranks(dim: int) -> list[int]:
    return sorted({max(1, dim * share // 100) for share in (2, 4, 6, 10, 16, 25, 40, 60)})[::-1]


def _nested(split: Allocation, specs: dict[str, dict[str, Any]], power: float) -> Compressor:
    """Tiers as a compressor: the first against all others, and so on."""
    spec = {**specs[split.tiers[-1][0].name]}
    for storage, rows in reversed(split.tiers[:-1]):
        spec = partial(rows, {**specs[storage.name]}, spec)
    return build_compressor(_with_power(spec, power))


def _with_power(spec: dict[str, Any], power: float) -> dict[str, Any]:
    made = {
        key: _with_power(value, power) if isinstance(value, dict) else value
        for key, value in spec.items()
    }
    return {**made, "power": power} if "power" in made else made


def _measured(table: Table, seed: int) -> list[tuple[Storage, dict[str, Any]]]:
    specs: Sequence[dict[str, Any]] = [
        *(product(parts) for parts in widths(table.dim)),
        *({"compressor": "integer", "bits": bits} for bits in (8, 6, 4)),
    ]
    generator = torch.Generator().manual_seed(seed)
    weights = (table.counts.float() + UNSEEN).sqrt()
    rows = min(SAMPLE, table.rows)
    chosen = torch.multinomial(weights, rows, generator=generator)
    learn, test = chosen[: rows // 2], chosen[rows // 2 :]
    found = []
    for spec in specs:
        quick = {**spec, "iterations": 6} if "power" in spec else spec
        made = build_compressor(quick).fit(
            table.vectors[torch.cat([learn, test])],
            counts=torch.cat([torch.ones(len(learn)), torch.zeros(len(test))]),
            generator=generator,
        )
        decoded = made.dense()[len(learn) :]
        distortion = float((decoded - table.vectors[test]).square().sum(-1).mean())
        one, two = (build_compressor(spec).expected_size(n, table.dim).total for n in (1024, 2048))
        row_bytes = (two - one) / 1024
        fixed = one - 1024 * row_bytes + TIER_BYTES_PER_ROW * table.rows
        name = f"{spec['compressor']}-{spec.get('num_codebooks', spec.get('bits'))}"
        found.append((Storage(name, row_bytes, fixed, distortion), spec))
    return found
