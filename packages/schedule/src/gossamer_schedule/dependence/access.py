"""The buffers that statements use, and the values of variables at a cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

from gossamer_ir.analysis.accesses import parts_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Block, Expr, Let, Stmt, Store
from gossamer_ir.traversal import effects
from gossamer_schedule.cursor.cursor import Cursor, addressable_statements


def values_at(cursor: Cursor) -> dict[str, Expr]:
    """Return the values of block variables and lets that are in scope at a cursor."""
    values: dict[str, Expr] = {}
    for parent, name, index in cursor.path:
        if isinstance(parent, Block):
            values.update({iterator.var: iterator.value for iterator in parent.iters})
        for statement in getattr(parent, name)[:index]:
            if isinstance(statement, Let):
                values[statement.var.name] = statement.value
    return values


def values_in_block(cursor: Cursor) -> dict[str, Expr]:
    """Return the values of block variables and lets that are in scope in the block at a cursor."""
    return values_at(cursor) | {iterator.var: iterator.value for iterator in cursor.node.iters}


def buffers_accessed(body: Iterable[Any]) -> set[str]:
    """Return the buffers that statements or expressions use in any way."""
    return set(effects.buffers_accessed(*body))


def buffers_named(body: Iterable[Any]) -> set[str]:
    """Return the buffers that statements use in any way, including those that bounds checks test."""
    return set(effects.buffers_named(*body))


def buffers_used_by(statement: Any) -> set[str]:
    """Return the buffers that a statement uses, without the bodies of loops and conditions."""
    is_whole = isinstance(statement, (Block, Store))
    return buffers_accessed((statement,) if is_whole else parts_of(statement))


def conflicting_buffers(first: Sequence[Stmt], second: Sequence[Stmt]) -> Set[str]:
    """Return the buffers that both sequences of statements use, and at least one of them writes.

    >>> from gossamer_testkit.examples import STAGED
    >>> (loop,) = STAGED.functions[0].body
    >>> sorted(conflicting_buffers(loop.body[:1], loop.body[1:]))
    ['X_shared']
    """
    first_writes, second_writes = effects.outer_writes(first), effects.outer_writes(second)
    return (first_writes & buffers_accessed(second)) | (buffers_accessed(first) & second_writes)


def statements_beside(cursor: Cursor, top: Cursor) -> Iterator[Any]:
    """Return the statement at `top` and all below it, without the statement at a cursor and those below."""
    own = {id(statement) for statement in addressable_statements((cursor.node,))}
    return (
        statement for statement in addressable_statements((top.node,)) if id(statement) not in own
    )


def is_vector_access(indices: Iterable[Expr]) -> bool:
    """Return whether an access is to a vector of elements."""
    return any(DType.parse(dtype_of(at)).is_vector for at in indices)
