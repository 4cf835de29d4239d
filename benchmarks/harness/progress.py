"""One bar for a whole run; its length is the estimate in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SPEED_PERIOD = 180.0
"""Seconds over which the estimate is corrected by what was seen."""


@dataclass(frozen=True)
class Bar:
    """What is being measured, and how much of the estimate is behind us."""

    progress: Progress
    task: TaskID

    def says(self, text: str) -> None:
        """Shows what comes now."""
        self.progress.update(self.task, description=text)

    def advance(self, seconds: float) -> None:
        """So many of the estimated seconds are done."""
        self.progress.advance(self.task, seconds)


@contextmanager
def progress_bar(console: Console, seconds: float) -> Iterator[Bar]:
    """A bar for a run of so many estimated seconds."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left about"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console, speed_estimate_period=SPEED_PERIOD)
    with progress:
        yield Bar(progress, progress.add_task("", total=seconds))
