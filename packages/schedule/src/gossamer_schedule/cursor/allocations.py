"""Buffers that a function allocates."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import AnyBuffer, Function, SparseBuffer
from gossamer_ir.traversal.buffer_definitions import is_allocation_of, with_allocation
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error


def require_allocated(buffer: AnyBuffer, cursor: Cursor[object]) -> None:
    """Refuse a parameter: the caller has allocated it."""
    if buffer.handle is not None:
        raise schedule_error(
            f"{cursor.primitive}.parameter",
            f"Buffer '{buffer.name}' is bound to parameter '{buffer.handle}', so the caller decides how it "
            "is stored.",
        )


def with_buffer(function: Function, new: AnyBuffer) -> Function:
    """Return the function with the declaration or allocation of the buffer of that name replaced."""
    buffers = tuple(new if buffer.name == new.name else buffer for buffer in function.buffers)
    if isinstance(new, SparseBuffer):
        return replace(function, buffers=buffers)  # no statement allocates one

    def renew_allocation(node: Any) -> Any:
        return with_allocation(node, new) if is_allocation_of(node, {new.name}) else None

    return replace(function, buffers=buffers, body=rewrite_body(function.body, renew_allocation))
