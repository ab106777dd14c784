"""What is compared: codebooks of one capacity alone, a pool that is chosen from, and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smalti.errors import ConfigError, require

Pair = tuple[int, int]
"""Codebook size and width; N and D in the paper."""
# The widest of the paper's pool.
WIDEST = 128
# Numbers of one codebook; a pool of them, its averages and its optimizer take many times that.
MOST_CAPACITY = 1 << 26


@dataclass(frozen=True)
class Arm:
    """One way to spend the capacity.

    Args:
        name: Of its part of the study's directory.
        kind: One codebook, the pool, or a control that tells where a difference comes from.
        pool: The codebooks that it stores.
        model: Settings of the autoencoder that are its own.
    """

    name: str
    kind: Literal["fixed", "adaptive", "control"]
    pool: tuple[Pair, ...]
    model: dict[str, Any]

    @property
    def codebook_floats(self) -> int:
        """How many numbers its codebooks store."""
        return sum(size * width for size, width in self.pool)


def pairs_of(capacity: int, widths: Sequence[int] | None = None) -> tuple[Pair, ...]:
    """Pairs whose product is ``capacity``, from wide to narrow.

    Args:
        capacity: Codebook size times width.
        widths: Which widths; None for the powers of two up to the paper's 128 that leave at
            least as many codewords as a codeword has numbers.

    Example:
        >>> pairs_of(256)
        ((16, 16), (32, 8), (64, 4), (128, 2), (256, 1))
    """
    require(
        2 <= capacity <= MOST_CAPACITY,
        f"expected a capacity from 2 to {MOST_CAPACITY}, got {capacity}",
    )
    if widths is None:
        powers = [2**power for power in range(WIDEST.bit_length())]
        fitting = [w for w in powers if capacity % w == 0 and capacity // w >= max(w, 2)]
        require(
            len(fitting) > 1,
            f"a capacity of {capacity} is not shared by two widths of 1, 2, 4 and so on: choose "
            "an even one of 4 or more, or name widths that divide it",
        )
        return require_pairs([(capacity // width, width) for width in fitting])
    wrong = [width for width in widths if width < 1 or capacity % width]
    require(
        not wrong,
        f"expected widths that divide the capacity {capacity}, got {', '.join(map(str, wrong))}",
    )
    return require_pairs([(capacity // width, width) for width in widths])


def require_pairs(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Pairs that can be compared, from wide to narrow: two or more, different, of one capacity."""
    bad = [f"{size}x{width}" for size, width in pairs if size < 2 or width < 1]
    require(not bad, f"expected codebooks of 2 or more codewords of width 1 or more, got {bad[:1]}")
    capacities = sorted({size * width for size, width in pairs})
    require(
        len(capacities) <= 1,
        "expected pairs of one capacity, codebook size times width, got pairs of "
        f"{', '.join(map(str, capacities))}",
    )
    if len(set(pairs)) < 2 or len(set(pairs)) < len(pairs):
        got = ", ".join(f"{size}x{width}" for size, width in pairs) or "none"
        raise ConfigError(f"expected two or more different pairs to choose from, got {got}")
    require(
        capacities[0] <= MOST_CAPACITY,
        f"expected a capacity of at most {MOST_CAPACITY}, got {capacities[0]}",
    )
    return tuple(sorted(pairs))


def arms_of(pairs: Sequence[Pair], dim: int, steps: int, controls: bool) -> list[Arm]:
    """All that is trained for a study, the controls last.

    Args:
        pairs: Codebook sizes and widths, of one capacity.
        dim: Width of the vectors that the pool is given.
        steps: Of training, over which the pool's temperature falls.
        controls: Whether to train what tells where a difference comes from.
    """
    pool = tuple(pairs)
    arms = [_fixed(f"{size}x{width}", "fixed", (size, width)) for size, width in pool]
    arms.append(_adaptive("adaptive", "adaptive", pool, dim, steps))
    if controls:
        floats = sum(size * width for size, width in pool)
        largest, union = max(size for size, _ in pool), sum(size for size, _ in pool)
        # The pool stores many codebooks. One codebook that stores as many numbers: with the
        # rate of its largest, and with all its codewords.
        for size in (largest, union):
            pair = (size, max(1, round(floats / size)))
            arms.append(_fixed(f"control-{pair[0]}x{pair[1]}", "control", pair))
        for name, settings in (("random", {"selector": "random"}), ("slab", {"selection": "slab"})):
            arms.append(_adaptive(f"control-{name}", "control", pool, dim, steps, **settings))
    return arms


def _fixed(name: str, kind: Literal["fixed", "control"], pair: Pair) -> Arm:
    quantizer = {"quantizer": "vector", "codebook_size": pair[0]}
    return Arm(name, kind, (pair,), {"dim": pair[1], "quantizer": quantizer})


def _adaptive(
    name: str,
    kind: Literal["adaptive", "control"],
    pool: tuple[Pair, ...],
    dim: int,
    steps: int,
    **settings: str,
) -> Arm:
    listed = [list(pair) for pair in pool]
    quantizer = {"quantizer": "adaptive", "pool": listed, "anneal_steps": steps, **settings}
    return Arm(name, kind, pool, {"dim": dim, "quantizer": quantizer})
