"""Neighboring rows with equal columns: matrices of finite elements have a row for each unknown of a node.

Rows of a group run side by side, a vector of each at a time, until the longest of them ends. The dense
operand is gathered for the first of them, and for the others only where their columns differ, which costs a
comparison of two vectors to find out.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.core.annotations import EQUAL_INDICES
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Function, Iteration
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.parallel_rows import WORK_PER_ROW, run_rows_in_parallel
from gossamer_schedule.rules.decisions.partial_sums import may_add_side_by_side
from gossamer_schedule.rules.decisions.prefetching.element_prefetching import prefetch_elements
from gossamer_schedule.rules.decisions.scalable_vectors.unrolled_rows import may_unroll_rows
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.register_tiles import combine_in_registers
from gossamer_schedule.rules.steps.trace_builder import PartialResults, TraceBuilder

EQUAL_ROWS = 3
"""Rows of a group: a node has mostly as many unknowns, or twice as many.

Measured on Emerald Rapids against row by row, rows of 18 to 150 elements: 1.25 to 1.3 times as fast if three
rows in a row have equal columns, 1.1 to 1.2 if two have, 0.87 to 1.0 if none; in groups of 2, 4 and 6, 1.15
to 1.25 times if three have. Rows of 3 to 12 elements: 1.0 to 1.1 times, 1.0 and 0.92 to 1.0."""


def equal_rows_verdict(
    program: tuple[Function, Iteration],
    pattern: RowReduction,
    *,
    machine: Machine,
    stats: Stats | None,
) -> Verdict:
    """Decide whether the rows of a program run in groups that share what they gather."""
    if pattern.is_contiguous or not may_unroll_rows(pattern):
        return unprofitable_verdict("it is for gathered terms, of as many rows as the program says")
    if not may_add_side_by_side(*program):
        return unprofitable_verdict("rows continue from old values, or terms have a fixed order")
    # Each vector of each row has a mask.
    if machine.gathers != "fast" or not machine.has_mask_registers:
        return unprofitable_verdict(
            "it was measured where gathers are fast, and masks have registers, only"
        )
    # The stats of a class, which keeps whether such rows are many.
    if stats is None or not stats.equal_rows:
        return unprofitable_verdict("few rows are known to have the columns of the row before")
    return profitable_verdict(
        "a third of all rows or more have the columns of the row before, and a comparison of columns costs "
        "less than a gather"
    )


def run_equal_rows(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    lanes: int,
    verdict: Verdict,
    prefetching: Verdict,
) -> None:
    """Run whole groups of rows side by side, in parallel, and the rows that are left over one by one."""
    outer, lane = trace.split(pattern.position, factors=(None, lanes))
    partial = trace.rfactor(
        pattern.block, buffer=pattern.output, loop=lane, elements=(pattern.row,), axis=1
    )
    combine_in_registers(trace, pattern, partial, holder=pattern.row)
    if prefetching.is_profitable:
        # Before lanes are vectorized: they are the consecutive elements of an iteration.
        prefetch_elements(
            trace,
            pattern.with_names({pattern.block: partial.block}),
            loop_name=outer,
            lanes=lanes,
            why=prefetching.why,
        )
    whole, rest = _partition_rows(trace, pattern, partial=partial, inside=(outer, lane))
    group = _run_side_by_side(trace, whole)
    init = trace.decompose_reduction(rest.block, loop=rest.outer, elements=(rest.lane,))
    trace.vectorize(rest.lane, init.loop(rest.lane), rest.combining)
    trace.decide(
        f"{EQUAL_ROWS} rows side by side, {lanes} partial results in lanes, gathers shared where columns are "
        "equal",
        verdict.why,
    )
    before = pattern.with_names({pattern.row: f"{group} * {EQUAL_ROWS}"}).before
    per_row = EQUAL_ROWS * WORK_PER_ROW
    run_rows_in_parallel(trace, group, before=before, vectors=1, per_row=per_row)


class _Rows(msgspec.Struct, frozen=True):
    """The loops of a part of the rows: over the rows, over vectors of terms and over their lanes; the block
    of the terms; and the loop that combines the lanes."""

    row: str
    outer: str
    lane: str
    block: str
    combining: str


def _partition_rows(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    partial: PartialResults,
    inside: tuple[str, str],
) -> tuple[_Rows, _Rows]:
    """Return the rows of whole groups, and those that are left over."""
    assert pattern.sizes is not None
    rows, _ = pattern.sizes
    outer, lane = inside
    combining = partial.combining.loop(lane)
    assert combining is not None
    names = (outer, lane, partial.block, combining)
    points = (f"{rows} // {EQUAL_ROWS} * {EQUAL_ROWS}",)
    whole, rest = trace.loop_partition(pattern.row, points=points, inside=names)
    return _Rows(*whole), _Rows(*rest)


def _run_side_by_side(trace: TraceBuilder, rows: _Rows) -> str:
    """Run the rows of a group side by side. Return the loop over groups."""
    group, row = trace.split(rows.row, factors=(None, EQUAL_ROWS))
    updated, combined = trace.fission(row, parts=2)
    trace.inline_uniform_extent(rows.outer, over=updated)
    trace.reorder(rows.outer, updated)
    init = trace.decompose_reduction(rows.block, loop=rows.outer, elements=(updated, rows.lane))
    trace.vectorize(rows.lane, init.loop(rows.lane), rows.combining)
    trace.unroll(updated, init.loop(updated), combined)
    trace.record.annotate(rows.outer, key=EQUAL_INDICES, value=True)
    return group
