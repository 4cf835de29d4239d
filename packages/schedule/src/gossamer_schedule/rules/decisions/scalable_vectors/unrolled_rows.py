"""Rows of scalable vectors in unrolled groups.

A row of few vectors executes as many instructions outside of its loop as in it. The rows of a group share
those of the loop over rows, and each row begins where the one before ends, which is in a register then.
"""

from __future__ import annotations

from gossamer_schedule.rules.decisions.parallel_rows import WORK_PER_ROW, run_rows_in_parallel
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

UNROLLED_ROWS = 4
"""Rows of a group (counted for SpMV with 64 elements in a row at 512 bits: 37.5, 37.0, 36.9 and 36.3
instructions for a row in groups of 1, 2, 3 and 4)."""


def may_unroll_rows(pattern: RowReduction) -> bool:
    """Return whether rows can run in groups: their number, and the number of slots before each, are known
    before the kernel runs."""
    return pattern.sizes is not None and pattern.before is not None


def whole_groups_and_rest(
    trace: TraceBuilder, pattern: RowReduction
) -> tuple[RowReduction, RowReduction]:
    """Partition the loop over rows. Return the rows that fill groups, and the fewer ones left over."""
    assert pattern.sizes is not None
    rows, _ = pattern.sizes
    whole, rest = trace.loop_partition(
        pattern.row,
        points=(f"{rows} // {UNROLLED_ROWS} * {UNROLLED_ROWS}",),
        inside=(pattern.position,),
    )
    names = (pattern.row, pattern.position)
    return (
        pattern.with_names(dict(zip(names, whole, strict=True))),
        pattern.with_names(dict(zip(names, rest, strict=True))),
    )


def run_groups_in_parallel(trace: TraceBuilder, pattern: RowReduction) -> None:
    """Unroll the rows of a group, and run groups in parallel."""
    assert pattern.before is not None
    group, row = trace.split(pattern.row, factors=(None, UNROLLED_ROWS))
    trace.unroll(row)
    trace.decide(
        f"{UNROLLED_ROWS} rows at a time",
        "they share the instructions of the loop over rows, and a row begins where the one before ends",
    )
    before = pattern.with_names({pattern.row: f"{group} * {UNROLLED_ROWS}"}).before
    run_rows_in_parallel(
        trace, group, before=before, vectors=1, per_row=UNROLLED_ROWS * WORK_PER_ROW
    )
