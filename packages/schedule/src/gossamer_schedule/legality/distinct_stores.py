"""Blocks whose points store to different elements."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.nodes import Block, For
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.races import accesses_below, difference_text, is_race_free


def require_distinct_stores(
    cursor: Cursor[Block], buffer_name: str, *, nest: Iterable[For] | None = None
) -> None:
    """Refuse a block unless different iterations of each loop of its nest store to different elements.

    The loops are those directly around the block, or those of `nest`.

    Raises `.not_proved`.
    """
    for loop in cursor.nest if nest is None else nest:
        loop_cursor = find_loop(cursor.top, loop=loop.var)
        if not is_race_free(loop_cursor, buffer_name):
            raise schedule_error(
                f"{cursor.primitive}.not_proved",
                f"Cannot prove that different points of block '{cursor.node.name}' are different "
                f"elements of '{buffer_name}'.",
                needs=difference_text(
                    loop.var,
                    accesses_below(loop_cursor)[buffer_name],
                    varying=loops_within((loop,)),
                ),
            )
