"""Several iterations, one after the other, each with the schedule of its own pattern.

These are the programs that `decompose_format` makes: one iteration for each part, and in some one before that
initializes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import indices_of, is_varied
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.interchange.records import Decision, Step, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Function, Iteration, Module
from gossamer_ir.traversal.effects import buffers_accessed
from gossamer_schedule.definition.made_names import cache_name, copy_block_name, numbered_name
from gossamer_schedule.rules.canonical.ordered import ordered
from gossamer_schedule.rules.canonical.unfused import unfused
from gossamer_schedule.rules.cost.thread_work import grain
from gossamer_schedule.rules.patterns.dense_assignment import dense_assignment
from gossamer_schedule.rules.patterns.row_reduction import axes_of, is_clashing, names_used
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import TraceBuilder

CACHES = ("cache_write", "reindex_cache_write")
"""The primitives of rules that name a buffer after the one that they cache."""


@schedule_rule(
    pattern="several iterations, some of them of a pattern above",
    programs="programs over a tensor in parts (`decompose_format`)",
    schedule="each iteration is scheduled as it would be alone; dense assignments are vectorized",
    combines_rules=True,
)
def separate_iterations(
    module: Module, target: Target, context: RuleContext
) -> PatternMatch | None:
    """Return the schedule for several iterations, one after the other; None for any other program."""
    found = _iterations(module)
    if found is None:
        return None
    function, iterations = found
    decisions: list[Decision] = []
    made: dict[str, int] = {}
    matched: list[str] = []
    rows: list[tuple[Iteration, str]] = []
    private = {buffer.name for buffer in function.buffers if buffer.scope != "global"}
    for number, iteration in enumerate(iterations):
        # Each thread would have a buffer of its own, without what another iteration stored to it.
        if private & buffers_accessed(iteration):
            continue
        alone = replace(module, functions=(replace(function, body=(iteration,)),))
        own = _decisions(alone, target, context)
        if own is not None:
            read = {data_name(name) for name in buffers_accessed(*iterations[number + 1 :])}
            decisions += _with_fresh_caches(_without_streaming(own, read), made)
            matched.append(iteration.name)
            rows += ((iteration, row) for row in _parallel_rows(function, iteration, own))
    if not matched:
        return None
    decisions += _fused(function, iterations, rows)
    names = ", ".join(iteration.name for iteration in iterations)
    return PatternMatch(f"iterations one after the other: {names}", tuple(decisions))


def _iterations(module: Module) -> tuple[Function, tuple[Iteration, ...]] | None:
    """Return the function and the iterations of a coordinate module of several iterations. Return None for
    other modules, and if a name that schedules would make is taken by another iteration."""
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    found = tuple(stmt for stmt in function.body if isinstance(stmt, Iteration))
    if len(found) < 2 or len(found) < len(function.body):
        return None
    taken = set().union(*(names_used(function, iteration) for iteration in found))
    loops = [name for iteration in found for name in iteration.vars]
    blocks = [iteration.name for iteration in found]
    return None if is_clashing(taken, (*loops, *blocks)) else (function, found)


def _decisions(alone: Module, target: Target, context: RuleContext) -> tuple[Decision, ...] | None:
    """Return the decisions of the first rule that matches an iteration by itself; None if there is none."""
    plain, unfusing = unfused(alone)
    changed, reordering = ordered(plain)
    forms = [(plain, unfusing)]
    if reordering:
        forms.append((changed, (*unfusing, *reordering)))
    for form, before in forms:
        for rule in context.iteration_rules:
            choice = rule.function(form, target, RuleContext(context.stats))
            if choice is not None:
                return (*before, *choice.decisions)
    return _dense(alone, hardware_params(target))


def _parallel_rows(
    function: Function, iteration: Iteration, decisions: Sequence[Decision]
) -> Iterator[str]:
    """Yield the loop over stored rows of an iteration if it is parallel, initializes these rows, and the rows
    are those of one fiber of a fixed axis."""
    axes = axes_of(function, iteration)
    is_stored = (
        len(axes) > 2
        and indices_of(axes[1]) is not None
        and not is_varied(axes[1])
        and bool(iteration.init)
    )
    loops = [
        step.args["loop"] for found in decisions for step in found.steps if step.op == "parallel"
    ]
    if is_stored and integer_value(axes[0].length) == 1 and loops == [iteration.vars[1]]:
        yield iteration.vars[1]


def _fused(
    function: Function, iterations: Sequence[Iteration], rows: Sequence[tuple[Iteration, str]]
) -> Iterator[Decision]:
    """Yield a decision for each run of iterations over rows that are declared disjoint: one launch for all of
    them."""
    declared = {
        frozenset((found.left, found.right))
        for found in function.relations
        if found.kind == "disjoint"
    }
    axis = {iteration.name: axes_of(function, iteration)[1].name for iteration, _ in rows}
    loops = {iteration.name: row for iteration, row in rows}
    run: list[str] = []
    for iteration in (*iterations, None):
        name = "" if iteration is None else iteration.name
        if name in loops and all(frozenset((axis[name], axis[other])) in declared for other in run):
            run.append(name)
            continue
        if len(run) > 1:
            trace = TraceBuilder()
            trace.add("horizontal_fuse", loops=tuple(loops[other] for other in run))
            yield Decision(
                f"one parallel loop for the rows of {', '.join(run)}",
                "they have no rows in common, so that threads share the work of all at once",
                trace.steps,
            )
        run = [name] if name in loops else []


def _dense(alone: Module, hardware: HardwareParams) -> tuple[Decision, ...] | None:
    """Return the decisions for an assignment over dense axes, such as an init; None for anything else. By
    itself, such a program is not one of the patterns of rules."""
    pattern = dense_assignment(alone)
    if pattern is None:
        return None
    lanes = hardware.lanes(pattern.dtype)
    vectorizing, running = TraceBuilder(), TraceBuilder()
    outer, lane = vectorizing.split(pattern.feature, factors=(None, lanes))
    vectorizing.add("vectorize", loop=lane)
    vectors = -(-pattern.features // lanes) if pattern.row and pattern.features else 1
    loop = pattern.row or outer
    running.add("parallel", loop=loop, grain=grain(vectors))
    return (
        Decision(f"vectors of {lanes} elements", "they are contiguous", vectorizing.steps),
        Decision(f"{loop} in parallel", "iterations assign elements of their own", running.steps),
    )


def _without_streaming(decisions: Sequence[Decision], buffers: Set[str]) -> Iterator[Decision]:
    """Yield the decisions without those that store around the caches what a later iteration accesses."""
    for decision in decisions:
        stored = {step.args["buffer"] for step in decision.steps if step.op == "store_nontemporal"}
        if not stored & buffers:
            yield decision


def _with_fresh_caches(decisions: Iterable[Decision], made: dict[str, int]) -> Iterator[Decision]:
    """Yield the decisions with the names that caches have if earlier iterations cache the same buffer."""
    names: dict[str, str] = {}
    for decision in decisions:
        steps = []
        for step in decision.steps:
            if step.op in CACHES:
                names |= _cache_names(step, made)
            steps.append(Step(step.op, _renamed(step.args, names)))
        yield replace(decision, steps=tuple(steps))


def _cache_names(step: Step, made: dict[str, int]) -> dict[str, str]:
    """Return the names of the cache that a step makes, and of the block that copies it, by those that they
    would have without the earlier iterations."""
    args: Mapping[str, Any] = step.args
    cache = cache_name(args["buffer"], args["scope"])
    number = made.get(cache, 0)
    made[cache] = number + 1
    fresh, block = numbered_name(cache, number), args["block"]
    return {cache: fresh, copy_block_name(block, cache): copy_block_name(block, fresh)}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (tuple, list)):
        return tuple(_renamed(item, names) for item in value)
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    return value
