"""Rules for default schedules: from the pattern of a computation, a target and the stats of the data
to a `Schedule`. A rule only looks at the coordinate module; it applies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gossamer_ir.contracts import Schedule, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.csr_matrix_vector import csr_matrix_vector
from gossamer_schedule.rules.csr_times_dense import csr_times_dense

Rule: TypeAlias = Callable[[Module, Target, Stats | None], Schedule | None]
"""Looks for its pattern in a coordinate module; None where it is another."""

RULES: tuple[Rule, ...] = (
    csr_matrix_vector,
    csr_times_dense,
)
"""Tried in this order; the first that applies wins."""


def choose(module: Module, target: Target, stats: Stats | None = None) -> Schedule:
    """The schedule of the first rule whose pattern fits; the empty one where none does.

    A module of a later stage than coordinate is taken as it is.
    """
    if module.stage != "coordinate":
        return Schedule()
    for rule in RULES:
        schedule = rule(module, target, stats)
        if schedule is not None:
            return schedule
    return Schedule()


__all__ = ["RULES", "Rule", "choose"]
