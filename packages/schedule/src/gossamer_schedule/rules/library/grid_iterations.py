"""Several iterations, one after the other, on machines that run grids of threads.

Each has the schedule of its own pattern. Buckets of rows that are stored with one width each, the parts of
hyb, are one launch: blocks of threads are divided among the buckets by their numbers of slots. Threads add
atomically only to rows that several of them have.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.nodes import Function, Iteration, Module, OverAxis
from gossamer_machine import Grid
from gossamer_schedule.rules.analysis.iterations import only, several_iterations
from gossamer_schedule.rules.canonical.forms import forms_of
from gossamer_schedule.rules.decisions.grids.grid_buckets import joint_runs, run_buckets
from gossamer_schedule.rules.decisions.grids.grid_threads import (
    block_threads,
    run_rows_and_features,
)
from gossamer_schedule.rules.first_match import first_match
from gossamer_schedule.rules.patterns.bucket_reduction import bucket_reduction
from gossamer_schedule.rules.patterns.dense_assignment import dense_assignment
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern="several iterations, some of them of a pattern for grids, or buckets of rows of one width",
    programs="hyb in one launch (`Decomposition.rewrite`), attention (SDDMM, softmax, SpMM) on GPUs",
    schedule="each iteration as it would be alone; buckets whose rows are apart, or only added to, are one "
    "launch, atomic where they share rows",
    combines_rules=True,
    is_for_grids=True,
)
def grid_iterations(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for several iterations, one after the other; None for any other program, or on a
    CPU."""
    several, grid = several_iterations(module), context.machine.grid
    if several is None or grid is None:
        return None
    function, iterations = several
    trace = _plan_iterations(module, function, iterations=iterations, context=context, grid=grid)
    freed = _fused_names(trace, iterations)
    if freed:
        # Axes are fused before any loop is split: the steps of other iterations find these names free.
        freeing = replace(context, taken=context.taken - freed)
        trace = _plan_iterations(
            module, function, iterations=iterations, context=freeing, grid=grid
        )
    if not trace.decisions:
        return None
    names = ", ".join(iteration.name for iteration in iterations)
    return PatternMatch(f"iterations one after the other: {names}", trace)


def _fused_names(trace: TraceBuilder, iterations: Sequence[Iteration]) -> frozenset[str]:
    """Return the names of the loops over axes that steps of a trace fuse."""
    fused = {
        (step.args["iteration"], axis)
        for step in trace.steps
        if step.op == "sparse_fuse" and isinstance(axes := step.args["axes"], tuple)
        for axis in axes
    }
    return frozenset(
        name
        for iteration in iterations
        for axis, name in zip(iteration.axes, iteration.vars, strict=False)
        if isinstance(axis, OverAxis) and (iteration.name, axis.axis) in fused
    )


def _plan_iterations(
    module: Module,
    function: Function,
    *,
    iterations: Sequence[Iteration],
    context: RuleContext,
    grid: Grid,
) -> TraceBuilder:
    """Return the decisions for each iteration; none for one without a schedule."""
    trace = context.new_trace()
    buckets = [bucket_reduction(only(iteration, module=module)) for iteration in iterations]
    for iteration, bucket in zip(iterations, buckets, strict=True):
        if bucket is None:
            _plan_alone(trace, module, iteration=iteration, context=context, grid=grid)
    for run in joint_runs(function, buckets):
        run_buckets(trace, function, run=run, grid=grid)
    return trace


def _plan_alone(
    trace: TraceBuilder, module: Module, *, iteration: Iteration, context: RuleContext, grid: Grid
) -> None:
    """Take the decisions of the first rule that matches an iteration by itself, or those for an assignment
    to dense elements; nothing for any other iteration."""
    alone = only(iteration, module=module)
    iteration_context = RuleContext(
        context.stats, machine=context.machine, taken=trace.names, point=context.point
    )
    matched = first_match(context.iteration_rules, forms_of(alone), iteration_context)
    if matched is not None:
        adopted = matched.match.trace
        trace.adopt(matched.decisions, names=adopted.names, choices=adopted.choices)
        return
    pattern = dense_assignment(alone)
    if pattern is None:
        return
    if pattern.row is not None:
        run_rows_and_features(
            trace, pattern.row, feature=pattern.feature, features=pattern.features, grid=grid
        )
        return
    blocks, thread = trace.split(pattern.feature, factors=(None, block_threads(grid)))
    trace.record.bind(loop=blocks, thread="blockIdx.x")
    trace.record.bind(loop=thread, thread="threadIdx.x")
    trace.decide("a thread for each element", "the elements are independent of each other")
