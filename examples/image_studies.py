"""Studies of image models on CIFAR-10: what a choice of quantizer costs and brings, over seeds.

    python examples/image_studies.py depthwise -o runs/studies
    python examples/image_studies.py depthwise-error -o runs/studies
    python examples/image_studies.py em -o runs/studies

Every arm is a shipped config with a few settings changed. Arms that are finished are not run
again, and one that was killed goes on from its checkpoint. Each arm and seed leaves a JSON file
beside its run; the table shows means and, in brackets, the spread (standard deviation) over seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from smalti.recipes.images import (
    AutoencoderConfig,
    evaluate_run,
    load_run,
    read_unseen_images,
    train_run,
)
from smalti.training import read_settings

CONFIGS = Path(__file__).parent.parent / "configs"


@dataclass(frozen=True)
class Study:
    """One config and the arms that differ from it.

    Args:
        config: The file.
        changes: For all arms, as ``--set`` takes them.
        arms: By name, what differs.
    """

    config: str
    changes: tuple[str, ...] = ()
    arms: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _quantizer(text: str) -> str:
    return f"model.quantizer={{{text}}}"


# 30 bits a place: five codebooks of 64, or four times as many places of 7.5 bits.
FIVE = {
    "depthwise 5 x 64": (),
    "repeated 5 x 64": (_quantizer("quantizer: repeated, num_codebooks: 5, codebook_size: 64"),),
    "plain VQ 64": (_quantizer("quantizer: vector, codebook_size: 64"),),
    "plain VQ 8,192": (_quantizer("quantizer: vector, codebook_size: 8192"),),
    "plain VQ 181, 16 x 16": (
        _quantizer("quantizer: vector, codebook_size: 181"),
        "model.halvings=1",
    ),
    "residual 5 x 64": (_quantizer("quantizer: residual, num_codebooks: 5, codebook_size: 64"),),
}
# The start of the published implementation: no counts, random codewords, nothing revived.
REFERENCE = (
    "learning: {kind: ema, decay: 0.999, statistics: tensor2tensor}, start: random, dead: keep"
)
OURS = "decay: 0.999"
HARD, SOFT = "quantizer: vector", "quantizer: soft_em, samples: 10, temperature: scaled"


def _em(kind: str, learning: str) -> str:
    return _quantizer(f"{kind}, codebook_size: 512, {learning}")


STUDIES = {
    "depthwise": Study("depthwise-cifar10.yaml", arms=FIVE),
    "depthwise-error": Study(
        "depthwise-cifar10.yaml",
        ("model.likelihood=square_error", "prior=null"),
        {name: FIVE[name] for name in list(FIVE)[:3]},
    ),
    # One codebook and its 64 codes an image: what is compared is how they are learned.
    "em": Study(
        "depthwise-cifar10.yaml",
        ("model.dim=32",),
        {
            "soft EM": (_em(SOFT, OURS), "prior.labels=assignments"),
            "hard EM": (_em(HARD, OURS),),
            "soft EM, reference start": (_em(SOFT, REFERENCE), "prior.labels=assignments"),
            "hard EM, reference start": (_em(HARD, REFERENCE),),
        },
    ),
    "one-codebook": Study(
        "depthwise-cifar10.yaml",
        ("model.likelihood=square_error", "prior=null"),
        {
            "vector": (_quantizer("quantizer: vector, codebook_size: 64"),),
            "depthwise 1": (
                _quantizer("quantizer: depthwise, num_codebooks: 1, codebook_size: 64"),
            ),
            "residual 1": (_quantizer("quantizer: residual, num_codebooks: 1, codebook_size: 64"),),
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arm", choices=sorted({n for s in STUDIES.values() for n in s.arms}))
    parser.add_argument("--set", action="append", default=[], help="for all arms")
    chosen = parser.parse_args()
    study, found = STUDIES[chosen.study], {}
    for seed in range(chosen.seeds):
        for name, changes in study.arms.items():
            if chosen.arm in (None, name):
                everything = (*study.changes, *changes, *chosen.set)
                config = read_settings(AutoencoderConfig, CONFIGS / study.config, everything)
                place = chosen.output / chosen.study / name.replace(" ", "-") / f"seed-{seed}"
                found.setdefault(name, []).append(_figures(config.with_seed(seed), place))
                _show(found)


def _figures(config: AutoencoderConfig, place: Path) -> dict[str, Any]:
    """Train, measure on the test images, remember."""
    kept = place / "figures.json"
    if kept.exists():
        return json.loads(kept.read_text())
    outcome = train_run(config, place, resume=place.exists())
    if not outcome.finished:
        raise SystemExit("stopped; the same command goes on")
    run = load_run(place)
    images, part = read_unseen_images(run, config.data.source, "test")
    figures = {
        "config": config.model_dump(mode="json"),
        "seconds": sum(stage.seconds for stage in outcome.stages.values()),
        "part": part,
        "torch": torch.__version__,
        **evaluate_run(run, images).as_dict(),
    }
    kept.write_text(json.dumps(figures, indent=2) + "\n")
    return figures


def _show(found: dict[str, list[dict[str, Any]]]) -> None:
    table = Table("arm", "seeds", "MSE x 1000", "in use %", "distortion", "rate", "sum", "seconds")
    for name, runs in found.items():
        used = [100 * run["levels"]["codes"]["used_share"] for run in runs]
        bits = [list(run["bits_per_dim"].values())[-1] for run in runs]
        columns = [
            [1000 * run["mse_0_to_1"] for run in runs],
            used,
            [one["distortion"] for one in bits],
            [one["rate"] for one in bits],
            [one["total"] for one in bits],
            [run["seconds"] for run in runs],
        ]
        table.add_row(name, str(len(runs)), *map(_mean_and_spread, columns))
    Console(width=120).print(table)


def _mean_and_spread(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    spread = f" ({statistics.stdev(known):.3f})" if len(known) > 1 else ""
    return f"{statistics.mean(known):.3f}{spread}"


if __name__ == "__main__":
    main()
