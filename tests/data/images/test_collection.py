"""Images hold exact integers of one size, and are split without loss."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch

from smalti.data.images import Images, split
from smalti.errors import ConfigError, DataError, ShapeError, SmaltiError


def counted(count: int) -> Images:
    """Images whose pixels and labels are their own number."""
    numbers = torch.arange(count)
    pixels = numbers.to(torch.uint8)[:, None, None, None].expand(-1, 3, 2, 4).contiguous()
    return Images(pixels, labels=numbers, source="numbers")


def test_images_know_their_number_and_shape() -> None:
    images = counted(7)
    assert len(images) == 7
    assert images.shape == (3, 2, 4)
    assert images.bits == 8


@pytest.mark.parametrize("places", [[4, 0, 4], torch.tensor([4, 0, 4])])
def test_chosen_images_come_in_the_order_asked_for_with_their_labels(places: Any) -> None:
    chosen = counted(5).select(places)
    assert chosen.pixels[:, 0, 0, 0].tolist() == [4, 0, 4]
    assert chosen.labels is not None
    assert chosen.labels.tolist() == [4, 0, 4]
    assert chosen.source == "numbers"


def test_none_can_be_chosen() -> None:
    assert len(counted(5).select([])) == 0


@pytest.mark.parametrize("places", [[5], [-1], [0.5], [[0]]])
def test_places_that_are_not_there_are_refused(places: Any) -> None:
    with pytest.raises((DataError, ShapeError), match="places"):
        counted(5).select(places)


def test_the_fingerprint_is_the_hash_of_shape_and_pixels() -> None:
    pixels = torch.arange(24, dtype=torch.uint8).view(2, 3, 2, 2)
    expected = hashlib.sha256(b"(2, 3, 2, 2)" + bytes(range(24))).hexdigest()
    assert Images(pixels).fingerprint() == expected
    assert Images(pixels, labels=torch.tensor([1, 2])).fingerprint() == expected
    turned = pixels.transpose(2, 3)
    by_hand = turned.contiguous().numpy().tobytes()
    assert Images(turned).fingerprint() == hashlib.sha256(b"(2, 3, 2, 2)" + by_hand).hexdigest()
    assert Images(pixels.view(2, 3, 4, 1)).fingerprint() != expected
    deep = torch.tensor([[[[1, 65535]]]], dtype=torch.int32)
    # By hand: four bytes a pixel, the low one first.
    content = b"(1, 1, 1, 2)\x01\0\0\0\xff\xff\0\0"
    assert Images(deep, bits=16).fingerprint() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pixels": torch.zeros(2, 3, 4, dtype=torch.uint8)}, "expected pixels"),
        ({"pixels": torch.zeros(2, 3, 4, 4)}, r"torch\.uint8 for 8 bits"),
        ({"pixels": torch.zeros(2, 3, 4, 4, dtype=torch.int32)}, r"torch\.uint8 for 8 bits"),
        ({"bits": 12}, r"torch\.int32 for 12 bits"),
        ({"bits": 0}, "bits must be"),
        ({"bits": 17}, "bits must be"),
        ({"bits": 2, "pixels": torch.full((1, 1, 1, 1), 4, dtype=torch.uint8)}, "got 4 to 4"),
        (
            {"bits": 9, "pixels": torch.full((1, 1, 1, 1), -1, dtype=torch.int32)},
            "expected pixels of 9 bits, 0 to 511, got -1 to -1 in here",
        ),
        ({"labels": torch.tensor([1])}, "a label of int64 for each of 2 images"),
        ({"labels": torch.tensor([1.0, 2.0])}, "a label of int64"),
    ],
)
def test_what_is_no_image_is_refused(settings: dict[str, Any], message: str) -> None:
    good = {"pixels": torch.zeros(2, 3, 4, 4, dtype=torch.uint8), "source": "here"}
    with pytest.raises(SmaltiError, match=message):
        Images(**{**good, **settings})


def test_a_split_shares_out_all_images_in_their_order() -> None:
    train, valid = split(counted(50), 0.2, seed=3)
    assert (len(train), len(valid)) == (40, 10)
    assert train.labels is not None
    assert valid.labels is not None
    first, second = train.labels.tolist(), valid.labels.tolist()
    assert sorted(first + second) == list(range(50))
    assert first == sorted(first)
    assert second == sorted(second)
    assert train.pixels[:, 0, 0, 0].tolist() == first


def test_a_split_is_the_same_for_the_same_seed_only() -> None:
    images = counted(50)
    before = torch.get_rng_state()
    parts = [split(images, 0.2, seed)[1].fingerprint() for seed in (1, 1, 2)]
    assert parts[0] == parts[1] != parts[2]
    assert torch.equal(torch.get_rng_state(), before)


def test_both_parts_of_a_split_have_an_image() -> None:
    assert [len(part) for part in split(counted(3), 0.01, 0)] == [2, 1]
    assert [len(part) for part in split(counted(3), 0.99, 0)] == [1, 2]


@pytest.mark.parametrize(("count", "share"), [(5, 0.0), (5, 1.0), (1, 0.5), (0, 0.5)])
def test_a_split_with_nothing_on_one_side_is_refused(count: int, share: float) -> None:
    with pytest.raises(ConfigError, match=r"valid_share|at least two"):
        split(counted(count), share, 0)
