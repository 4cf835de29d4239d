"""Several computations over the same rows in one loop: all of them on one row, then on the next.

The results of one computation are still in the nearest cache when a later one reads them for the same row
(attention is an SDDMM, a softmax and a product with values). Each part is scheduled by the rule for its own
pattern. The loop over rows, which they share, runs in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Decision, ScheduleReport, Target, Trace
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Axis, Function, Iteration, Module, SparseBuffer
from gossamer_schedule.primitives.coordinate.sparse_compute_at import sparse_compute_at
from gossamer_schedule.rules.cost.gathered_rows import PrefetchThresholds
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.patterns.regular_reads import is_dense_root
from gossamer_schedule.rules.patterns.row_reduction import (
    axes_of,
    is_clashing,
    names_used,
    slots_before,
)
from gossamer_schedule.rules.schedule_rule import (
    PatternMatch,
    RowPart,
    RuleContext,
    schedule_rule,
)

PREFETCH = PrefetchThresholds(least_row=128, least_operand=2, with_alignment=True)
"""When prefetching pays. Several computations per row keep the hardware prefetcher from reaching the next
row, so software prefetch pays off also where vectors are aligned (measured: 1.5 times faster)."""

SHORT_ROW = 5
"""Maximum mean row length for scalar code in a part. Longer rows use vectors and groups. With these, shorter
rows lose to store-forwarding stalls, since a vector load waits for the scalar stores of an earlier part
(measured: scalar code is 1.1 to 2.1 times as fast, and 0.85 at 7 elements), and to mispredicted exits of the
loops over groups and remainders (1.05 to 1.25 times, and 0.97 at 7)."""

PART = RowPart(short_row=SHORT_ROW, prefetch=PREFETCH)
"""The thresholds for each part."""

WORK_PER_ROW = 16
"""Cost of a row besides its elements, in elements."""


@schedule_rule(
    pattern=("several iterations that all begin with the same rows, each of a pattern above"),
    programs="attention (SDDMM, softmax, SpMM), softmax of rows",
    schedule=(
        "one loop over rows, in which each part is scheduled as it would be alone; intermediate results "
        "are buffers of one row, one per thread, sized for its longest row"
    ),
    combines_rules=True,
)
def fused_rows(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for iterations that all begin with the same rows; None for any other program."""
    found = _iterations(module)
    if found is None:
        return None
    function, iterations = found
    fused = _fused(module, iterations)
    parts = [
        _part(_alone(module, function, iteration), target, context, row=iteration.vars[0])
        for iteration in iterations
    ]
    known = [decisions for decisions in parts if decisions is not None]
    if fused is None or len(known) < len(parts):
        return None
    names = ", ".join(iteration.name for iteration in iterations)
    together = Decision(
        "all parts of a row together",
        f"{names} run over the same rows, and the results of one part for the next are in the nearest cache",
        fused,
        stage="coordinate",
    )
    decisions = (together, *(decision for part in known for decision in part))
    rows = _parallel(function, iterations, hardware_params(target))
    return PatternMatch(f"parts of the same rows: {names}", (*decisions, rows))


def _iterations(module: Module) -> tuple[Function, tuple[Iteration, ...]] | None:
    """Return the function and the iterations of a coordinate module of several iterations that all begin with
    the same rows. Return None for other modules, and if a name that their schedules would make is taken."""
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    found = tuple(stmt for stmt in function.body if isinstance(stmt, Iteration))
    if len(found) < 2 or len(found) < len(function.body):
        return None
    axes = [axes_of(function, iteration) for iteration in found]
    if not all(axes) or not is_dense_root(axes[0][0]):
        return None
    # Only a spatial loop over the same rows can be shared: results of a reduction over rows come last.
    if any(over[0] != axes[0][0] for over in axes) or any(item.kinds[0] != "S" for item in found):
        return None
    loops = tuple(name for iteration in found for name in iteration.vars[1:])
    taken = set().union(*(names_used(function, iteration) for iteration in found))
    return None if is_clashing(taken, loops) else (function, found)


def _fused(module: Module, iterations: Sequence[Iteration]) -> Trace | None:
    """Return the steps that nest all iterations in one over the rows; None if one may use results of another
    for other rows."""
    *earlier, last = iterations
    into, steps = last.name, []
    # From the last part back, so that each part moves before those that were moved already.
    for iteration in reversed(earlier):
        try:
            result = sparse_compute_at(module, iteration.name, into=into, var=last.vars[0])
        except ScheduleError:
            return None
        module, (into,) = result.module, result.names
        steps.append(result.step)
    return tuple(steps)


def _alone(module: Module, function: Function, iteration: Iteration) -> Module:
    """Return the program with one of the iterations only."""
    return replace(module, functions=(replace(function, body=(iteration,)),))


def _part(
    alone: Module, target: Target, context: RuleContext, *, row: str
) -> tuple[Decision, ...] | None:
    """Return the decisions of the first rule that matches an iteration by itself, without those on the loop
    `row` over rows; None if no rule matches."""
    for rule in context.part_rules:
        choice = rule.function(alone, target, RuleContext(context.stats, part=PART))
        if choice is not None:
            return tuple(_within_rows(choice, row=row))
    return None


def _within_rows(choice: ScheduleReport, *, row: str) -> Iterator[Decision]:
    """Yield the decisions without the steps on the loop over rows, which the parts share."""
    for decision in choice.decisions:
        # The loop over rows belongs to all parts and is made parallel once.
        steps = tuple(step for step in decision.steps if step.args.get("loop") != row)
        if steps or not decision.steps:
            yield replace(decision, steps=steps)


def _parallel(
    function: Function, iterations: Sequence[Iteration], hardware: HardwareParams
) -> Decision:
    """Run rows in parallel. They are weighted by their elements if a part iterates over elements."""
    row = iterations[-1].vars[0]
    axes = [axes_of(function, iteration) for iteration in iterations]
    fibers = [over[1] for over in axes if len(over) > 1 and not is_full(over[1])]
    before = slots_before(fibers[0], row, element=row) if fibers else ""
    dtypes = [buffer.dtype for buffer in function.buffers if isinstance(buffer, SparseBuffer)]
    lanes = hardware.lanes(dtypes[0])
    work = sum(_vectors(over[2:], lanes) for over in axes if len(over) > 1)
    return parallel_rows(row, before=before, per_row=WORK_PER_ROW, vectors=work or 1)


def _vectors(features: Sequence[Axis], lanes: int) -> int:
    """Return the vectors of work per element."""
    lengths = [integer_value(axis.length) for axis in features if is_full(axis)]
    return max([1, *(-(-length // lanes) for length in lengths if length is not None)])
