"""The values of variables at a cursor."""

from __future__ import annotations

from itertools import chain

from gossamer_ir.nodes import Block, Expr, Function
from gossamer_ir.traversal.statement_queries import values_after, values_bound
from gossamer_schedule.cursor.cursor_at import Cursor


def values_at(cursor: Cursor[object]) -> dict[str, Expr]:
    """Return the values of block variables and lets that are in scope at a cursor."""
    values: dict[str, Expr] = {}
    for step in cursor.path:
        above = () if isinstance(step.parent, Function) else values_bound(step.parent)
        pairs = chain(above, *map(values_after, step.earlier))
        values.update((var.name, value) for var, value in pairs)
    return values


def values_in_block(cursor: Cursor[Block]) -> dict[str, Expr]:
    """Return the values of block variables and lets that are in scope in the block at a cursor."""
    return values_at(cursor) | {iterator.var: iterator.value for iterator in cursor.node.iters}
