"""Settings checked one by one: each is returned as plain Python, or refused with its name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from smalti.errors import ConfigError


def count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number of at least ``least`` and at most ``most``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        to = f" to {most}" if most is not None else " on"
        raise ConfigError(f"{name} must be a whole number from {least}{to}, got {value!r}")
    return int(value)


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number within the given bounds."""
    bounds = {">=": least, "<=": most, ">": above, "<": below}
    wanted = " and ".join(f"{sign} {bound}" for sign, bound in bounds.items() if bound is not None)
    real = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    fits = real and (
        (least is None or value >= least)
        and (most is None or value <= most)
        and (above is None or value > above)
        and (below is None or value < below)
    )
    if not fits:
        raise ConfigError(f"{name} must be a number {wanted}, got {value!r}")
    return float(value)


def word(name: str, value: Any, options: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in options:
        raise ConfigError(f"expected {name} to be one of {', '.join(options)}, got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, got {value!r}")
    return value
