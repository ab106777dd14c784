"""What codes that are learned with a task look like: softmax and centroids side by side.

Trains a classifier of AG News (found through SMALTI_DATA) with tables of both choices and of three
codebook sizes, keeps the codes after every epoch, and asks of them what the paper on
differentiable product quantization asks: how evenly codewords are used, how fast codes settle,
who the neighbours of words are, which words share codes. Some minutes on one core.

    python examples/code_study.py [FOLDER]

Writes FOLDER/report.html and prints tables as Markdown. What is there already is not trained again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from smalti.analysis import (
    CodeGroup,
    Finding,
    change_rate,
    code_distribution,
    find_neighbours,
    neighbours,
    shared_codes,
)
from smalti.recipes.texts import ClassifierConfig, Learned, train_text_classifier
from smalti.recipes.texts.config import SCHEDULE
from smalti.recipes.texts.text_classifier import read_classes
from smalti.report import Headline, Report, write_page
from smalti.training import TrainingSettings

TEXTS, DIM, CODEBOOKS, EPOCHS = 3000, 96, 16, 12
LEARNING_RATE = 2e-3
WORDS = (
    *("oil", "iraq", "microsoft", "stocks", "baseball"),
    *("president", "software", "china", "coach", "profit"),
)
# Neighbours are looked for of so many words, the commonest.
COMMON = 2000


@dataclass(frozen=True)
class Arm:
    """A table that is trained.

    Args:
        choice: ``"softmax"``, ``"centroid"``, or ``"full"`` for a table without codes.
        codebook_size: Codewords of each codebook.
        norm: How scores are normalised.
    """

    choice: str
    codebook_size: int = 0
    norm: str = "none"

    @property
    def name(self) -> str:
        """For files and figures."""
        if self.choice == "full":
            return "full"
        return f"{self.choice}-{self.norm}-{self.codebook_size}"


# As the library recommends them: scores normalised for softmax, plain distances for centroids.
USUAL = {"softmax": "batch_per_group", "centroid": "none"}
SIZES = (8, 32, 128)
ARMS = [Arm(choice, size, norm) for size in SIZES for choice, norm in USUAL.items()]
SWAPPED = [Arm("softmax", 32, "none"), Arm("centroid", 32, "batch_per_group")]


def train(arm: Arm, folder: Path) -> Learned:
    """A classifier with that table; what was trained before is only measured again."""
    coded = {
        "compressor": "differentiable",
        "choice": arm.choice,
        "num_codebooks": CODEBOOKS,
        "codebook_size": arm.codebook_size,
        "distance_norm": arm.norm,
    }
    training = TrainingSettings(
        epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        schedule=SCHEDULE,
        clip_norm=1.0,
        # Nine tenths of the texts are learned from.
        evaluate_every=-(-TEXTS * 9 // 10 // 64),
    )
    config = ClassifierConfig(
        dim=DIM, embedding=None if arm.choice == "full" else coded, training=training
    )
    known, test = read_classes("agnews")
    place, texts = folder / arm.name, (known.pick(range(TEXTS)), test)
    return train_text_classifier(config, place, resume=place.exists(), texts=texts)


def group(arm: Arm, run: Learned) -> CodeGroup:
    """The codes of a run at its end."""
    return CodeGroup(arm.name, run.codes[-1][1].long(), [arm.codebook_size] * CODEBOOKS)


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table as Markdown."""
    for line in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(line)} |")
    print()


