"""Several computations over the same rows in one loop: all of them on one row, then on the next.

The results of one computation are still in the nearest cache when a later one reads them for the same row
(attention is an SDDMM, a softmax and a product with values). Each iteration is scheduled by the rule for its
own pattern. The loop over rows, which they share, runs in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from gossamer_heuristics.gathered_rows import PREFETCH
from gossamer_ir.core.axis_kinds import is_dense_root, is_full
from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Decision
from gossamer_ir.nodes import Axis, Function, Iteration, Module
from gossamer_machine.machine import Machine
from gossamer_schedule.primitives.coordinate.sparse_compute_at import sparse_compute_at
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    only,
    several_iterations,
)
from gossamer_schedule.rules.analysis.slots import slots_before
from gossamer_schedule.rules.canonical.forms import ProgramForm
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.first_match import first_match
from gossamer_schedule.rules.schedule_rule import (
    PatternMatch,
    RowThresholds,
    RuleContext,
    schedule_rule,
)
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

PREFETCH_OF_SIBLINGS = replace(PREFETCH, has_alignment=True)
"""Limits of prefetching. Several computations per row keep the hardware prefetcher from reaching the next
row, so software prefetch pays off also where vectors are aligned (measured: 1.5 times faster)."""

SHORT_SIBLING_ROW = 5
"""Maximum mean row length for scalar code in one of the iterations. Longer rows use vectors and groups.
With these, shorter rows lose to store-forwarding stalls, since a vector load waits for the scalar stores of
an earlier iteration (measured: scalar code is 1.1 to 2.1 times as fast, and 0.85 at 7 elements), and to
mispredicted exits of the loops over groups and remainders (1.05 to 1.25 times, and 0.97 at 7)."""

SIBLINGS = RowThresholds(short_row=SHORT_SIBLING_ROW, prefetch=PREFETCH_OF_SIBLINGS)
"""The thresholds for each of the iterations."""

WORK_PER_ROW_OF_SIBLINGS = 16
"""Cost of a row besides its elements, in elements."""


@schedule_rule(
    pattern=("several iterations that all begin with the same rows, each of a pattern above"),
    programs="attention (SDDMM, softmax, SpMM), softmax of rows",
    schedule=(
        "one loop over rows, in which each part is scheduled as it would be alone; intermediate results "
        "are buffers of one row, one per thread, sized for its longest row"
    ),
    combines_rules=True,
    before={
        "separate_iterations": "it matches fewer programs, whose intermediate results stay in caches"
    },
)
def fused_rows(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for iterations that all begin with the same rows; None for any other program."""
    several = several_iterations(module)
    if several is None or not _are_over_same_rows(*several):
        return None
    function, iterations = several
    names = ", ".join(iteration.name for iteration in iterations)
    trace = context.new_trace()
    if not _fuse(trace, module, iterations=iterations):
        return None
    trace.decide(
        "all parts of a row together",
        f"{names} run over the same rows, and the results of one part for the next are in the nearest cache",
        stage="coordinate",
    )
    if not all(
        _plan_iteration(trace, module, iteration=iteration, context=context)
        for iteration in iterations
    ):
        return None
    _run_in_parallel(trace, function, iterations=iterations, machine=context.machine)
    return PatternMatch(f"parts of the same rows: {names}", trace)


def _are_over_same_rows(function: Function, iterations: Sequence[Iteration]) -> bool:
    """Return whether all iterations begin with the same rows."""
    axes = [axes_of(function, iteration) for iteration in iterations]
    if not all(axes) or not is_dense_root(axes[0][0]):
        return False
    # Only a spatial loop over the same rows can be shared: results of a reduction over rows come last.
    if any(over[0] != axes[0][0] for over in axes):
        return False
    return all(iteration.kinds[0] == "S" for iteration in iterations)


def _fuse(trace: TraceBuilder, module: Module, *, iterations: Sequence[Iteration]) -> bool:
    """Nest all iterations in one over the rows. Return whether that is legal: not if one may use results of
    another for other rows."""
    *earlier, last = iterations
    into = last.name
    # From the last iteration back, so that each moves before those that were moved already.
    for iteration in reversed(earlier):
        try:
            result = sparse_compute_at(module, iteration.name, into=into, var=last.vars[0])
        except ScheduleError:
            return False
        module, (into,) = result.module, result.names
        trace.append(result.step)
    return True


def _plan_iteration(
    trace: TraceBuilder,
    module: Module,
    *,
    iteration: Iteration,
    context: RuleContext,
) -> bool:
    """Take the decisions of the first rule that matches an iteration by itself, without those on the loop
    over rows. Return whether there is one."""
    sibling = RuleContext(
        context.stats,
        is_sibling=True,
        thresholds=SIBLINGS,
        machine=context.machine,
        taken=trace.names,
        point=context.point,
    )
    form = ProgramForm(only(iteration, module=module))
    matched = first_match(context.sibling_rules, [form], sibling)
    if matched is None:
        return False
    decisions = _within_rows(matched.decisions, row=iteration.vars[0])
    adopted = matched.match.trace
    # The loop over rows stays, whatever the rule planned for it.
    names = adopted.names | {iteration.vars[0]}
    trace.adopt(decisions, names=names, choices=adopted.choices)
    return True


def _within_rows(decisions: Iterable[Decision], *, row: str) -> Iterator[Decision]:
    """Yield the decisions without the steps on the loop over rows, which the iterations share."""
    for decision in decisions:
        # The loop over rows belongs to all iterations and is made parallel once.
        steps = tuple(step for step in decision.steps if step.args.get("loop") != row)
        if steps or not decision.steps:
            yield replace(decision, steps=steps)


def _run_in_parallel(
    trace: TraceBuilder,
    function: Function,
    *,
    iterations: Sequence[Iteration],
    machine: Machine,
) -> None:
    """Run rows in parallel. They are weighted by their elements if an iteration runs over elements."""
    row = iterations[-1].vars[0]
    axes = [axes_of(function, iteration) for iteration in iterations]
    fibers = [over[1] for over in axes if len(over) > 1 and not is_full(over[1])]
    before = slots_before(fibers[0], row, element=row) if fibers else None
    dtypes = [buffer.dtype for buffer in buffers_by_name(function).values()]
    lanes = machine.lanes(dtypes[0])
    work = sum(_vectors(over[2:], lanes) for over in axes if len(over) > 1)
    run_rows_in_parallel(
        trace, row, before=before, vectors=work or 1, per_row=WORK_PER_ROW_OF_SIBLINGS
    )


def _vectors(features: Sequence[Axis], lanes: int) -> int:
    """Return the vectors of work per element."""
    lengths = [integer_value(axis.length) for axis in features if is_full(axis)]
    return max([1, *(-(-length // lanes) for length in lengths if length is not None)])
