"""Buffers that threads do not share, by scope."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.nodes import For, Stmt
from gossamer_ir.traversal.effects import INDEXED_NODES, all_buffers
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor import (
    Cursor,
    addressable_statements_of,
    find_by_name,
    function_with_replaced,
)

PRIVATE_ALONG: dict[str, tuple[str, ...]] = {
    "global": (),
    "shared": ("blockIdx",),
    "warp": ("blockIdx",),
    "local": ("blockIdx", "threadIdx"),
    "fragment": ("blockIdx",),
}
"""For each scope, the thread axes along which every thread has its own copy of a buffer."""


def escaping_private_buffers(top: Cursor) -> Iterator[tuple[Cursor, str]]:
    """Return pairs of a thread loop and a buffer that its threads do not share, used inside and outside it.

    A value that one thread stores is then not the value used outside the loop.

    >>> from gossamer_schedule import bind
    >>> from gossamer_testkit.examples import STAGED
    >>> from gossamer_schedule.cursor.cursor import cursor_at
    >>> made = bind(STAGED, "i", thread="blockIdx.x").module
    >>> [*escaping_private_buffers(cursor_at(made, made.functions[0]))]
    []
    """
    function = top.function
    loops = [
        statement
        for statement in addressable_statements_of(function)
        if isinstance(statement, For)
        and (statement.kind == "parallel" or statement.thread is not None)
    ]
    if not loops:
        return
    scopes = {
        buffer.name: buffer.scope for buffer in all_buffers(function) if buffer.scope != "global"
    }
    for loop in loops:
        private = [buffer for buffer, scope in scopes.items() if _is_private(loop, scope)]
        if not private:
            continue
        cursor = find_by_name(top, For, loop.var)[0]
        outside = _accessed_buffers(function_with_replaced(cursor, ()).body).intersection(private)
        inside = _accessed_buffers(loop.body) if outside else set()
        yield from [(cursor, buffer) for buffer in private if buffer in outside & inside]


def _accessed_buffers(body: tuple[Stmt, ...]) -> set[str]:
    """Return the names of the buffers that statements access."""
    return {access.buffer for access in collect(INDEXED_NODES, *body)}


def _is_private(loop: For, scope: str) -> bool:
    """Return whether each iteration of a loop has its own copy of buffers of a scope."""
    if loop.kind == "parallel":
        return scope != "global"
    return loop.thread is not None and loop.thread.partition(".")[0] in PRIVATE_ALONG[scope]
