"""Which elements the statements below a loop touch, as index forms over loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gossamer_ir.analysis.accesses import parts_of
from gossamer_ir.core.build import dtype_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Block,
    Expr,
    Let,
    Store,
)
from gossamer_ir.traversal.effects import buffers_named, buffers_touched
from gossamer_schedule.cursor.cursor import Cursor, statements


def values_at(cursor: Cursor) -> dict[str, Expr]:
    """What block variables and lets stand for at a cursor."""
    values: dict[str, Expr] = {}
    for parent, name, index in cursor.path:
        if isinstance(parent, Block):
            values.update({found.var: found.value for found in parent.iters})
        for found in getattr(parent, name)[:index]:
            if isinstance(found, Let):
                values[found.var.name] = found.value
    return values


def values_within(cursor: Cursor) -> dict[str, Expr]:
    """What block variables and lets stand for in the block at a cursor."""
    return values_at(cursor) | {found.var: found.value for found in cursor.node.iters}


def mentioned(body: Iterable[Any]) -> set[str]:
    """The buffers that statements or expressions touch in any way."""
    return set(buffers_touched(*body))


def named(body: Iterable[Any]) -> set[str]:
    """The buffers that statements touch in any way, or that guards among them are about."""
    return set(buffers_named(*body))


def used_by(statement: Any) -> set[str]:
    """The buffers that a statement touches, apart from what stands in the bodies of loops and conditions."""
    is_whole = isinstance(statement, (Block, Store))
    return mentioned((statement,) if is_whole else parts_of(statement))


def statements_beside(cursor: Cursor, top: Cursor) -> Iterator[Any]:
    """The statement at `top` and every one below it, but for that at a cursor and those below that."""
    own = {id(found) for found in statements((cursor.node,))}
    return (found for found in statements((top.node,)) if id(found) not in own)


def is_wide(indices: Iterable[Expr]) -> bool:
    """Whether an access is to a vector of elements."""
    return any(DType.parse(dtype_of(at)).is_vector for at in indices)
