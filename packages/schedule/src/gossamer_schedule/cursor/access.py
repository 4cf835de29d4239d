"""The buffers that statements use, and the values of variables at a cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import chain
from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import Expr, Function, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.statement_queries import values_after, values_bound
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES, Cursor, addressable_stmts


def values_at(cursor: Cursor) -> dict[str, Expr]:
    """Return the values of block variables and lets that are in scope at a cursor."""
    values: dict[str, Expr] = {}
    for step in cursor.path:
        above = () if isinstance(step.parent, Function) else values_bound(step.parent)
        pairs = chain(above, *map(values_after, step.earlier))
        values.update((var.name, value) for var, value in pairs)
    return values


def values_in_block(cursor: Cursor) -> dict[str, Expr]:
    """Return the values of block variables and lets that are in scope in the block at a cursor."""
    return values_at(cursor) | {iterator.var: iterator.value for iterator in cursor.node.iters}


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


def stmts_beside(cursor: Cursor, top: Cursor) -> Iterator[Any]:
    """Return the statement at `top` and all below it, without the statement at a cursor and those below."""
    own = {id(stmt) for stmt in addressable_stmts((cursor.node,))}
    return (stmt for stmt in addressable_stmts((top.node,)) if id(stmt) not in own)
