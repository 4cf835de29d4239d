"""A value for each feature of each row (`B[i, k] = f(A[i, k], ...)`), or one value per row, in vectors.

This is only one of the iterations of fused rows. By themselves, such programs are dense.
"""

from __future__ import annotations

from gossamer_ir.core.axis_kinds import is_dense_root
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.analysis.iterations import axes_of, buffers_by_name, single_iteration
from gossamer_schedule.rules.analysis.outputs import assigned_store
from gossamer_schedule.rules.analysis.regular_reads import reads_regularly
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern='`out[i, k] = ...` over row and features (`[I, K]`, "SS"); K may be missing',
    programs="a value per row, or per row and feature, as a part of `fused_rows` only",
    schedule="features in vectors, unrolled if they are few",
    handles_siblings=True,
)
def dense_rows(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule of one row of such an iteration; None for any other program."""
    single = single_iteration(module)
    if not context.is_sibling or single is None:
        return None
    function, iteration = single
    axes, store = axes_of(function, iteration), assigned_store(iteration)
    if not axes or not all(map(is_dense_root, axes)) or store is None:
        return None
    trace, row = context.new_trace(), iteration.vars[0]
    if len(axes) == 1:
        return PatternMatch(f"a value for each row {row}", trace)
    feature = iteration.vars[1]
    if len(axes) != 2 or not reads_regularly(function, iteration, lane=feature):
        return None
    machine, output = context.machine, buffers_by_name(function)[store.buffer]
    count, lanes = integer_value(axes[1].length), machine.native_lanes(output.dtype)
    _run_in_vectors(trace, feature, count=count, lanes=lanes, most=machine.accumulators)
    return PatternMatch(f"a value for each feature {feature} of row {row}", trace)


def _run_in_vectors(
    trace: TraceBuilder, feature: str, *, count: int | None, lanes: int | str, most: int
) -> None:
    """Run features in vectors. They are unrolled if there are at most `most`, and not scalable."""
    vectors = None if count is None or isinstance(lanes, str) else -(-count // lanes)
    if vectors is not None and not 0 < vectors <= most:
        vectors = None
    outer = trace.run_in_lanes(feature, lanes=lanes, vectors=vectors)
    if vectors is not None:
        trace.unroll(outer)
    trace.decide(f"vectors of {lanes} features", "features are contiguous")
