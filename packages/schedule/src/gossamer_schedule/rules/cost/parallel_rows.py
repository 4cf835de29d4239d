"""Rows on several threads: how they are weighed, and what pays for a thread."""

from __future__ import annotations

from gossamer_ir.core.counted import counted
from gossamer_ir.interchange.records import Arg, Decision, Step
from gossamer_schedule.rules.cost.machine import FULL_VECTORS_PER_THREAD, grain


def parallel_rows(row: str, *, before: str, per_row: int, vectors: int) -> Decision:
    """Rows in parallel by their slots, of which each costs so many vectors of work; a row costs
    `per_row` slots more. `before` counts the slots before a row; where nobody can tell ("") rows
    count alike."""
    least = grain(vectors)
    args: dict[str, Arg] = {"loop": row, "grain": least}
    how = "nobody can tell the slots before a row, so rows count alike"
    if before:
        weight = f"{before} + {per_row} * {row}"
        args["weight"] = weight
        how = (
            f"rows are of different length, so those before {row} weigh {weight}: their slots, and "
        )
        how += f"{per_row} for what each row costs besides"
    return Decision(
        f"rows {row} in parallel, a weight of {least} or more for a thread",
        f"{how}; a slot costs {counted(vectors, 'vector')} of work, and waking a thread as much as "
        f"{FULL_VECTORS_PER_THREAD}",
        (Step("parallel", args),),
    )
