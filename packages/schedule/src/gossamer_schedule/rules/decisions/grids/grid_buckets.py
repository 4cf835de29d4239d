"""The rows of buckets on a grid of threads: all blocks have as many slots, whatever the width of rows is."""

from __future__ import annotations

from collections.abc import Sequence, Set

from gossamer_ir.nodes import Function, ThreadTag
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.grid_threads import block_threads, feature_threads
from gossamer_schedule.rules.patterns.bucket_reduction import BucketReduction
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import amount


def joint_runs(
    function: Function, buckets: Sequence[BucketReduction | None]
) -> list[list[BucketReduction]]:
    """Return the runs of neighboring buckets that one launch can compute: those that initialize rows have
    none in common with others."""
    disjoint = disjoint_axes(function)
    runs: list[list[BucketReduction]] = [[]]
    for bucket in buckets:
        if bucket is None or any(
            (bucket.has_init or other.has_init) and not _are_apart(bucket, other, disjoint=disjoint)
            for other in runs[-1]
        ):
            runs.append([])
        if bucket is not None:
            runs[-1].append(bucket)
    return [run for run in runs if run]


def disjoint_axes(function: Function) -> Set[frozenset[str]]:
    """Return the pairs of axes that a function declares disjoint."""
    return {
        frozenset((relation.left, relation.right))
        for relation in function.relations
        if relation.kind == "disjoint"
    }


def _are_apart(
    one: BucketReduction, other: BucketReduction, *, disjoint: Set[frozenset[str]]
) -> bool:
    same_output = one.output == other.output
    return not same_output or frozenset((one.row_axis, other.row_axis)) in disjoint


def run_buckets(
    trace: TraceBuilder, function: Function, *, run: Sequence[BucketReduction], grid: Grid
) -> None:
    """Compute the rows of all buckets of a run in one launch."""
    disjoint, widest = disjoint_axes(function), max(bucket.width for bucket in run)
    loops = []
    for bucket in run:
        shares = not bucket.has_distinct_rows or any(
            other is not bucket and not _are_apart(bucket, other, disjoint=disjoint)
            for other in run
        )
        loops.append(_run_bucket(trace, bucket, grid=grid, widest=widest, shares_rows=shares))
    if len(loops) > 1:
        trace.horizontal_fuse(*loops)
        trace.decide(
            f"one launch for {', '.join(bucket.block for bucket in run)}",
            f"each block has as much work: a thread computes {amount(widest, 'slot')}",
        )


def _run_bucket(
    trace: TraceBuilder, bucket: BucketReduction, *, grid: Grid, widest: int, shares_rows: bool
) -> str:
    """Bind the loops of a bucket. Return the loop over its blocks."""
    trace.reorder(bucket.row, bucket.feature, bucket.position)
    trace.accumulate_locally(
        bucket.block,
        buffer=bucket.output,
        holder=bucket.feature or bucket.row,
        reduction=bucket.position,
        elements=(bucket.row, bucket.feature),
        over_iters=True,
    )
    lanes = 1 if bucket.feature is None else feature_threads(bucket.features, grid)
    rows_of_thread, rows_of_block = max(widest // bucket.width, 1), block_threads(grid) // lanes
    blocks, *_, rows = trace.split(bucket.row, factors=(None, rows_of_thread, rows_of_block))
    accumulate = "atomic" if shares_rows else None
    if bucket.feature is None:
        _bind(trace, rows, thread="threadIdx.x", accumulate=accumulate)
    else:
        tiles, lane = trace.split(bucket.feature, factors=(None, lanes))
        trace.reorder(blocks, tiles, *_, rows, lane)
        _bind(trace, lane, thread="threadIdx.x", accumulate=None)
        _bind(trace, rows, thread="threadIdx.y", accumulate=accumulate)
        _bind(trace, tiles, thread="blockIdx.y", accumulate=None)
    _bind(trace, blocks, thread="blockIdx.x", accumulate=accumulate)
    how = "atomically, since others have them, too" if shares_rows else "which no other thread has"
    trace.decide(
        f"{amount(rows_of_thread, 'row')} of {amount(bucket.width, 'slot')} for each thread of "
        f"{bucket.block}",
        f"a thread adds up a row in a register, and stores it to elements {how}",
    )
    return blocks


def _bind(
    trace: TraceBuilder, loop_name: str, *, thread: ThreadTag, accumulate: str | None
) -> None:
    trace.record.bind(loop=loop_name, thread=thread, accumulate=accumulate)  # type: ignore[arg-type]  # atomic
