"""One progress bar for all long work: on stderr, and only where someone watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text


class Advance(Protocol):
    """Moves a bar on."""

    def __call__(self, step: float, note: str = "") -> None:
        """Count ``step`` more, and show a note, such as a loss, until the next one."""


class _Speed(ProgressColumn):
    """How much is done, and how much a second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        total = "" if task.total is None else f" of {task.total:,.0f}"
        speed = task.finished_speed or task.speed
        # Slow work has its speed between whole numbers.
        rate = "" if speed is None else f", {speed:,.{0 if speed >= 10 else 2}f}/s"
        return Text(f"{task.completed:,.0f}{total} {self.unit}{rate}")


class _Note(ProgressColumn):
    """What the work itself has to say."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["note"])


@contextmanager
def progress_bar(
    what: str, unit: str, total: float | None = None, shown: bool | None = None
) -> Iterator[Advance]:
    """A bar that lasts as long as the block; gives a function to call with each step's size.

    Args:
        what: What is being done.
        unit: What is counted.
        total: How much there is to do, where that is known.
        shown: Whether to draw; None draws when stderr is a terminal.

    Example:
        >>> with progress_bar("counting", "tokens", total=10, shown=False) as advance:
        ...     advance(10)
    """
    console = Console(stderr=True)
    shown = console.is_terminal if shown is None else shown
    columns = ("{task.description}", BarColumn(), _Speed(unit), TimeRemainingColumn(), _Note())
    with Progress(*columns, console=console, disable=not shown) as bar:
        task = bar.add_task(what, total=total, note="")

        def advance(step: float, note: str = "") -> None:
            if note:
                bar.update(task, note=note)
            bar.advance(task, step)

        yield advance
