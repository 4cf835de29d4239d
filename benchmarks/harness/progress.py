"""A progress bar for a run, whose length is the estimated duration in seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
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
"""Seconds of measured progress from which the remaining time is estimated."""


class Bar(msgspec.Struct, frozen=True):
    """The current measurement, and the part of the estimate that has passed."""

    progress: Progress
    task: TaskID
    start: float

    def describe(self, text: str) -> None:
        """Describe the current measurement; without a terminal, as a line with the elapsed time."""
        self.details(text)
        if not self.progress.console.is_terminal:
            elapsed, task = time.monotonic() - self.start, self.progress.tasks[self.task]
            line = f"{elapsed / 60:5.1f} min, {task.percentage:3.0f} %: {text}"
            self.progress.console.print(line, highlight=False, soft_wrap=True)

    def details(self, text: str) -> None:
        """Describe a step of the current measurement, on a terminal only."""
        self.progress.update(self.task, description=text)

    def advance(self, seconds: float) -> None:
        """Advance by some of the estimated seconds."""
        self.progress.advance(self.task, seconds)


@contextmanager
def progress_bar(console: Console, seconds: float) -> Iterator[Bar]:
    """Show a bar for a run with this estimated duration."""
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
        yield Bar(progress, progress.add_task("", total=seconds), time.monotonic())
