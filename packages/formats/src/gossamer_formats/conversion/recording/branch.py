"""Plans: the steps of a conversion, and what is decided about each tensor.

A plan is a tree. Each of its branches has steps and then the result, or a decision, whose outcomes lead to
other branches. Steps call functions of values: arrays and integers that differ between tensors, by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from gossamer_ir.support.bounded_dict import put_bounded


class PlanValue(NamedTuple):
    """A value of a plan: an array or an integer that differs between tensors."""

    number: int


class PlannedCall(NamedTuple):
    """A call: the numbers of its arguments and of its result, and of values that no later step needs."""

    function: Callable[..., Any]
    arguments: tuple[int, ...]
    result: int
    last_used: tuple[int, ...] = ()


class Branch(msgspec.Struct, eq=False):
    """Steps with their constant arguments, then the value `result`, unless there is a decision."""

    constants: dict[int, Any] = {}
    steps: list[PlannedCall] = []
    decision: PlannedCall | None = None
    outcomes: dict[Any, Branch] = {}
    result: int = -1


class UnplannedError(Exception):
    """A decision has an outcome that was not recorded."""


def run_plan(plan: Branch, inputs: Iterable[Any]) -> Any:
    """Return the result for inputs; raises `UnplannedError`.

    >>> import operator
    >>> double = Branch(steps=[PlannedCall(operator.add, (0, 0), 1)], result=1)
    >>> run_plan(Branch(decision=PlannedCall(bool, (0,), 1), outcomes={True: double}), [4])
    8
    """
    values = dict(enumerate(inputs))
    value_of = values.__getitem__
    branch = plan
    while True:
        values.update(branch.constants)
        for function, arguments, result, last_used in branch.steps:
            values[result] = function(*map(value_of, arguments))
            for number in last_used:
                del values[number]
        if branch.decision is None:
            return values[branch.result]
        function, arguments, _, _ = branch.decision
        found = branch.outcomes.get(function(*map(value_of, arguments)))
        if found is None:
            raise UnplannedError
        branch = found


MAX_OUTCOMES = 16
"""The most outcomes of a decision that are kept: the oldest one is dropped for another one."""


def merge(plan: Branch, recorded: Branch) -> None:
    """Add a recording, in which each decision has one outcome, to the plan of its kind."""
    while recorded.decision is not None:
        # A value is dropped only if no branch needs it later.
        plan.steps = [
            step._replace(last_used=tuple(set(step.last_used) & set(other.last_used)))
            for step, other in zip(plan.steps, recorded.steps, strict=True)
        ]
        ((outcome, after),) = recorded.outcomes.items()
        if outcome not in plan.outcomes:
            put_bounded(plan.outcomes, outcome, after, limit=MAX_OUTCOMES)
            return
        plan, recorded = plan.outcomes[outcome], after
