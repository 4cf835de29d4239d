"""A value for each stored element (`B[i, j] = f(A[i, j], ...)`), in vectors and in parallel.

Where no row is asked for, rows do not matter: one loop runs over all elements, in equal parts. What
depends on the row goes through the rows, which are weighed by their elements.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats, Step, Target
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.machine import FULL_VECTORS_PER_THREAD, grain, lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.recognise.elementwise import Elementwise, elementwise_pattern

SHORT_ROW = 4
"""As long as all rows may be for scalar code to be faster, where rows are gone through."""

WORK_PER_ROW = 4
"""What a row costs besides its elements, in elements."""


def elementwise(module: Module, target: Target, stats: Stats | None) -> ScheduleReport | None:
    """The schedule for a value per stored element; None for anything else."""
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    lanes = lanes_of(target, pattern.dtype)
    chosen = _flat(pattern, lanes) if pattern.is_flat else _by_rows(pattern, lanes, stats)
    return ScheduleReport("elementwise", pattern.text, chosen)


def elementwise_by_rows(
    module: Module, target: Target, stats: Stats | None, *, short_row: float
) -> ScheduleReport | None:
    """As `elementwise`, going through the rows whether or not a value depends on them; one element at
    a time also where rows have no more than `short_row` on average."""
    pattern = elementwise_pattern(module)
    if pattern is None:
        return None
    chosen = _by_rows(pattern, lanes_of(target, pattern.dtype), stats)
    if stats is not None and stats.mean_row <= short_row:
        why = f"rows have {stats.mean_row:.3g} elements on average; vectors pay above {short_row}"
        chosen = (Decision("one element at a time", why), *chosen[1:])
    return ScheduleReport("elementwise", pattern.text, chosen)


def _flat(pattern: Elementwise, lanes: int) -> tuple[Decision, ...]:
    loop = f"{pattern.row}_{pattern.position}"
    least = grain(1)
    fused = Step("sparse_fuse", {"iteration": pattern.iteration, "axes": pattern.axes})
    numbered = Decision(
        "elements numbered through",
        f"no value depends on the row {pattern.row} that it stands in, so rows do not matter",
        (fused,),
        stage="coordinate",
    )
    parts = Decision(
        f"equal parts of vectors in parallel, {least} or more for a thread",
        f"all elements cost the same, and waking a thread as much as {FULL_VECTORS_PER_THREAD} vectors",
        (Step("parallel", {"loop": f"{loop}_0", "grain": least}),),
    )
    return numbered, _vectors(pattern, loop, lanes), parts


def _by_rows(pattern: Elementwise, lanes: int, stats: Stats | None) -> tuple[Decision, ...]:
    vectors = _vectors(pattern, pattern.position, lanes)
    if stats is not None and stats.longest_row <= SHORT_ROW:
        vectors = Decision(
            "one element at a time",
            f"no row has more than {stats.longest_row} elements; vectors pay above {SHORT_ROW}",
        )
    rows = parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=1)
    return vectors, rows


def _vectors(pattern: Elementwise, loop: str, lanes: int) -> Decision:
    return Decision(
        f"vectors of {lanes} elements",
        f"a register has {lanes} lanes of {pattern.dtype}; the last vector is masked",
        (
            Step("split", {"loop": loop, "factors": (None, lanes)}),
            Step("vectorize", {"loop": f"{loop}_1"}),
        ),
    )
