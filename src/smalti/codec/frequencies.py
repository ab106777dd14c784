"""Probabilities as whole numbers that add up to a power of two: what an entropy coder counts in.

Only single multiplications, rounding down and sums of whole numbers are used. The same
probabilities give the same counts on every machine, in every batch.
"""

from __future__ import annotations

import numpy as np

from smalti.errors import ConfigError, DataError, require

# The resolution of the coder: its counts add up to this power of two.
PRECISION = 24
TOTAL = 1 << PRECISION
# So that the likeliest symbol can always give or take what rounding leaves.
MOST_SYMBOLS = 1 << 18
# How far probabilities may be from adding up to 1, rounding aside.
TOLERANCE = 1e-6


def frequencies(probabilities: np.ndarray) -> np.ndarray:
    """Counts ``(n, symbols)`` that add up to ``TOTAL`` in each row; none is zero.

    Each symbol gets one, and its share of the others rounded down. What is left goes to the
    likeliest symbol, the first of equal ones.

    Args:
        probabilities: ``(n, symbols)`` in float64, each row adds up to 1.

    Example:
        >>> frequencies(np.array([[0.5, 0.5, 0.0]])).tolist()
        [[8388608, 8388607, 1]]
    """
    require(
        probabilities.ndim == 2 and 2 <= probabilities.shape[1] <= MOST_SYMBOLS,
        f"expected probabilities (n, symbols) of 2 to {MOST_SYMBOLS} symbols, got "
        f"{probabilities.shape}",
        ConfigError,
    )
    symbols = probabilities.shape[1]
    free = TOTAL - symbols
    shares = np.floor(probabilities.astype(np.float64, copy=False) * float(free))
    # Whole numbers below 2^53: the sum is exact in any order.
    left = free - shares.sum(axis=1)
    slack = TOLERANCE * free
    # Comparisons with NaN are false.
    require(
        bool((shares >= 0).all()) and bool(((left >= -slack) & (left <= symbols + slack)).all()),
        "expected probabilities of at least 0 that add up to 1, got others: the model's numbers "
        "are not finite, or too large",
        DataError,
    )
    counts = shares.astype(np.int32) + 1
    counts[np.arange(len(counts)), shares.argmax(axis=1)] += left.astype(np.int32)
    return counts
