"""Local buffers whose elements each belong to one iteration of a loop."""

from __future__ import annotations

from gossamer_ir.nodes import Buffer, For, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_named, buffers_written
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.legality.races import is_race_free


def buffers_by_iteration(cursor: Cursor[Stmt]) -> tuple[Buffer, ...]:
    """Return the local buffers that only the loop at a cursor uses, and of which each element is used in one
    iteration only, also of the loops around. Each part of the loop can have a buffer of its own."""
    # No element of a buffer that nothing writes is known to belong to an iteration.
    used = buffers_written((cursor.node,))
    outside = buffers_named(*cursor.replace_with(()).function.body)
    loops = [
        ancestor
        for ancestor in map(cursor.up, range(len(cursor.path)))
        if isinstance(ancestor.node, For)
    ]
    return tuple(
        buffer
        for buffer in cursor.function.buffers
        if isinstance(buffer, Buffer)
        and buffer.handle is None
        and buffer.scope == "local"
        and buffer.name in used
        and buffer.name not in outside
        and all(is_race_free(loop, buffer.name) for loop in loops)
    )
