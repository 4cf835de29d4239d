"""A value for each stored element (`B[i, j] = f(A[i, j], ...)`), in vectors and in parallel.

If no value depends on the row, one loop runs over all elements, in equal parts. Otherwise a loop runs over
the rows, which are weighted by their elements.
"""

from __future__ import annotations

from gossamer_heuristics.row_lengths import SHORT_ROW
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.decisions.parallel_rows import (
    FULL_VECTORS_PER_THREAD,
    grain,
    run_rows_in_parallel,
)
from gossamer_schedule.rules.patterns.elementwise import Elementwise, elementwise_pattern
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern='`out[i, j] = ...` over row and fiber (`[I, J]`, "SS")',
    programs="element-wise programs",
    schedule=(
        "one loop over all elements in vectors, or a loop over rows if a value depends on the row"
    ),
    handles_siblings=True,
)
def elementwise(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a value per stored element; None for any other program.

    A sibling always has a loop over rows.
    """
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    trace, lanes = context.new_trace(), context.machine.native_lanes(pattern.dtype)
    if pattern.is_flat and not context.is_sibling:
        _run_all_elements(trace, pattern, lanes=lanes)
    else:
        _run_row_by_row(trace, pattern, lanes=lanes, context=context)
    return PatternMatch(pattern.text, trace)


def _run_all_elements(trace: TraceBuilder, pattern: Elementwise, *, lanes: int | str) -> None:
    # At the coordinate stage: lowering would make a loop over rows around one over positions.
    loop = trace.sparse_fuse(
        pattern.iteration, axes=pattern.axis_names, vars=(pattern.row, pattern.position)
    )
    trace.decide(
        "one loop over all elements",
        f"no value depends on the row {pattern.row} of its element",
        stage="coordinate",
    )
    vectors = _run_in_vectors(trace, pattern, lanes=lanes, loop_name=loop)
    least = grain(1)
    trace.record.parallel(loop=vectors, grain=least)
    trace.decide(
        f"equal parts of vectors in parallel, {least} or more for a thread",
        f"all elements cost the same, and waking a thread costs as much as {FULL_VECTORS_PER_THREAD} vectors",
    )


def _run_row_by_row(
    trace: TraceBuilder, pattern: Elementwise, *, lanes: int | str, context: RuleContext
) -> None:
    why_scalar = _why_scalar(context)
    if why_scalar:
        trace.decide("one element at a time", why_scalar)
    else:
        _run_in_vectors(trace, pattern, lanes=lanes, loop_name=pattern.position)
    run_rows_in_parallel(trace, pattern.row, before=pattern.before, vectors=1)


def _why_scalar(context: RuleContext) -> str | None:
    """Return the reason to run the elements of a row one at a time; None if there is none."""
    stats = context.stats
    if stats is None:
        return None
    mean, short_row = stats.mean_row, context.thresholds.short_row
    if context.is_sibling and mean <= short_row:
        return f"rows have {mean:.3g} elements on average; vectors pay above {short_row}"
    if stats.longest_row <= SHORT_ROW:
        return f"no row has more than {stats.longest_row} elements; vectors pay above {SHORT_ROW}"
    return None


def _run_in_vectors(
    trace: TraceBuilder, pattern: Elementwise, *, lanes: int | str, loop_name: str
) -> str:
    """Run a loop over elements in vectors. Return the loop over these."""
    vectors = trace.run_in_lanes(loop_name, lanes=lanes)
    trace.decide(
        f"vectors of {lanes} elements",
        f"a register has {lanes} lanes of {pattern.dtype}; the last vector is masked",
    )
    return vectors
