"""Several iterations, one after the other, each with the schedule of its own pattern.

These are the programs that `decompose_format` makes: one iteration for each part, and in some one before that
initializes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from gossamer_ir.core.axis_kinds import indices_of, is_varied
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.interchange.records import Decision
from gossamer_ir.nodes import Function, Iteration, Module
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_schedule.rules.analysis.iterations import axes_of, only, several_iterations
from gossamer_schedule.rules.canonical.forms import forms_of
from gossamer_schedule.rules.first_match import first_match
from gossamer_schedule.rules.patterns.dense_assignment import dense_assignment
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

SHARED_VECTORS = 512
"""Minimum vectors that a thread assigns, if a later iteration accesses them.

The time to assign them would not pay for a thread. But the threads of the later iteration find what another
one has assigned in the cache of its core (measured on two threads of Zen 3 in products of SELL and vectors of
65,536 and 114,599 rows: 1.3 to 1.5 times as fast if both have initialized the result)."""


@schedule_rule(
    pattern="several iterations, some of them of a pattern above",
    programs="programs over a tensor in parts (`decompose_format`)",
    schedule="each iteration is scheduled as it would be alone; dense assignments are vectorized",
    combines_rules=True,
)
def separate_iterations(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for several iterations, one after the other; None for any other program."""
    several = several_iterations(module)
    if several is None:
        return None
    function, iterations = several
    trace, rows = context.new_trace(), {}
    for number, iteration in enumerate(iterations):
        if _is_private(function, iteration):
            continue
        # `taken` grows with each iteration: the names that their schedules make are in one function.
        planned = _schedule_alone(
            only(iteration, module=module), context=context, taken=trace.names
        )
        if planned is not None:
            later = {data_name(name) for name in buffers_accessed(*iterations[number + 1 :])}
            decisions = _without_nontemporal_stores(planned.decisions, later)
            trace.adopt(decisions, names=planned.names, choices=planned.choices)
            loop = _rows_in_parallel(function, iteration, trace=planned)
            if loop is not None:
                rows[iteration.name] = loop
    if not trace.decisions:
        return None
    _fuse_rows(trace, function, iterations=iterations, rows=rows)
    names = ", ".join(iteration.name for iteration in iterations)
    return PatternMatch(f"iterations one after the other: {names}", trace)


def _is_private(function: Function, iteration: Iteration) -> bool:
    """Return whether an iteration accesses a buffer of one thread. Each thread would have a buffer of its
    own, without what another iteration stored to it."""
    private = {buffer.name for buffer in function.buffers if buffer.scope != "global"}
    return not private.isdisjoint(buffers_accessed(iteration))


def _schedule_alone(
    alone: Module, *, context: RuleContext, taken: frozenset[str]
) -> TraceBuilder | None:
    """Return the decisions of the first rule that matches an iteration by itself; None if there is none."""
    iteration_context = RuleContext(
        context.stats, machine=context.machine, taken=taken, point=context.point
    )
    matched = first_match(context.iteration_rules, forms_of(alone), iteration_context)
    if matched is None:
        return _vectorize_assignment(alone, iteration_context)
    trace, adopted = iteration_context.new_trace(), matched.match.trace
    trace.adopt(matched.decisions, names=adopted.names, choices=adopted.choices)
    return trace


def _vectorize_assignment(alone: Module, context: RuleContext) -> TraceBuilder | None:
    """Return the decisions for an assignment over dense axes, such as an init; None for anything else. By
    itself, such a program is not one of the patterns of rules."""
    pattern = dense_assignment(alone)
    if pattern is None:
        return None
    trace, lanes = context.new_trace(), context.machine.lanes(pattern.dtype)
    native = context.machine.native_lanes(pattern.dtype)
    outer = trace.run_in_lanes(pattern.feature, lanes=native)
    trace.decide(f"vectors of {native} elements", "they are contiguous")
    vectors = -(-pattern.features // lanes) if pattern.row and pattern.features else 1
    loop = pattern.row or outer
    trace.record.parallel(loop=loop, grain=max(1, SHARED_VECTORS // vectors))
    trace.decide(
        f"{loop} in parallel",
        "iterations assign elements of their own, and later ones find them in the cache of their core",
    )
    return trace


def _without_nontemporal_stores(
    decisions: Iterable[Decision], buffers: Set[str]
) -> Iterator[Decision]:
    """Yield the decisions without those that store around the caches what a later iteration accesses."""
    for decision in decisions:
        stored = {step.args["buffer"] for step in decision.steps if step.op == "store_nontemporal"}
        if not stored & buffers:
            yield decision


def _rows_in_parallel(
    function: Function, iteration: Iteration, *, trace: TraceBuilder
) -> str | None:
    """Return the loop over stored rows of an iteration if it is parallel and initializes these rows, those of
    one fiber of a fixed axis; else None."""
    axes = axes_of(function, iteration)
    is_stored = (
        len(axes) > 2
        and indices_of(axes[1]) is not None
        and not is_varied(axes[1])
        and bool(iteration.init)
    )
    # Rows in panels or tiles run in another parallel loop, which is not one over rows.
    loops = [step.args["loop"] for step in trace.steps if step.op == "parallel"]
    if is_stored and integer_value(axes[0].length) == 1 and loops == [iteration.vars[1]]:
        return iteration.vars[1]
    return None


def _fuse_rows(
    trace: TraceBuilder,
    function: Function,
    *,
    iterations: Sequence[Iteration],
    rows: Mapping[str, str],
) -> None:
    """Fuse the loops over rows of neighboring iterations whose rows are declared disjoint: one launch for all
    of them. `rows` are these loops by the names of the iterations."""
    for run in _runs_of_disjoint_rows(function, iterations, rows=rows):
        trace.horizontal_fuse(*(rows[name] for name in run))
        trace.decide(
            f"one parallel loop for the rows of {', '.join(run)}",
            "they have no rows in common, so that threads share the work of all at once",
        )


def _runs_of_disjoint_rows(
    function: Function, iterations: Sequence[Iteration], *, rows: Mapping[str, str]
) -> Iterator[Sequence[str]]:
    """Yield each run of two or more neighboring iterations with loops over rows that are declared
    disjoint."""
    disjoint = {
        frozenset((relation.left, relation.right))
        for relation in function.relations
        if relation.kind == "disjoint"
    }
    run: dict[str, str] = {}
    for iteration in iterations:
        axis = axes_of(function, iteration)[1].name if iteration.name in rows else None
        if axis and all(frozenset((axis, other)) in disjoint for other in run.values()):
            run[iteration.name] = axis
            continue
        if len(run) > 1:
            yield tuple(run)
        run = {iteration.name: axis} if axis else {}
    if len(run) > 1:
        yield tuple(run)
