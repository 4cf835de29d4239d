"""The interface of contenders: each prepares a case once and returns the call to time.

The modules of this folder run in processes of their own, possibly in different environments: they import
their library, NumPy, SciPy and `benchmarks.operator_case`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.operator_case import Array, OperatorCase

Call: TypeAlias = Callable[[], object]


class UnavailableError(Exception):
    """A contender cannot take part; the message says why."""


@dataclass(frozen=True)
class Prepared:
    """The call to time. `activate` prepares it before samples (its number of threads). `result` makes a call
    and returns its result, for a contender that does not write to `OperatorCase.out`."""

    call: Call
    activate: Call = lambda: None
    result: Callable[[], Array] | None = None


Prepare: TypeAlias = Callable[[OperatorCase, int], Prepared]
"""Prepares a case for a number of threads, or raises `UnavailableError` or ImportError."""
