"""One number per row of a matrix in slices of rows (SELL times vector): the rows of a slice are lanes.

All rows of a slice have the same number of slots, so that no branch depends on the length of a row. Terms
are added in the order of the row, as in scalar code.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.slices import WORK_PER_SLICE, WORK_PER_SLOT, slice_lanes
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.patterns.sliced_reduction import SlicedReduction, sliced_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import TileNest, run_in_vectors
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import tiles_holding


@schedule_rule(
    pattern='`out[ROWS[s, r]] = out[ROWS[s, r]] op ...` over slices of rows (`[S, W, R, J]`, "SRSR")',
    programs="SELL times a vector",
    schedule="the rows of a slice in lanes, their results in a register until the end of the slice",
    replaces_conversion=True,
)
def slice_spmv(module: Module, _target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over slots of slices of rows; None for any other program."""
    pattern = sliced_reduction(module)
    lanes = 1 if pattern is None else slice_lanes(pattern.height)
    if pattern is None or lanes == 1:
        return None
    trace = context.new_trace()
    _rows_in_lanes(trace, pattern, lanes)
    run_rows_in_parallel(
        trace,
        pattern.slice,
        before=pattern.before,
        vectors=WORK_PER_SLOT,
        per_row=WORK_PER_SLICE,
    )
    return PatternMatch(pattern.text, trace)


def _rows_in_lanes(trace: TraceBuilder, pattern: SlicedReduction, lanes: int) -> None:
    """Keep the results of a slice in registers, with its rows in lanes."""
    slot, row, element = pattern.slot, pattern.row, pattern.element
    # With the rows outside, each row is one reduction, whose result can be kept.
    trace.reorder(row, element, slot)
    copy = trace.cache_write(
        pattern.block,
        buffer=pattern.output,
        scope="local",
        elements=(pattern.slice, row),
        over_iterators=True,
    )
    trace.add("reverse_compute_at", block=copy.block, loop=pattern.slice)
    trace.reorder(slot, element, row)
    init = trace.decompose_reduction(pattern.block, loop=slot, elements=(row,))
    vectors = tiles_holding(pattern.height, vectors=pattern.height // lanes, lanes=lanes)
    rows = (init.loops[row], row, copy.loops[row])
    run_in_vectors(trace, [TileNest(None, trace.split_in_vectors(loop, vectors)) for loop in rows])
    trace.decide(
        f"the {pattern.height} rows of a slice in vectors of {lanes}",
        "rows of a slice have the same number of slots, so that no branch depends on the length of a row; "
        "their results stay in registers and are stored at the end of the slice",
    )
