"""Coverage and parameters in "Frequency-aware Partial Sparse Coding": counts alone decide."""

from __future__ import annotations

from smalti.experiments.claims import Claim
from smalti.experiments.comparisons import Less
from smalti.experiments.table import Arm, Metric, Table, declare
from smalti.experiments.tables.glue_models import FINE_TUNED, PUBLISHED, TINY
from smalti.experiments.tables.partial_sparse import PAPER

# Tables 5 and 6: by share kept, tokens and sentences of CoLA, MRPC and QNLI that are covered.
COVERAGE = {
    0.5: ((99.37, 96.00, 98.27), (56.66, 9.31, 22.84)),
    0.6: ((99.47, 96.66, 98.72), (61.38, 15.44, 33.15)),
    0.7: ((99.55, 97.06, 99.14), (66.35, 18.63, 47.34)),
    0.8: ((99.60, 97.52, 99.52), (68.65, 23.53, 64.67)),
    0.9: ((99.64, 97.92, 99.74), (72.00, 28.43, 79.15)),
    1.0: ((99.69, 98.30, 99.90), (75.17, 34.07, 91.10)),
}
# Tables 7 and 8: percent of the parameters, and millions of them.
SHARES = {
    0.5: {"CoLA": 10.15, "MRPC": 19.05, "STS-B": 17.71, "QNLI": 43.13},
    1.0: {"CoLA": 18.85, "MRPC": 36.76, "STS-B": 34.16, "QNLI": 85.88},
}
MILLIONS = {0.5: {"STS-B": 4.15, "QNLI": 10.11}, 1.0: {"STS-B": 8.01, "QNLI": 20.13}}
# Table 1: rows that occur in the texts to learn from.
SEEN_ROWS = {"CoLA": 5585, "MRPC": 11_561, "STS-B": 10_794}
# Table 3: the number of neighbours that was chosen, of the tasks of Tables 7 and 8.
CHOSEN = {
    0.5: (5, 4, 3, 1),
    0.6: (5, 3, 2, 1),
    0.7: (4, 5, 2, 1),
    0.8: (5, 4, 3, 1),
    0.9: (5, 5, 1, 1),
    1.0: (5, 3, 1, 2),
}
COVERED_TASKS = ("CoLA", "MRPC", "QNLI")
TASKS = ("CoLA", "MRPC", "STS-B", "QNLI")


def _arm(keep: float) -> Arm:
    reported: dict[str, float] = {}
    for name, values in zip(("padded_tokens", "sentences"), COVERAGE[keep], strict=True):
        reported |= {
            f"{name}_{task}": value for task, value in zip(COVERED_TASKS, values, strict=True)
        }
    reported |= {f"parameter_share_{task}": v for task, v in SHARES.get(keep, {}).items()}
    if keep == 1.0:
        reported |= {f"kept_{task}": float(rows) for task, rows in SEEN_ROWS.items()}
    reported |= {f"parameters_{task}": 1e6 * v for task, v in MILLIONS.get(keep, {}).items()}
    neighbours = dict(zip(TASKS, CHOSEN[keep], strict=True))
    printed = dict(zip(COVERED_TASKS, COVERAGE[keep][0], strict=True))
    settings = {"keep": keep, "neighbours": neighbours, "printed": printed}
    return Arm(f"{keep} kept", settings, reported)


def _columns(name: str, label: str, tasks: tuple[str, ...]) -> tuple[Metric, ...]:
    return tuple(Metric(f"{name}_{task}", f"{task}, {label}", "neither") for task in tasks)


declare(
    Table(
        name="sparse-coverage",
        paper=PAPER,
        where="Tables 5 to 8",
        title="What kept rows cover of the test sets, and the numbers of the table",
        kind="vocabulary",
        base={
            "tasks": list(TASKS),
            "model": FINE_TUNED["model"],
            "longest": FINE_TUNED["longest"],
            "dim": 768,
        },
        scales={
            "tiny": {key: TINY[key] for key in ("model", "longest", "most", "test_most")},
            "paper": PUBLISHED,
        },
        # No seed should matter here; three show that none does.
        seeds={"laptop": 3},
        minutes={"tiny": 0.02, "laptop": 0.1, "paper": 0.3},
        arms=tuple(_arm(keep) for keep in sorted(COVERAGE, reverse=True)),
        metrics=(
            *_columns("kept", "rows kept", TASKS),
            *_columns("tokens", "tokens covered, %", COVERED_TASKS),
            *_columns("padded_tokens", "tokens and padding covered, %", COVERED_TASKS),
            *_columns("sentences", "examples covered, %", COVERED_TASKS),
            *_columns("parameter_share", "parameters, %", TASKS),
            *_columns("parameters", "parameters", ("STS-B", "QNLI")),
        ),
        unit="rows that occur are counted in the whole training set; here in the nine tenths to "
        "learn from, of QNLI in 1,800 pairs",
        labels={
            f"{way}_off_{task}": f"{task}, {of} covered, points from what is printed"
            for way, of in (("tokens", "tokens"), ("padded_tokens", "tokens and padding"))
            for task in COVERED_TASKS
        },
        claims=(
            Claim(
                "The token coverage that is printed is that of the texts.",
                tuple(
                    Less(
                        f"tokens_off_{task}",
                        "1.0 kept",
                        "1.0 kept",
                        other_metric=f"padded_tokens_off_{task}",
                    )
                    for task in ("CoLA", "MRPC")
                ),
                why="Which count comes nearer to the printed numbers: they come out when all "
                "examples are padded to 128 tokens and padding counts as covered. Of the texts' "
                "own tokens far fewer are.",
            ),
            Claim(
                "More of CoLA's sentences than of MRPC's pairs are covered, by fewer rows.",
                (
                    Less("sentences_MRPC", "0.5 kept", "0.5 kept", other_metric="sentences_CoLA"),
                    Less("kept_CoLA", "0.5 kept", "0.5 kept", other_metric="kept_MRPC"),
                ),
            ),
            Claim(
                "Keeping half of the rows that occur makes the table little more than half as "
                "large.",
                tuple(
                    Less(f"parameter_share_{task}", "0.5 kept", "1.0 kept", factor=0.6)
                    for task in ("CoLA", "MRPC", "STS-B")
                ),
            ),
        ),
    )
)
