"""`set_scope`: set the memory scope of a buffer."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Function, Scope
from gossamer_schedule.cursor.allocations import require_allocated, with_buffer
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive


@primitive(stages=LOOP_STAGES)
def set_scope(
    root: Cursor[Function], buffer: str, *, scope: Scope, function: str | None = None
) -> Change:
    """Set the memory scope of a buffer that the function allocates.

    `scope` is "global", "shared", "warp", "local" or "fragment". If each thread has its own copy of a
    buffer in that scope, threads must not communicate through the buffer. The result's name is the buffer.

    Raises `ScheduleError` with a code `schedule.set_scope.*`:

    * `.scope`: unknown scope
    * `.parameter`: the buffer is a parameter
    * `.threads`: each thread of a loop would have its own copy, and only some accesses are in the loop

    >>> from gossamer_testkit.examples import STAGED
    >>> def scope_of(module): return module.functions[0].buffers[-1].scope
    >>> scope_of(STAGED)
    'shared'
    >>> scope_of(set_scope(STAGED, "X_shared", scope="local").module)
    'local'
    """
    old = find_buffer(root, buffer=buffer)

    require_allocated(old, root)

    return Change(
        root.with_function(with_buffer(root.function, replace(old, scope=scope))), (buffer,)
    )
