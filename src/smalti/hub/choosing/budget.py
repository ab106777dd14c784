"""Shares as people write them."""

from __future__ import annotations

from smalti.errors import ConfigError


def share(name: str, value: str | float, *, or_none: bool = False) -> float:
    """Percent of a share that is written as ``"4%"`` or as ``0.04``.

    Args:
        name: What it is a share of, for messages.
        value: As a person writes it.
        or_none: Whether zero is a share too.

    Example:
        >>> share("size", "4%"), share("size", 0.04)
        (4.0, 4.0)
    """
    try:
        percent = float(value[:-1]) if isinstance(value, str) and value.endswith("%") else None
        percent = 100 * float(value) if percent is None else percent
    except (TypeError, ValueError):
        percent = float("nan")
    if not (0 < percent <= 100 or (or_none and percent == 0)):
        raise ConfigError(
            f"{name} must be a share of at most 100% such as 4% or 0.04, got {value!r}"
        )
    return percent


def rows_or_share(value: str) -> float:
    """A number of rows (``"1000"``), or a share of rows (``"50%"``, ``"0.5"``, ``"1.0"``).

    Example:
        >>> rows_or_share("1000"), rows_or_share("50%")
        (1000, 0.5)
    """
    if value.isdecimal():
        return int(value)
    try:
        return share("keep", value) / 100
    except ConfigError:
        raise ConfigError(
            "keep must be a number of rows such as 1000, or a share of the rows that occur such "
            f"as 50%, got {value!r}"
        ) from None
