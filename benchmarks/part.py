"""The record by which the command line, the report and the documents find a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.text_tables import Sheet

R = TypeVar("R", bound=msgspec.Struct)


class PartError(Exception):
    """A part failed: the other parts follow, and the run keeps their results."""


class Series(msgspec.Struct, Generic[R], frozen=True):
    """Results of one type, which the file of a run stores under a name. The report begins with their
    `summary` and ends with the `details` (None: it has none). The list of stored runs shows `headline`."""

    name: str
    record: type[R]
    summary: Callable[[Sequence[R]], Sheet] | None = None
    details: Callable[[Sequence[R]], Sheet] | None = None
    headline: Callable[[Sequence[R]], Sheet] | None = None


class RunPart(msgspec.Struct, frozen=True):
    """A part of a run. `options` are those of the command that select what it measures. `--quick` includes
    it if it `is_quick`; it needs the processes of contenders if it `runs_contenders`."""

    name: str
    description: str
    series: tuple[Series[Any], ...]
    estimate: Callable[[Job], float]
    """Returns the estimated seconds; the function that measures advances the bar by as many."""

    measure: Callable[[Job, Bar], Iterator[msgspec.Struct]]
    """Yields each result when it is known, so that an interrupted run keeps it."""

    options: tuple[str, ...] = ()
    is_quick: bool = False
    runs_contenders: bool = False
