"""Several rows in the lanes of a vector.

Each lane adds the terms of its own row, in their order, and all lanes run until the longest of the rows ends.
A row of two terms costs scalar code a mispredicted branch, and vectors along the row leave most lanes unused.
"""

from __future__ import annotations

import msgspec

from gossamer_heuristics.row_lengths import MAX_ROW_IN_LANE, SPREAD, WINDOW_BITS, are_lanes
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Function, Iteration
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

WINDOW_ELEMENTS = 32
"""Elements of a window: two vectors of 32 bits (measured on rows of 2 and 4: 1.2 to 1.5 times as fast as
gathers of columns and values; with 16 elements, too short for many rows, 0.8 times)."""

ROWS_OF_WINDOW = 8
"""Maximum number of rows that share a window, which then have 4 elements (16 rows with a
window of 64: 0.9 times as fast)."""

WORK_PER_GROUP = 32
"""Vectors of work for a vector of 8 rows: the elements of its gathers are loaded one by one."""


def rows_in_lanes_verdict(machine: Machine, stats: Stats | None) -> Verdict:
    """Decide whether several rows of gathered terms are lanes of a vector."""
    if stats is None:
        return unprofitable_verdict("rows are not known to be short")
    # All lanes run until the longest row ends, so that its length counts as much as the mean.
    if not are_lanes(machine, stats):
        return unprofitable_verdict(
            "gathers are too slow, or most lanes would wait for the longest row"
        )
    return profitable_verdict(
        f"no row has more than {MAX_ROW_IN_LANE} terms, nor {SPREAD} times as many as the mean, and "
        "gathers are fast enough on this machine: their masks replace the branches at the ends of rows"
    )


class RowGroup(msgspec.Struct, frozen=True):
    """Rows that are lanes of a vector, and the number of elements of a window from which the lanes read their
    columns and values (0: they gather them)."""

    rows: int
    window: int
    why: str


def row_group(machine: Machine, dtype: str) -> RowGroup:
    """Return the rows of a vector, and their window.

    Lanes read a window by instructions that select from two registers, by indices in a third one.
    """
    lanes = machine.lanes(dtype)
    if machine.min_vector_bits < WINDOW_BITS:
        return RowGroup(lanes, 0, "lanes gather their columns and values")
    rows = min(lanes, ROWS_OF_WINDOW)
    why = (
        f"{rows} rows have up to {WINDOW_ELEMENTS} elements in most cases, which registers hold: "
        "a permutation costs less than a gather"
    )
    return RowGroup(rows, WINDOW_ELEMENTS, why)


def may_run_in_lanes(function: Function, iteration: Iteration, *, pattern: RowReduction) -> bool:
    """Return whether vectors can gather the terms of several rows."""
    if not pattern.is_regular or pattern.is_contiguous or pattern.width is not None:
        return False
    return has_rows_and_init(function, iteration)


def run_rows_in_lanes(
    trace: TraceBuilder, pattern: RowReduction, *, machine: Machine, verdict: Verdict
) -> None:
    """Keep the results of a group of rows in a register, with a row in each lane, and run groups in
    parallel."""
    size = row_group(machine, pattern.dtype)
    group, row = trace.split(pattern.row, factors=(None, size.rows))
    copy = trace.cache_write(
        pattern.block, buffer=pattern.output, scope="local", elements=(pattern.row,)
    )
    trace.record.reverse_compute_at(block=copy.block, loop=group)
    longest = trace.uniform_extent(pattern.position, over=row)
    # Rows innermost: they are the lanes, and a step of all of them is one iteration of the terms.
    trace.reorder(pattern.position, row)
    init = trace.decompose_reduction(pattern.block, loop=pattern.position, elements=(row,))
    trace.vectorize(longest, init.loops[row], row, copy.loops[pattern.row])
    trace.decide("rows in lanes, until the longest of them ends", verdict.why)
    what = f"{size.rows} rows in lanes, which gather columns and values"
    if size.window:
        trace.record.annotate(name=pattern.position, key="window", value=size.window)
        what = f"{size.rows} rows in lanes, which read windows of {size.window} columns and values"
    trace.decide(what, size.why)
    run_rows_in_parallel(trace, group, before=None, vectors=WORK_PER_GROUP)
