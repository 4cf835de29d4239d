"""One number per row of a matrix in slices of rows (SELL times vector): the rows of a slice are lanes.

All rows of a slice have the same number of slots, so that no branch depends on the length of a row. Terms
are added in the order of the row, as in scalar code. In slices of block rows, an element of the vector is
gathered once for all rows of a block. The rows of a diagonal have consecutive columns, which are loaded.
"""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.slice_lanes import WORK_PER_SLICE, slice_lanes, work_per_slot
from gossamer_schedule.rules.patterns.sliced_reduction import (
    SlicedReduction,
    sliced_diagonals,
    sliced_reduction,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import TileNest, run_in_vectors
from gossamer_schedule.rules.steps.trace_builder import Accumulator, TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import lanes_in_words, tiles_holding

SAME_LENGTH = "have the same number of slots, so that no branch depends on the length of a row"


@schedule_rule(
    pattern='`out[ROWS[s, r]] = out[ROWS[s, r]] op ...` over slices of rows (`[S, W, R, J]`, "SRSR") or of '
    'block rows (`[S, W, II, JI, R, JO]`, "SRSRSR"); the same for `out[s * height + r]` over diagonals '
    '(`[S, D, R]`, "SRS")',
    programs="SELL times a vector, also in blocks; diagonals in slices of rows times a vector",
    schedule="the rows of a slice in lanes, their results in registers until the end of the slice",
    replaces_conversion=True,
)
def slice_spmv(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over slots of slices of rows; None for any other program."""
    pattern = sliced_reduction(module) or sliced_diagonals(module)
    # Without lanes the rule declines, and operators convert the matrix to CSR.
    lanes = 1 if pattern is None else _lanes(pattern, context.machine)
    if pattern is None or lanes == 1 or not _has_registers(pattern, lanes, machine=context.machine):
        return None
    trace = context.new_trace()
    if context.machine.is_scalable:
        _rows_in_scalable_lanes(trace, pattern, machine=context.machine)
    else:
        _rows_in_lanes(trace, pattern, lanes=lanes)
    run_rows_in_parallel(
        trace,
        pattern.slice,
        before=pattern.before,
        vectors=work_per_slot(pattern.block_height, pattern.block_width),
        per_row=WORK_PER_SLICE,
    )
    return PatternMatch(pattern.text, trace)


def _lanes(pattern: SlicedReduction, machine: Machine) -> int:
    """Return the lanes that hold the rows of a slice. Rows of a diagonal have consecutive columns, so that
    whole vectors are loaded, where other rows gather."""
    if pattern.element is None and not machine.is_scalable:
        return slice_lanes(pattern.height, machine.lanes(pattern.dtype))
    return slice_lanes(pattern.height)


def _has_registers(pattern: SlicedReduction, lanes: int, *, machine: Machine) -> bool:
    """Return whether the results of a slice of block rows have registers; those of rows always do."""
    # A slice has one vector of rows after the other if their number is known at run time only.
    vectors = pattern.block_height * (1 if machine.is_scalable else pattern.height // lanes)
    return pattern.inner_row is None or vectors <= machine.accumulators


def _rows_in_scalable_lanes(
    trace: TraceBuilder, pattern: SlicedReduction, *, machine: Machine
) -> None:
    """Run the slots of a slice for one vector of its rows after the other, each with its results in a
    register: how many vectors hold the rows is known at run time only."""
    inner_row, column = pattern.inner_row, pattern.inner_column
    lanes = machine.native_lanes(pattern.dtype)
    vector, lane = trace.split(pattern.row, factors=(None, lanes))
    trace.reorder(vector, inner_row, lane, pattern.element, pattern.slot, column)
    init, copy = _keep_results(trace, pattern, lane=lane, inside=vector)
    trace.vectorize(lane, init.loop(lane), copy.loop(pattern.row))
    trace.unroll(inner_row, init.loop(inner_row), copy.loop(inner_row), column)
    rows = "block rows" if inner_row else "rows"
    trace.decide(
        f"the {pattern.height} {rows} of a slice in vectors of {lanes_in_words(lanes)}, one after the other",
        f"{rows} of a slice {SAME_LENGTH}; the results of a vector stay in registers",
    )


def _rows_in_lanes(trace: TraceBuilder, pattern: SlicedReduction, *, lanes: int) -> None:
    """Keep the results of a slice in registers, with its rows in lanes."""
    row, inner_row, column = pattern.row, pattern.inner_row, pattern.inner_column
    # With the rows outside, each row is one reduction, whose result can be kept.
    trace.reorder(inner_row, row, pattern.element, pattern.slot, column)
    init, copy = _keep_results(trace, pattern, lane=row, inside=pattern.slice)
    vectors = tiles_holding(pattern.height, vectors=pattern.height // lanes, lanes=lanes)
    nests = [
        TileNest(place, trace.split_in_vectors(loop, vectors))
        for place, loop in (
            (init.loop(inner_row), init.loops[row]),
            (inner_row, row),
            (copy.loop(inner_row), copy.loops[row]),
        )
    ]
    run_in_vectors(trace, nests)
    trace.unroll(column)
    rows = "block rows" if inner_row else "rows"
    trace.decide(
        f"the {pattern.height} {rows} of a slice in vectors of {lanes}",
        f"{rows} of a slice {SAME_LENGTH}; their results stay in registers and are stored at the end of the "
        "slice",
    )


def _keep_results(
    trace: TraceBuilder, pattern: SlicedReduction, *, lane: str, inside: str
) -> Accumulator:
    """Keep the results of a slice of rows, whose loop becomes that of `lane`, in registers while a loop
    around them runs once."""
    slot, inner_row = pattern.slot, pattern.inner_row
    copy = trace.cache_write(
        pattern.block,
        buffer=pattern.output,
        scope="local",
        elements=(pattern.slice, inner_row, pattern.row),
        over_iters=True,
    )
    trace.record.reverse_compute_at(block=copy.block, loop=inside)
    # With the columns of a block outside of its rows, an element of the vector serves all of them.
    trace.reorder(slot, pattern.element, pattern.inner_column, inner_row, lane)
    init = trace.decompose_reduction(pattern.block, loop=slot, elements=(inner_row, lane))
    return Accumulator(init, copy)
