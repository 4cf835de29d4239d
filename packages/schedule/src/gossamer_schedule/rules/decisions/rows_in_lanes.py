"""Several rows in the lanes of a vector.

Each lane adds the terms of its own row, in their order, and all lanes run until the longest of the rows ends.
A row of two terms costs scalar code a mispredicted branch, and vectors along the row leave most lanes unused.
"""

from __future__ import annotations

from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.nodes import Function, Iteration
from gossamer_schedule.definition.made_names import extent_name, longest_name
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init
from gossamer_schedule.rules.analysis.taken_names import has_taken
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.profitability.short_rows import row_group
from gossamer_schedule.rules.profitability.verdict import Verdict
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

WORK_PER_GROUP = 32
"""Vectors of work for a vector of 8 rows: the elements of its gathers are loaded one by one."""


def may_run_in_lanes(function: Function, iteration: Iteration, pattern: RowReduction) -> bool:
    """Return whether vectors can gather the terms of several rows, and the program leaves free the names that
    this makes."""
    if not pattern.is_regular or pattern.is_contiguous or pattern.width is not None:
        return False
    names = {extent_name(pattern.position), longest_name(pattern.position)}
    is_free = not has_taken(function, iteration, names=names)
    return is_free and has_rows_and_init(function, iteration)


def run_rows_in_lanes(
    trace: TraceBuilder, pattern: RowReduction, hardware: HardwareParams, verdict: Verdict
) -> None:
    """Keep the results of a group of rows in a register, with a row in each lane, and run groups in
    parallel."""
    size = row_group(hardware, pattern.dtype)
    group, row = trace.split(pattern.row, factors=(None, size.rows))
    copy = trace.cache_write(
        pattern.block, buffer=pattern.output, scope="local", elements=(pattern.row,)
    )
    trace.add("reverse_compute_at", block=copy.block, loop=group)
    longest = trace.uniform_extent(pattern.position, over=row)
    trace.reorder(pattern.position, row)
    init = trace.decompose_reduction(pattern.block, loop=pattern.position, elements=(row,))
    trace.vectorize(longest, init.loops[row], row, copy.loops[pattern.row])
    trace.decide("rows in lanes, until the longest of them ends", verdict.why)
    what = f"{size.rows} rows in lanes, which gather columns and values"
    if size.window:
        trace.add("annotate", name=pattern.position, key="window", value=size.window)
        what = f"{size.rows} rows in lanes, which read windows of {size.window} columns and values"
    trace.decide(what, size.why)
    run_rows_in_parallel(trace, group, before=None, vectors=WORK_PER_GROUP)
