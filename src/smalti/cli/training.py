"""``smalti train``: a model from a config file, into a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, show
from smalti.cli.reporting import WithPage, page_beside
from smalti.errors import ConfigError, UnknownSettingError
from smalti.together import is_first

if TYPE_CHECKING:
    from smalti.training import TrainingOutcome


def train(
    config: Annotated[Path, typer.Argument(help="A YAML file; see configs/.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory of the run.")],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Another setting than the file's: training.steps=500, prior.0.labels=codes.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the latest checkpoint.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Of everything that is trained.")
    ] = None,
    with_page: WithPage = True,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Train a model; a run that was stopped or killed goes on with --resume.

    Several processes train together when accelerate starts them: accelerate launch -m smalti
    train ... A run that a signal stopped keeps its checkpoint and ends with status 1.

    Example: smalti train configs/digits.yaml -o runs/digits
    """
    from smalti.artifacts import PAGE
    from smalti.recipes.configs import read_config, train_config

    use_threads(threads)
    settings = read_config(config, changes or ())
    try:
        seeded = settings if seed is None else settings.with_seed(seed)
        outcome = train_config(seeded, output, resume)
    except UnknownSettingError as error:
        raise ConfigError(f"{error}{_remedy(error, changes or ())}") from error
    if is_first():
        stages = {name: _figures(stage) for name, stage in outcome.stages.items()}
        if figures := getattr(outcome, "figures", None):
            stages["decoding"] = dict(figures)
        content: dict[str, Any] = {"directory": str(output), "finished": outcome.finished}
        page = None
        if with_page and outcome.finished:
            from smalti.report import make_report

            page = page_beside(lambda: make_report(output), output / PAGE)
            content |= {"report": page} if page and as_json else {}
        shown = {"stages": stages} if as_json else _rows(stages)
        show({**content, **shown}, as_json)
        if page and not as_json:
            typer.echo(f"report: {page}")
    if not outcome.finished:
        raise typer.Exit(1)


def _remedy(error: UnknownSettingError, changes: Sequence[str]) -> str:
    """What to type where a change gave a part another name and left the old one's settings."""
    for change in changes:
        place, _, value = change.partition("=")
        parent, _, key = place.rpartition(".")
        if parent and key == error.key and value.strip() == error.member:
            return (
                f". --set {change} changes the name alone, and {', '.join(error.unknown)} stays: "
                f"replace the whole mapping, --set '{parent}={{{key}: {error.member}, ...}}'"
            )
    return ""


def _figures(stage: TrainingOutcome) -> dict[str, Any]:
    return {
        "finished": stage.finished,
        "steps": stage.step,
        "seconds": round(stage.seconds, 2),
        **stage.evaluation,
    }


def _rows(stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        f"{name}, {what.replace('_', ' ')}": f"{value:.4g}" if isinstance(value, float) else value
        for name, figures in stages.items()
        for what, value in figures.items()
    }
