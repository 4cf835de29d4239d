"""Rules for default schedules: from the pattern of a computation, a target and the stats of the data
to a `Schedule`. A rule only looks at the coordinate module; it applies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gossamer_ir.contracts import Schedule, Stats, Target, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.bsr_times_dense import bsr_times_dense
from gossamer_schedule.rules.elementwise import elementwise
from gossamer_schedule.rules.ordered import ordered
from gossamer_schedule.rules.reduction_over_fibres import reduction_over_fibres
from gossamer_schedule.rules.sampled_products import sampled_products
from gossamer_schedule.rules.sparse_times_dense import sparse_times_dense
from gossamer_schedule.rules.unfused import unfused

RULES = (
    reduction_over_fibres,
    sparse_times_dense,
    bsr_times_dense,
    sampled_products,
    elementwise,
)
"""Tried in this order; the first that applies wins. Each takes the module, the target and the stats."""


def choose(module: Module, target: Target, stats: Stats | None = None) -> Schedule:
    """The schedule of the first rule whose pattern fits; the empty one where none does.

    A module of a later stage than coordinate is taken as it is. Patterns are looked for in the
    iteration with each axis by itself, then with the axes of the sparse tree first.
    """
    for form, steps in _forms(module):
        for rule in RULES:
            schedule = rule(form, target, stats)
            if schedule is not None:
                return replace(schedule, coordinate=(*steps, *schedule.coordinate))
    return Schedule()


def _forms(module: Module) -> Iterator[tuple[Module, Trace]]:
    """The program as rules may know it, and the steps that make it so."""
    plain, unfusing = unfused(module)
    yield plain, unfusing
    changed, reordering = ordered(plain)
    if reordering:
        yield changed, (*unfusing, *reordering)


__all__ = ["RULES", "choose"]
