"""Table 2 of the paper on depthwise quantization: features cut along channels, or along rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.figures import ByArm
from smalti.experiments.table import Arm, Table, declare
from smalti.experiments.tables.depthwise_quantizers import PAPER
from smalti.experiments.tables.fixed_features import (
    FEATURES_IN_USE,
    PLACE_BITS,
    RELATIVE_ERROR,
    RESNET_20,
    untrained,
)
from smalti.experiments.tables.small_images import ENTROPY, SHARED

# The paper's entropies in nats.
REPORTED = {
    ("channel", 32): 2.53,
    ("pixel", 32): 1.98,
    ("channel", 1024): 3.99,
    ("pixel", 1024): 3.64,
}


@dataclass(frozen=True)
class _Network:
    """Whose features are fitted.

    Args:
        title: In words.
        base: Settings.
        rows: Of its map: as many codebooks there are.
        seeds: How many on a laptop.
        minutes: Of an arm.
    """

    title: str
    base: dict[str, Any]
    rows: int
    seeds: int
    minutes: float


NETWORKS = {
    "resnet20": _Network("ResNet-20 on CIFAR-10", RESNET_20, 8, 5, 0.1),
    "resnet56": _Network(
        "ResNet-56 on CIFAR-10", {**RESNET_20, "features.network": "resnet56"}, 8, 3, 0.1
    ),
    "efficientnet": _Network(
        "EfficientNet-lite0 on Tiny-ImageNet enlarged to 224 x 224",
        {
            "features.network": "efficientnet_lite0",
            "features.source": "tiny_imagenet",
            "features.size": 224,
            "features.train": 1000,
            "features.test": 500,
            "steps": 300,
            "batch_size": 32,
        },
        7,
        3,
        6,
    ),
}


def _arm(axis: str, codebooks: int, size: int) -> Arm:
    quantizer = {
        "quantizer": "depthwise",
        "axis": axis,
        "num_codebooks": codebooks,
        "codebook_size": size,
    }
    reported = {"entropy_bits": REPORTED[axis, size] / math.log(2)}
    return Arm(f"{axis} {size}", {"quantizer": quantizer}, reported)


for _name, _network in NETWORKS.items():
    declare(
        Table(
            name=f"depthwise-features-{_name}",
            paper=PAPER,
            where="Table 2",
            title=f"Codebooks by segment of the channels, or by row: {_network.title}",
            kind="features",
            base=_network.base,
            scales={"tiny": untrained(_network.rows)},
            seeds={"laptop": _network.seeds, "paper": 10},
            minutes={"tiny": 0.02, "laptop": _network.minutes, "paper": _network.minutes},
            arms=tuple(_arm(axis, _network.rows, size) for axis, size in REPORTED),
            metrics=(RELATIVE_ERROR, ENTROPY, SHARED, FEATURES_IN_USE, PLACE_BITS),
            drawn=(ByArm("relative_error"),) if _name == "resnet20" else (),
            unit="features of VGG-16; errors of 0.184 and 0.192 with 32 codewords by segment and "
            "by row, of 0.480 and 0.523 with 1,024, unscaled; entropies without a unit, taken for "
            "nats and written in bits here",
            claims=(
                Claim(
                    f"Codebooks by segment have a lower error than codebooks by row ({_name}).",
                    (
                        Less("relative_error", "channel 32", "pixel 32"),
                        Less("relative_error", "channel 1024", "pixel 1024"),
                    ),
                    why="Both cut the same vectors and have the same rate; only which codebook "
                    "serves a vector differs.",
                ),
                Claim(
                    f"Codes by segment have a higher entropy than codes by row ({_name}).",
                    (
                        Less("entropy_bits", "pixel 32", "channel 32"),
                        Less("entropy_bits", "pixel 1024", "channel 1024"),
                    ),
                    why="The mean over places and segments, corrected for the size of the sample.",
                ),
                Claim(
                    f"The error is larger with 1,024 codewords than with 32 ({_name}).",
                    (
                        Less("relative_error", "channel 32", "channel 1024"),
                        Less("relative_error", "pixel 32", "pixel 1024"),
                    ),
                    why="As the paper's table has it. More codewords can't raise the least "
                    "error; the published rule for rare codewords, which puts them elsewhere at "
                    "every step, can.",
                ),
            ),
        )
    )
