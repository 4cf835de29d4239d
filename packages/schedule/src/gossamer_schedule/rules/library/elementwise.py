"""A value for each stored element (`B[i, j] = f(A[i, j], ...)`), in vectors and in parallel.

If no value depends on the row, one loop runs over all elements, in equal parts. Otherwise a loop runs over
the rows, which are weighted by their elements.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Decision, Stats, Target
from gossamer_ir.machine.hardware_params import hardware_params
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.cost.thread_work import FULL_VECTORS_PER_THREAD, grain
from gossamer_schedule.rules.patterns.elementwise import Elementwise, elementwise_pattern
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import TraceBuilder

SHORT_ROW = 4
"""Maximum length of all rows for scalar code, in a loop over rows."""

WORK_PER_ROW = 4
"""Cost of a row besides its elements, in elements."""


@schedule_rule(
    pattern='`out[i, j] = ...` over row and fiber (`[I, J]`, "SS")',
    programs="element-wise programs",
    schedule=(
        "one loop over all elements in vectors, or a loop over rows if a value depends on the row"
    ),
    handles_parts=True,
)
def elementwise(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a value per stored element; None for any other program.

    A part always has a loop over rows. Its elements run one at a time if its rows are short.
    """
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    stats, part = context.stats, context.part
    lanes = hardware_params(target).lanes(pattern.dtype)
    if part is None and pattern.is_flat:
        return PatternMatch(pattern.text, _flat(pattern, lanes))
    chosen = _by_rows(pattern, lanes, stats)
    if part is not None and stats is not None and stats.mean_row <= part.short_row:
        why = (
            f"rows have {stats.mean_row:.3g} elements on average; "
            f"vectors pay above {part.short_row}"
        )
        chosen = (Decision("one element at a time", why), *chosen[1:])
    return PatternMatch(pattern.text, chosen)


def _flat(pattern: Elementwise, lanes: int) -> tuple[Decision, ...]:
    fusing, splitting, running = TraceBuilder(), TraceBuilder(), TraceBuilder()
    loop = fusing.sparse_fuse(
        pattern.iteration, axes=pattern.axes, variables=(pattern.row, pattern.position)
    )
    fused = Decision(
        "one loop over all elements",
        f"no value depends on the row {pattern.row} of its element",
        fusing.steps,
        stage="coordinate",
    )
    outer = _split(splitting, loop, lanes)
    least = grain(1)
    running.add("parallel", loop=outer, grain=least)
    parts = Decision(
        f"equal parts of vectors in parallel, {least} or more for a thread",
        f"all elements cost the same, and waking a thread costs as much as {FULL_VECTORS_PER_THREAD} vectors",
        running.steps,
    )
    return fused, _vectors(pattern, lanes, splitting), parts


def _by_rows(pattern: Elementwise, lanes: int, stats: Stats | None) -> tuple[Decision, ...]:
    rows = parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=1)
    if stats is not None and stats.longest_row <= SHORT_ROW:
        why = f"no row has more than {stats.longest_row} elements; vectors pay above {SHORT_ROW}"
        return Decision("one element at a time", why), rows
    splitting = TraceBuilder()
    _split(splitting, pattern.position, lanes)
    return _vectors(pattern, lanes, splitting), rows


def _split(trace: TraceBuilder, loop: str, lanes: int) -> str:
    """Plan vectors for a loop. Return the loop over the vectors."""
    outer, lane = trace.split(loop, factors=(None, lanes))
    trace.add("vectorize", loop=lane)
    return outer


def _vectors(pattern: Elementwise, lanes: int, trace: TraceBuilder) -> Decision:
    return Decision(
        f"vectors of {lanes} elements",
        f"a register has {lanes} lanes of {pattern.dtype}; the last vector is masked",
        trace.steps,
    )
