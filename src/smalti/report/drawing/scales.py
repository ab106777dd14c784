"""Numbers become places on an axis, and words beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps numbers from ``low`` to ``high`` onto places from ``start`` to ``end``.

    Args:
        low: The number at the start.
        high: The number at the end; more than ``low``.
        start: A place in a drawing.
        end: Another.
        log: Whether equal factors are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a number."""
        low, high, value = (self._straight(each) for each in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers along the axis."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            factors = (1, 2, 5) if last - first <= 3 else (1,)
            every = [f * 10.0**power for power in range(first, last + 1) for f in factors]
            inside = [tick for tick in every if self.low <= tick * 1.0001 <= self.high * 1.001]
            return inside[:: max(1, len(inside) // (2 * about))]
        step = _round_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [round((first + number) * step, 12) for number in range(count)]

    def _straight(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value


def fitted(
    values: Sequence[float], start: float, end: float, *, log: bool = False, zero: bool = False
) -> Scale:
    """A scale with room for all values.

    Args:
        values: What must fit.
        start: Place of the smallest.
        end: Place of the largest.
        log: Whether it counts factors.
        zero: Whether it must begin at zero.
    """
    known = [value for value in values if math.isfinite(value) and (not log or value > 0)] or [1.0]
    low, high = min(known), max(known)
    if log:
        wide = max(high / low, 1.5) ** 0.04
        return Scale(low / wide, high * wide, start, end, log=True)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    if low == high:
        high = low + (abs(low) or 1.0)
    room = 0.05 * (high - low)
    return Scale(low if zero and low == 0 else low - room, high + room, start, end)


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)


def shown(value: float | int | str | None) -> str:
    """A number for people: whole ones in full, others with four digits that count.

    Example:
        >>> [shown(value) for value in (46881792, 0.123456, 12.0, 1e-7, None, "word")]
        ['46,881,792', '0.1235', '12', '1e-07', '', 'word']
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:.4g}"


def short(value: float) -> str:
    """A number beside an axis.

    Example:
        >>> [short(value) for value in (1500000, 20000, 0.25, 1e-05)]
        ['1.5M', '20k', '0.25', '1e-05']
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):g}{unit}"
    return f"{value:g}"
