"""Which codebooks are compared, and what is refused."""

from __future__ import annotations

import pytest

from smalti.errors import ConfigError
from smalti.quantizers.adaptive import PAPER_POOL
from smalti.recipes.images.codebook_balance.arms import arms_of, pairs_of, require_pairs


def test_the_papers_capacity_gives_the_papers_pool() -> None:
    assert pairs_of(65_536) == PAPER_POOL


def test_widths_are_taken_as_they_are_named_and_put_in_order() -> None:
    assert pairs_of(96, [1, 6, 3]) == ((16, 6), (32, 3), (96, 1))


@pytest.mark.parametrize(
    ("capacity", "widths", "word"),
    [
        (1, None, "capacity"),
        (10**12, None, "capacity"),
        (7, None, "choose an even one"),
        (64, [3], "divide"),
        (64, [0, 2], "divide"),
        (64, [2], "two or more"),
        (64, [2, 2, 4], "different"),
        (64, [1, 64], "2 or more codewords"),
    ],
)
def test_widths_that_leave_nothing_to_compare_are_refused(
    capacity: int, widths: list[int] | None, word: str
) -> None:
    with pytest.raises(ConfigError, match=word):
        pairs_of(capacity, widths)


def test_pairs_of_different_capacities_are_refused_and_named() -> None:
    with pytest.raises(ConfigError, match=r"one capacity.*64, 128"):
        require_pairs([(64, 1), (64, 2)])


def test_controls_store_as_many_numbers_as_the_pool_in_one_codebook() -> None:
    arms = {arm.name: arm for arm in arms_of(PAPER_POOL, dim=128, steps=10, controls=True)}
    fixed = [arm for arm in arms.values() if arm.kind == "fixed"]
    assert [arm.codebook_floats for arm in fixed] == [65_536] * 8
    assert arms["adaptive"].codebook_floats == 8 * 65_536
    # By hand: 8 x 65,536 numbers are 65,536 codewords of width 8; the pool has 512 + ... +
    # 65,536 = 130,560 codewords, and 524,288 / 130,560 is nearest to 4.
    assert arms["control-65536x8"].codebook_floats == 8 * 65_536
    assert arms["control-130560x4"].pool == ((130_560, 4),)
    assert arms["control-random"].model["quantizer"]["selector"] == "random"
    assert arms["control-slab"].model["quantizer"]["selection"] == "slab"
    assert len(arms) == 8 + 1 + 4
