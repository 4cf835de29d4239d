"""BSR times a vector: the columns of a block are lanes, and each row of a block row has a vector of sums.

An element of the vector is loaded once for all rows of a block, and a row of a block is one load. In scalar
code the terms of an element are one chain of additions; here each lane has its own.
"""

from __future__ import annotations

from gossamer_heuristics.blocks import are_columns_lanes
from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.iterations import single_iteration
from gossamer_schedule.rules.analysis.outputs import may_reassociate
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction, block_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import combine_in_registers
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

WORK_OF_LANE_SUMS = 4
"""Cost of a block row besides its blocks, in blocks: the sums of the lanes."""


@schedule_rule(
    pattern='a sum over dense blocks of the fiber (`[IO, JO, II, JI]`, "SRSR", in any order)',
    programs="BSR times a vector, with blocks of 3 columns or more",
    schedule="the columns of a block in lanes, a vector of partial sums for each row of a block row",
    replaces_conversion=True,
    before={"block_spmm": "it matches fewer programs, with blocks that fill vectors"},
)
def block_spmv(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a sum over dense blocks without features; None for any other program."""
    program, pattern = single_iteration(module), block_reduction(module)
    if program is None or pattern is None or not _fits(pattern, context.machine):
        return None
    _, iteration = program
    if not iteration.init or not may_reassociate(iteration):
        return None
    trace = context.new_trace()
    machine = context.machine
    lanes = machine.lanes(pattern.dtype, holding=pattern.width)
    native = machine.native_lanes(pattern.dtype) if machine.is_scalable else lanes
    _run_columns_in_lanes(trace, pattern, lanes=native)
    vectors = (pattern.height or 1) * -(-(pattern.width or 1) // lanes)
    run_rows_in_parallel(
        trace, pattern.row, before=pattern.before, vectors=vectors, per_row=WORK_OF_LANE_SUMS
    )
    return PatternMatch(pattern.text, trace)


def _fits(pattern: BlockReduction, machine: Machine) -> bool:
    """Return whether blocks are wide enough for lanes, and their rows have registers."""
    height, width = pattern.height, pattern.width
    if pattern.feature or height is None or width is None:
        return False
    return are_columns_lanes(height, width, machine)


def _run_columns_in_lanes(
    trace: TraceBuilder, pattern: BlockReduction, *, lanes: int | str
) -> None:
    """Keep a vector of partial sums for each row of a block row, and combine their lanes at its end."""
    row = pattern.inner_row
    vector, lane = trace.split(pattern.inner_position, factors=(None, lanes))
    new_axis = 1 if pattern.counts_rows else 2
    partial = trace.rfactor(
        pattern.block, buffer=pattern.output, loop=lane, elements=(pattern.row, row), axis=new_axis
    )
    trace.reorder(pattern.row, pattern.position, vector, row, lane)
    combine_in_registers(trace, pattern, partial, holder=pattern.row)
    init = trace.decompose_reduction(partial.block, loop=pattern.position, elements=(row, lane))
    combined = partial.combining
    trace.vectorize(lane, init.loop(lane), combined.loop(lane))
    trace.unroll(row, init.loop(row), combined.loop(row))
    trace.decide(
        f"{lanes} columns of a block in lanes, and {pattern.height} vectors of partial sums",
        "a load of the vector serves all rows of a block, and no addition waits for another of its block",
    )
