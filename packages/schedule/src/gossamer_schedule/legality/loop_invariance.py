"""Checks that expressions which a rewriting evaluates again are loop-invariant."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.invariants import changing_buffers
from gossamer_ir.nodes import For, Node
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error


def require_unchanged(
    loop: For, parts: Iterable[Node], *, cursor: Cursor[object], what: str = "the extent"
) -> None:
    """Refuse to evaluate expressions in each iteration of a loop, instead of once before it, unless the
    loop writes nothing that they read.

    The loop is in the function of the cursor.

    Raises `.not_proved`.
    """
    if changing := changing_buffers(loop.body, *parts, function=cursor.function):
        names = ", ".join(sorted(changing))
        raise schedule_error(
            f"{cursor.primitive}.not_proved",
            f"Cannot prove that {what} of loop '{loop.var}' stays the same while it runs.",
            needs=f"{names} is not written in loop '{loop.var}'",
        )


def require_unchanged_bounds(loops: Iterable[For], *, cursor: Cursor[object]) -> None:
    """Refuse loops that may change their own starts or extents, as `require_unchanged` does.

    Raises `.not_proved`.
    """
    for loop in loops:
        require_unchanged(loop, (loop.start, loop.extent), cursor=cursor)
