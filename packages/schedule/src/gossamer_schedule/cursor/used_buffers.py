"""The buffers that statements use, and those that two of them would conflict about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES, Cursor, addressable_stmts


def buffers_used_by(stmt: Stmt) -> frozenset[str]:
    """Return the buffers that a statement accesses or prefetches, without its bodies that schedules address.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import For, Prefetch
    >>> loop = For("i", ZERO, ONE, (Prefetch("X", (ZERO,)),))
    >>> sorted(buffers_used_by(loop)), sorted(buffers_used_by(loop.body[0]))
    ([], ['X'])
    """
    fields = ADDRESSABLE_BODIES.get(type(stmt), ())
    return buffers_accessed(replace(stmt, **dict.fromkeys(fields, ())))


def conflicting_buffers(first: Sequence[Stmt], second: Sequence[Stmt]) -> Set[str]:
    """Return the buffers that both sequences of statements use, and at least one of them writes.

    >>> from gossamer_testkit.examples import STAGED
    >>> (loop,) = STAGED.functions[0].body
    >>> sorted(conflicting_buffers(loop.body[:1], loop.body[1:]))
    ['X_shared']
    """
    first_writes, second_writes = outer_writes(first), outer_writes(second)
    return (first_writes & buffers_accessed(*second)) | (buffers_accessed(*first) & second_writes)


def stmts_beside(cursor: Cursor[Stmt], top: Cursor[Stmt]) -> Iterator[Any]:
    """Return the statement at `top` and all below it, without the statement at a cursor and those below."""
    below_cursor = {id(stmt) for stmt in addressable_stmts((cursor.node,))}
    return (stmt for stmt in addressable_stmts((top.node,)) if id(stmt) not in below_cursor)
