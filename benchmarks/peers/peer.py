"""The interface of peers: a peer prepares a problem once and returns the call to time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.harness.rounds import Timed
from benchmarks.operators.problem import Array, Problem


class UnavailableError(Exception):
    """A contender cannot take part; the message says why."""


@dataclass(frozen=True)
class Prepared:
    """The call to time, and its result. For a contender that allocates its output, `result` returns
    that output."""

    timed: Timed
    result: Callable[[], Array]


Prepare: TypeAlias = Callable[[Problem, int], Prepared]
"""Prepares a problem for a number of threads, or raises `UnavailableError`."""
