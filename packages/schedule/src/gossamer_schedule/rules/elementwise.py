"""A value for each stored element (`B[i, j] = f(A[i, j], ...)`), in vectors and in parallel.

If no value depends on the row, one loop runs over all elements, in equal parts. Otherwise a loop runs over
the rows, which are weighted by their elements.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.machine import FULL_VECTORS_PER_THREAD, Machine, grain
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.plan import Plan
from gossamer_schedule.rules.recognize.elementwise import Elementwise, elementwise_pattern

SHORT_ROW = 4
"""Maximum length of all rows for scalar code, in a loop over rows."""

WORK_PER_ROW = 4
"""Cost of a row besides its elements, in elements."""


def elementwise(module: Module, machine: Machine, stats: Stats | None) -> ScheduleReport | None:
    """Return the schedule for a value per stored element; None for any other program."""
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    lanes = machine.lanes(pattern.dtype)
    chosen = _flat(pattern, lanes) if pattern.is_flat else _by_rows(pattern, lanes, stats)
    return ScheduleReport("elementwise", pattern.text, chosen)


def elementwise_by_rows(
    module: Module, machine: Machine, stats: Stats | None, *, short_row: float
) -> ScheduleReport | None:
    """Like `elementwise`, but always with a loop over rows, and with one element at a time if the mean row
    has at most `short_row` elements."""
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    chosen = _by_rows(pattern, machine.lanes(pattern.dtype), stats)
    if stats is not None and stats.mean_row <= short_row:
        why = f"rows have {stats.mean_row:.3g} elements on average; vectors pay above {short_row}"
        chosen = (Decision("one element at a time", why), *chosen[1:])
    return ScheduleReport("elementwise", pattern.text, chosen)


def _flat(pattern: Elementwise, lanes: int) -> tuple[Decision, ...]:
    fusing, splitting, running = Plan(), Plan(), Plan()
    loop = fusing.sparse_fuse(
        pattern.iteration, axes=pattern.axes, variables=(pattern.row, pattern.position)
    )
    fused = Decision(
        "one loop over all elements",
        f"no value depends on the row {pattern.row} of its element",
        fusing.steps,
        stage="coordinate",
    )
    outer = _split(splitting, loop, lanes)
    least = grain(1)
    running.add("parallel", loop=outer, grain=least)
    parts = Decision(
        f"equal parts of vectors in parallel, {least} or more for a thread",
        f"all elements cost the same, and waking a thread costs as much as {FULL_VECTORS_PER_THREAD} vectors",
        running.steps,
    )
    return fused, _vectors(pattern, lanes, splitting), parts


def _by_rows(pattern: Elementwise, lanes: int, stats: Stats | None) -> tuple[Decision, ...]:
    rows = parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=1)
    if stats is not None and stats.longest_row <= SHORT_ROW:
        why = f"no row has more than {stats.longest_row} elements; vectors pay above {SHORT_ROW}"
        return Decision("one element at a time", why), rows
    splitting = Plan()
    _split(splitting, pattern.position, lanes)
    return _vectors(pattern, lanes, splitting), rows


def _split(plan: Plan, loop: str, lanes: int) -> str:
    """Plan vectors for a loop. Return the loop over the vectors."""
    outer, lane = plan.split(loop, factors=(None, lanes))
    plan.add("vectorize", loop=lane)
    return outer


def _vectors(pattern: Elementwise, lanes: int, plan: Plan) -> Decision:
    return Decision(
        f"vectors of {lanes} elements",
        f"a register has {lanes} lanes of {pattern.dtype}; the last vector is masked",
        plan.steps,
    )
