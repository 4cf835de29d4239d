"""Rows on several threads: the work that pays for a thread, and the weight of a row."""

from __future__ import annotations

from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_support.message_texts import amount

FULL_VECTORS_PER_THREAD = 8_192
"""Minimum vectors of work for a thread, about 4 microseconds. With less, waking the thread costs more than it
saves."""

WORK_PER_ROW = 4
"""Cost of a row besides its stored elements, in elements."""


def grain(vectors_per_element: int) -> int:
    """Return the minimum weight for a thread, given the vectors of work per element."""
    return max(1, FULL_VECTORS_PER_THREAD // vectors_per_element)


def run_rows_in_parallel(
    trace: TraceBuilder, row: str, *, before: str | None, vectors: int, per_row: int = WORK_PER_ROW
) -> None:
    """Run the loop `row` in parallel, in chunks of equal weight.

    A row weighs as much as its slots and `per_row` slots more; `vectors` is the work per slot. `before` is
    the text of the number of slots before a row (None: unknown, so that all rows weigh the same).
    """
    # In slots: the number of vectors in a slot is known here, that of slots at run time only.
    least = grain(vectors)
    weight = f"{before} + {per_row} * {row}" if before else None
    how = "the number of slots before a row is unknown, so all rows weigh the same"
    if weight:
        how = f"rows differ in length, so the rows before {row} weigh {weight}: their slots, and "
        how += f"{per_row} more per row"
    trace.record.parallel(row, weight=weight, grain=least)
    trace.decide(
        f"rows {row} in parallel, a weight of {least} or more for a thread",
        f"{how}; a slot costs {amount(vectors, 'vector')} of work, and waking a thread costs as much as "
        f"{FULL_VECTORS_PER_THREAD} vectors",
    )
