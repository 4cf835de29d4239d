"""Several computations over the same rows, run together: all of them on one row, then on the next.

What is made for a row and used by a later computation of the same row is still in the nearest cache
(sampled products, a softmax and a product with values are attention). Each part is scheduled as the
rule for its own pattern does it; the loop over rows, which they share, runs in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats, Target, Trace
from gossamer_ir.nodes import Axis, DenseFixed, Function, Iteration, Module, SparseBuffer
from gossamer_schedule.primitives.coordinate.sparse_compute_at import sparse_compute_at
from gossamer_schedule.rules.cost.machine import lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.elementwise import elementwise_by_rows
from gossamer_schedule.rules.recognise.gathers import Ahead
from gossamer_schedule.rules.recognise.regular_reads import is_dense_root
from gossamer_schedule.rules.recognise.row_reduction import (
    Fibre,
    axes_of,
    is_clashing,
    names_of,
    slots_before,
)
from gossamer_schedule.rules.rowwise_dense import rowwise_dense
from gossamer_schedule.rules.sddmm import sddmm
from gossamer_schedule.rules.sparse_times_dense import sparse_times_dense
from gossamer_schedule.rules.spmv_rows import spmv_rows

AHEAD = Ahead(least_row=128, least_operand=2 << 20)
"""As long as a row is worked on by several parts, one after the other, the processor does not look
ahead to the next one, so that asking pays for shorter rows."""

SHORT_ROW = 5
"""Elements per row up to which a part goes through them one at a time: what it stores one by one cannot
be loaded as a vector before all of that is written (measured: 1.1 to 2.1 times faster, 0.85 at 7), and
groups and their rest are more loops that end where nobody can tell (1.05 to 1.25 times, 0.97 at 7)."""

PARTS = (
    partial(spmv_rows, short_row=SHORT_ROW),
    partial(sparse_times_dense, ahead=AHEAD),
    partial(sddmm, ahead=AHEAD, short_row=SHORT_ROW),
    partial(elementwise_by_rows, short_row=SHORT_ROW),
    rowwise_dense,
)

WORK_PER_ROW = 16
"""What a row costs besides its elements, in elements."""


def fused_rows(module: Module, target: Target, stats: Stats | None) -> ScheduleReport | None:
    """The schedule for iterations that all begin with the same rows; None for anything else."""
    found = _iterations(module)
    if found is None:
        return None
    function, iterations = found
    fused = _fused(module, iterations)
    parts = [_part(module, function, iteration, target=target, stats=stats)
             for iteration in iterations]  # fmt: skip
    known = [decisions for decisions in parts if decisions is not None]
    if fused is None or len(known) < len(parts):
        return None
    names = ", ".join(iteration.name for iteration in iterations)
    together = Decision(
        "all parts of a row together",
        f"{names} run over the same rows, and what one leaves for the next is in the nearest cache",
        fused,
        stage="coordinate",
    )
    decisions = (together, *(decision for part in known for decision in part))
    rows = _parallel(function, iterations, target)
    return ScheduleReport("fused_rows", f"parts of the same rows: {names}", (*decisions, rows))


def _iterations(module: Module) -> tuple[Function, tuple[Iteration, ...]] | None:
    """The function and the iterations of a coordinate module that holds several of them, which all
    begin with the same rows, and no names that their schedules would give."""
    if module.stage != "coordinate" or len(module.functions) != 1:
        return None
    function = module.functions[0]
    found = tuple(stmt for stmt in function.body if isinstance(stmt, Iteration))
    if len(found) < 2 or len(found) < len(function.body):
        return None
    axes = [axes_of(function, iteration) for iteration in found]
    if not all(axes) or not is_dense_root(axes[0][0]):
        return None
    if any(over[0] != axes[0][0] for over in axes) or any(item.kinds[0] != "S" for item in found):
        return None
    loops = tuple(name for iteration in found for name in iteration.vars[1:])
    taken = set().union(*(names_of(function, iteration) for iteration in found))
    return None if is_clashing(taken, loops) else (function, found)


def _fused(module: Module, iterations: Sequence[Iteration]) -> Trace | None:
    """The steps that make one iteration over rows of all; None where one may use what another makes
    for other rows."""
    *earlier, last = iterations
    into, steps = last.name, []
    for iteration in reversed(earlier):
        try:
            result = sparse_compute_at(module, iteration.name, into=into, var=last.vars[0])
        except ScheduleError:
            return None
        module, (into,) = result.module, result.names
        steps.append(result.step)
    return tuple(steps)


def _part(
    module: Module,
    function: Function,
    iteration: Iteration,
    *,
    target: Target,
    stats: Stats | None,
) -> tuple[Decision, ...] | None:
    """What the rule for an iteration by itself decides, but for the loop over rows; None where there is
    no such rule."""
    alone = replace(module, functions=(replace(function, body=(iteration,)),))
    for rule in PARTS:
        choice = rule(alone, target, stats)
        if choice is not None:
            return tuple(_within_rows(choice, row=iteration.vars[0]))
    return None


def _within_rows(choice: ScheduleReport, *, row: str) -> Iterator[Decision]:
    """The decisions without steps on the loop over rows, which is no longer the part's own."""
    for decision in choice.decisions:
        steps = tuple(step for step in decision.steps if step.args.get("loop") != row)
        if steps or not decision.steps:
            yield replace(decision, steps=steps)


def _parallel(function: Function, iterations: Sequence[Iteration], target: Target) -> Decision:
    """Rows by their elements, where a part goes through them."""
    row = iterations[-1].vars[0]
    axes = [axes_of(function, iteration) for iteration in iterations]
    fibres = [over[1] for over in axes if len(over) > 1 and isinstance(over[1], Fibre)]
    before = slots_before(fibres[0], row, element=row) if fibres else ""
    dtypes = [found.dtype for found in function.buffers if isinstance(found, SparseBuffer)]
    lanes = lanes_of(target, dtypes[0])
    work = sum(_vectors(over[2:], lanes) for over in axes if len(over) > 1)
    return parallel_rows(row, before=before, per_row=WORK_PER_ROW, vectors=work or 1)


def _vectors(features: Sequence[Axis], lanes: int) -> int:
    """Vectors of work for an element."""
    lengths = [integer_value(axis.length) for axis in features if isinstance(axis, DenseFixed)]
    return max([1, *(-(-length // lanes) for length in lengths if length is not None)])
