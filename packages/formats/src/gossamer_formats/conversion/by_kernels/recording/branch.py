"""Recordings: the calls of a conversion, and what is decided about each tensor.

A recording is a tree. Each of its branches has calls and then the result, or a decision, whose outcomes lead
to other branches. Functions are called with values: arrays and integers that differ between tensors, by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from gossamer_support.bounded_dict import put_bounded


class RecordedValue(NamedTuple):
    """A value of a recording: an array or an integer that differs between tensors."""

    key: int


class RecordedCall(NamedTuple):
    """A call: the keys of its arguments and of its result, and of values that no later call needs."""

    function: Callable[..., Any]
    arguments: tuple[int, ...]
    result: int
    last_used: tuple[int, ...] = ()


class Branch(msgspec.Struct, eq=False):
    """Calls with their constant arguments, then the value `result`, unless there is a decision."""

    constants: dict[int, Any] = {}
    calls: list[RecordedCall] = []
    decision: RecordedCall | None = None
    outcomes: dict[Any, Branch] = {}
    result: int = -1


class UnrecordedError(Exception):
    """A decision has an outcome that was not recorded."""


def run_recording(recording: Branch, inputs: Iterable[Any]) -> Any:
    """Return the result for inputs; raises `UnrecordedError`.

    >>> import operator
    >>> double = Branch(calls=[RecordedCall(operator.add, (0, 0), 1)], result=1)
    >>> run_recording(Branch(decision=RecordedCall(bool, (0,), 1), outcomes={True: double}), [4])
    8
    """
    values = dict(enumerate(inputs))
    # Small tensors are converted in some 30 microseconds, so that each look-up counts.
    value_of = values.__getitem__
    branch = recording
    while True:
        values.update(branch.constants)
        for function, arguments, result, last_used in branch.calls:
            values[result] = function(*map(value_of, arguments))
            for key in last_used:
                del values[key]
        if branch.decision is None:
            return values[branch.result]
        function, arguments, _, _ = branch.decision
        next_branch = branch.outcomes.get(function(*map(value_of, arguments)))
        if next_branch is None:
            raise UnrecordedError
        branch = next_branch


MAX_OUTCOMES = 16
"""The most outcomes of a decision that are kept: the oldest one is dropped for another one."""


def merge(recording: Branch, recorded: Branch) -> None:
    """Add a recording, in which each decision has one outcome, to that of its kind."""
    while recorded.decision is not None:
        # A value is dropped only if no branch needs it later.
        recording.calls = [
            call._replace(last_used=tuple(set(call.last_used) & set(other.last_used)))
            for call, other in zip(recording.calls, recorded.calls, strict=True)
        ]
        ((outcome, after),) = recorded.outcomes.items()
        if outcome not in recording.outcomes:
            put_bounded(recording.outcomes, outcome, after, limit=MAX_OUTCOMES)
            return
        recording, recorded = recording.outcomes[outcome], after
