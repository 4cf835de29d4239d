"""Expressions given as text by users, which a primitive evaluates at a statement."""

from __future__ import annotations

from gossamer_ir.nodes import Block, Expr
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.values import values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.safe_accesses.expression_texts import expr_of_text
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe_in_loops


def expr_at(text: str, cursor: Cursor, *, argument: str) -> Expr:
    """Return the expression of an argument of a primitive, given as text, for use at a statement.

    It may use parameters, the loops and iterators around the statement, and elements of the caller's
    buffers that are proved to exist.

    Raises `.text` and `.not_proved`.
    """
    place = cursor.place
    expr = expr_of_text(
        text,
        cursor,
        index_vars_at(cursor),
        argument=argument,
        place=place,
    )
    caller_buffers = {
        buffer.name for buffer in all_buffers(cursor.function) if buffer.handle is not None
    }
    read = buffers_read(expr)
    if not read <= caller_buffers or not are_loads_safe_in_loops(
        cursor.function, resolve(expr, values_at(cursor)), cursor.loops
    ):
        raise schedule_error(
            f"{cursor.primitive}.not_proved",
            f"Cannot prove that the elements that '{text}' reads exist.",
            needs=f"its elements of {', '.join(sorted(read))} are in bounds, and given by the caller",
            place=place,
        )
    return expr


def index_vars_at(cursor: Cursor) -> tuple[str, ...]:
    """Return the index variables that a statement may use: the loops around it in the same block, and the
    iterators of the blocks around it."""
    iters = [
        iterator
        for parent in cursor.parents
        if isinstance(parent, Block)
        for iterator in parent.iters
    ]
    return (*(loop.var for loop in cursor.loops_in_block), *(iterator.var for iterator in iters))
