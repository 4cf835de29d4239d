"""Loops whose iterations share elements of some buffers, into which they only accumulate."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.analysis.statements.atomic_accumulation import (
    ATOMIC_OPS,
    is_accumulated,
    is_atomic_dtype,
)
from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For, Store
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.races import accesses_below, is_race_free


def required_shared_buffers(cursor: Cursor[For]) -> tuple[str, ...]:
    """Return the buffers whose elements several iterations of the loop at a cursor may update.

    Requires that these updates are atomic reductions and that all other written buffers are race-free.

    Raises `.not_atomic` and `.no_reduction`.
    """
    shared = tuple(name for name in accesses_below(cursor) if not is_race_free(cursor, name))
    for name in shared:
        # Under another name, an element could be read between two atomic updates.
        if not is_accumulated(cursor.node, name) or _is_aliased(cursor, name):
            raise _accumulation_error(cursor, buffer_name=name)
    return shared


def required_accumulated_buffers(cursor: Cursor[For]) -> tuple[str, ...]:
    """Return the buffers from outside the loop at a cursor that it only accumulates into, whether or not its
    iterations share elements: those of another loop may have them in common.

    Raises as `required_shared_buffers`.
    """
    required_shared_buffers(cursor)
    return tuple(
        name
        for name in sorted(outer_writes(cursor.node.body))
        if is_accumulated(cursor.node, name) and not _is_aliased(cursor, name)
    )


def _is_aliased(cursor: Cursor[For], buffer_name: str) -> bool:
    """Return whether the loop also uses the memory of a buffer under another name."""
    handles = {item.name: item.handle for item in all_buffers(cursor.function)}
    aliases = {
        name for name, handle in handles.items() if handle and handle == handles[buffer_name]
    } - {buffer_name}
    return bool(aliases & buffers_accessed(*cursor.node.body))


def _accumulation_error(cursor: Cursor[For], *, buffer_name: str) -> ScheduleError:
    loop = cursor.node
    for store in _stores_to(cursor, buffer_name):
        reduction = match_reduction(store)
        dtype = next(b.dtype for b in all_buffers(cursor.function) if b.name == buffer_name)
        if reduction is not None and not (reduction.op in ATOMIC_OPS and is_atomic_dtype(dtype)):
            return schedule_error(
                f"{cursor.primitive}.not_atomic",
                f"No atomic step combines elements of '{buffer_name}', which are {dtype}, by {reduction.op}.",
                hint="Expected numbers and add, min or max. parallel_reduction combines by any operation.",
                place=cursor.place,
            )
    return schedule_error(
        f"{cursor.primitive}.no_reduction",
        f"Iterations of loop '{loop.var}' may share elements of '{buffer_name}', and do more to them than "
        "one reduction X[...] = X[...] op value.",
        hint=_accumulation_hint(cursor, buffer_name),
        place=cursor.place,
    )


def _stores_to(cursor: Cursor[For], buffer_name: str) -> Iterator[Store]:
    for stmt in addressable_stmts(cursor.node.body):
        if isinstance(stmt, Store) and stmt.buffer == buffer_name:
            yield stmt


def _accumulation_hint(cursor: Cursor[For], buffer_name: str) -> str:
    """Return a hint: the step after which iterations only accumulate."""
    for stmt in addressable_stmts(cursor.node.body):
        if isinstance(stmt, Block) and buffer_name in outer_writes(stmt.init):
            return (
                f"Apply decompose_reduction to block '{stmt.name}' with loop='{cursor.node.var}', so "
                f"that '{buffer_name}' is initialized before the loop."
            )
    return (
        f"Give each iteration elements of '{buffer_name}' of its own, or let it accumulate into others and "
        "add the result once: reindex_cache_write, then reverse_compute_at."
    )
