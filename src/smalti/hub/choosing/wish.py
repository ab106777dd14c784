"""What is asked for when a table is to be compressed, and what that means for a given table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from smalti.embeddings import Compressor, build_compressor, compressors
from smalti.embeddings.partial import KEPT
from smalti.errors import ConfigError, require
from smalti.hub.choosing.budget import share
from smalti.hub.choosing.candidates import Table, ordinary, sized, with_kept
from smalti.hub.choosing.searching import Search, Trial

# What a table may lose, in percent, when the user names neither a size nor a drop.
DEFAULT_DROP = 2.0


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    Args:
        method: A registered compressor, or None to choose one.
        settings: Its settings.
        keep: How many rows to keep: a share of the rows that occur, or a whole number.
        kept: How they are stored.
        percent: The most that the table may take, in percent of float32.
        max_drop: The most that may be lost, in percent.
        teach: Whether codewords learn from the model's outputs afterwards; None lets those of
            a method that was chosen here do so.
    """

    method: str | Compressor | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    keep: float | None = None
    kept: str | None = None
    percent: float | None = None
    max_drop: float | None = None
    teach: bool | None = None

    @property
    def named(self) -> bool:
        """Whether there is nothing to choose."""
        return self.method is not None or self.keep is not None

    def allows(self, table_bytes: int, dense_bytes: int, drop: float) -> bool:
        """Whether a table of that size, which loses so many percent, is what is asked for."""
        if self.percent is not None:
            return table_bytes <= self.percent / 100 * dense_bytes
        return self.named or drop <= self.largest_drop

    @property
    def largest_drop(self) -> float:
        """What may be lost, in percent, where no size is asked for."""
        return DEFAULT_DROP if self.max_drop is None else self.max_drop


def as_wish(
    size: str | float | None = None, max_drop: str | float | None = None, **others: Any
) -> Wish:
    """A wish with shares as people write them."""
    wish = Wish(
        percent=None if size is None else share("size", size),
        max_drop=None if max_drop is None else share("max_drop", max_drop, or_none=True),
        **others,
    )
    if wish.method != "partial" or wish.keep is None:
        return wish
    # Partial is the method that keeps rows; it is not wrapped in another one.
    own = {"keep": wish.keep, **({} if wish.kept is None else {"kept": wish.kept})}
    twice = sorted(own.keys() & wish.settings.keys())
    require(not twice, f"{' and '.join(twice)} of partial was given twice; leave out one")
    return replace(wish, keep=None, kept=None, settings={**wish.settings, **own})


def check_wish(wish: Wish) -> None:
    """Refuse wishes that contradict each other before anything is opened."""
    require(
        wish.percent is None or wish.max_drop is None,
        "give a size or a largest drop, not both",
    )
    require(not wish.settings or wish.method is not None, "settings need a method")
    require(
        not wish.named or wish.max_drop is None,
        "a largest drop is for choosing a table; give it without a method and without rows to "
        "keep, or give a size instead",
    )
    require(
        wish.kept is None or wish.keep is not None,
        "kept says how kept rows are stored: say also how many, with keep",
    )
    ways = [*KEPT, *compressors.names()]
    require(
        not isinstance(wish.kept, str) or wish.kept in ways,
        f"kept rows can't be stored as {wish.kept!r}; the known ways are: {', '.join(ways)}",
    )
    # A wrong name or setting is found before a model is opened.
    if isinstance(wish.method, str):
        compressors.get(wish.method)
    complete = isinstance(wish.method, str) and (wish.percent is None or wish.settings)
    with_kept(_built(wish) if complete else build_compressor("product"), wish.keep, wish.kept)


def named_compressor(table: Table, wish: Wish) -> Compressor:
    """The compressor that a wish names, of the largest size where only a size is given."""
    if wish.percent is None:
        method = _built(wish) if wish.method is not None else ordinary(table.dim)
        return with_kept(method, wish.keep, wish.kept)
    budget = wish.percent / 100 * table.dense_bytes
    if wish.settings or isinstance(wish.method, Compressor):
        chosen = with_kept(_built(wish), wish.keep, wish.kept)
        found = [chosen] if table.expected_bytes(chosen) <= budget else []
    else:
        found = sized(table, wish.method or "product", budget, wish.keep, wish.kept)
    if not found:
        raise ConfigError(
            f"{wish.method or 'product'} does not fit into {wish.percent:g} % of "
            f"{table.dense_bytes:,} bytes with these settings; allow a larger size"
        )
    return found[0]


def searched(search: Search, wish: Wish, *, every_method: bool = False) -> Trial:
    """The trial that a search finds for a wish."""
    if wish.percent is not None:
        return search.within(wish.percent, every_method=every_method)
    return search.losing(wish.largest_drop, every_method=every_method)


def _built(wish: Wish) -> Compressor:
    assert wish.method is not None  # asked for only where there is one
    return build_compressor(wish.method, **wish.settings)
