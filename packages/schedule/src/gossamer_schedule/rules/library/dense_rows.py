"""A value for each feature of each row (`B[i, k] = f(A[i, k], ...)`), or one value per row, in vectors.

This is only a part of fused rows. By themselves, such programs are dense.
"""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Decision, Target
from gossamer_ir.machine.hardware_params import hardware_params
from gossamer_ir.nodes import Module, SparseBuffer, Store
from gossamer_schedule.rules.patterns.regular_reads import is_dense_root, reads_regularly
from gossamer_schedule.rules.patterns.row_reduction import (
    axes_of,
    is_assignment,
    single_iteration,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import TraceBuilder


@schedule_rule(
    pattern='`out[i, k] = ...` over row and features (`[I, K]`, "SS"); K may be missing',
    programs="a value per row, or per row and feature, as a part of `fused_rows` only",
    schedule="features in vectors, unrolled if they are few",
    handles_parts=True,
)
def dense_rows(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule of one row of such a part; None for any other program."""
    found = single_iteration(module)
    if context.part is None or found is None:
        return None
    function, iteration = found
    axes = axes_of(function, iteration)
    if not axes or not all(map(is_dense_root, axes)) or not is_assignment(iteration):
        return None
    if len(axes) == 1:
        return PatternMatch(f"a value for each row {iteration.vars[0]}")
    if len(axes) != 2 or not reads_regularly(function, iteration, lane=iteration.vars[1]):
        return None
    dtypes = {
        buffer.name: buffer.dtype for buffer in function.buffers if isinstance(buffer, SparseBuffer)
    }
    (store,) = iteration.body
    assert isinstance(store, Store)
    hardware = hardware_params(target)
    vectors = _vectors(
        iteration.vars[1],
        integer_value(axes[1].length),
        lanes=hardware.lanes(dtypes[store.buffer]),
        most=hardware.accumulators,
    )
    text = f"a value for each feature {iteration.vars[1]} of row {iteration.vars[0]}"
    return PatternMatch(text, (vectors,))


def _vectors(feature: str, count: int | None, *, lanes: int, most: int) -> Decision:
    """Return the split into vectors. They are unrolled if there are at most `most`."""
    trace = TraceBuilder()
    is_unrolled = count is not None and 0 < count <= most * lanes
    outer, lane = trace.split(
        feature, factors=(-(-count // lanes) if count is not None and is_unrolled else None, lanes)
    )
    trace.add("vectorize", loop=lane)
    if is_unrolled:
        trace.add("unroll", loop=outer)
    return Decision(f"vectors of {lanes} features", "features are contiguous", trace.steps)