def of_evenness(runs: dict[Arm, Learned]) -> Iterator[Finding]:
    rows = []
    for arm in [*ARMS, *SWAPPED]:
        found = code_distribution([group(arm, runs[arm])])
        books = found.numbers["groups"][arm.name]
        gini = sum(book["gini"] for book in books) / len(books)
        score = runs[arm].outcome.test["accuracy"]
        told = f"{found.numbers['used_share']:.1%}", f"{found.numbers['mean_evenness']:.3f}"
        rows.append(
            [arm.choice, str(arm.codebook_size), arm.norm, *told, f"{gini:.3f}", f"{score:.2f}"]
        )
        named = {"name": f"code_distribution_{arm.name}", "title": f"{arm.name}: is it alive?"}
        if arm.codebook_size == 32:
            yield replace(found, **named)
    head = ["choice", "K", "scores normalised", "in use", "evenness", "Gini", "test accuracy"]
    table(head, rows)


def of_changes(runs: dict[Arm, Learned]) -> Finding:
    steps = {
        f"{arm.choice}, K = {arm.codebook_size}": [
            (epoch, codes) for epoch, (_, codes) in enumerate(runs[arm].codes, start=1)
        ]
        for arm in ARMS
    }
    found = change_rate(steps, unit="epoch")
    rows = [
        [name, *(f"{100 * rate['codes_changed']:.1f}" for rate in rates)]
        for name, rates in found.numbers["runs"].items()
    ]
    table(["% of codes changed, to epoch", *map(str, range(2, EPOCHS + 1))], rows)
    return found


def of_neighbours(runs: dict[Arm, Learned], words: list[str]) -> Iterator[Finding]:
    full = runs[Arm("full")].table()
    chosen = [words.index(word) for word in WORDS]
    rows = []
    for arm in (arm for arm in ARMS if arm.codebook_size == 32):
        near = find_neighbours(full, runs[arm].table(), torch.arange(1, COMMON + 1))
        found = neighbours(near, words, chosen)
        numbers = found.numbers
        cosines = [f"{numbers[f'mean_cosine_{side}']:.3f}" for side in ("before", "after")]
        rows.append([arm.choice, f"{numbers['mean_overlap']:.2f}", *cosines])
        for word, both in numbers["examples"].items():
            print(f"{arm.choice}, {word}: {' '.join(other for other, _ in both['after'][:5])}")
        named = {"name": f"neighbours_{arm.choice}", "title": f"{arm.choice}: who is near?"}
        yield replace(found, **named)
    print()
    table(["choice", "overlap with the full table's", "cosine, full", "cosine, coded"], rows)


def of_sharing(runs: dict[Arm, Learned], words: list[str]) -> Iterator[Finding]:
    rows = [words.index(word) for word in WORDS]
    for arm in (arm for arm in ARMS if arm.codebook_size == 32):
        found = shared_codes(group(arm, runs[arm]), WORDS, rows)
        named = {"name": f"shared_codes_{arm.choice}", "title": f"{arm.choice}: who shares codes?"}
        yield replace(found, **named)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "code-study")
    folder.mkdir(parents=True, exist_ok=True)
    runs = {arm: train(arm, folder) for arm in [*ARMS, *SWAPPED, Arm("full")]}
    words = runs[Arm("full")].words
    print(f"{len(words):,} words, {DIM} wide, {CODEBOOKS} codes each, {EPOCHS} epochs\n")
    findings = [*of_evenness(runs), of_changes(runs), *of_neighbours(runs, words)]
    findings += of_sharing(runs, words)
    evenness = {f.name.split("_")[2]: f.numbers["mean_evenness"] for f in findings[:2]}
    softmax, centroid = (
        next(value for name, value in evenness.items() if name.startswith(choice))
        for choice in ("softmax", "centroid")
    )
    headline = Headline(
        "Codes that were learned with a task",
        f"With 32 codewords, softmax uses them with an evenness of {softmax:.2f}, centroids with "
        f"one of {centroid:.2f}.",
        [
            (f"{softmax:.2f}", "evenness of softmax codes"),
            (f"{centroid:.2f}", "evenness of centroid codes"),
            (f"{len(words):,}", "words"),
        ],
    )
    page = write_page(Report(headline, findings), folder / "report.html")
    print(f"report: {page}")


if __name__ == "__main__":
    main()
