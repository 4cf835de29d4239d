"""What a peer is: it makes a problem ready once and gives back what is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.harness.rounds import Timed
from benchmarks.operators.problem import Array, Problem


class UnavailableError(Exception):
    """A contender that cannot take part; the text says why."""


@dataclass(frozen=True)
class Prepared:
    """What is timed and where its result lies afterwards. Results of a contender that allocates
    its own output are what `result` returns."""

    timed: Timed
    result: Callable[[], Array]


Prepare: TypeAlias = Callable[[Problem, int], Prepared]
"""Makes a problem ready for a number of threads, or raises `UnavailableError`."""
