"""Buffers that different threads do not share."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.nodes import For, Stmt
from gossamer_ir.traversal.effects import TOUCHING, all_buffers
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor import Cursor, named, replaced, statements_of

SEEN_BY: dict[str, tuple[str, ...]] = {
    "global": (),
    "shared": ("blockIdx",),
    "warp": ("blockIdx",),
    "local": ("blockIdx", "threadIdx"),
    "fragment": ("blockIdx",),
}
"""The axes whose different threads each have their own buffer of a scope."""


def split_buffers(top: Cursor) -> Iterator[tuple[Cursor, str]]:
    """The loops on threads that do not see each other's buffers of a scope, with such a buffer of which they
    hold some uses, and not all: what one thread stores is not what is used outside of the loop.

    >>> from gossamer_schedule import bind
    >>> from gossamer_testkit.examples import STAGED
    >>> from gossamer_schedule.cursor.cursor import cursor_at
    >>> made = bind(STAGED, "i", thread="blockIdx.x").module
    >>> [*split_buffers(cursor_at(made, made.functions[0]))]
    []
    """
    function = top.function
    loops = [
        found
        for found in statements_of(function)
        if isinstance(found, For) and (found.kind == "parallel" or found.thread is not None)
    ]
    if not loops:
        return
    scopes = {found.name: found.scope for found in all_buffers(function) if found.scope != "global"}
    for loop in loops:
        apart = [buffer for buffer, scope in scopes.items() if _is_apart(loop, scope)]
        if not apart:
            continue
        cursor = named(top, For, loop.var)[0]
        outside = _used(replaced(cursor, ()).body).intersection(apart)
        inside = _used(loop.body) if outside else set()
        yield from [(cursor, buffer) for buffer in apart if buffer in outside & inside]


def _used(body: tuple[Stmt, ...]) -> set[str]:
    """The buffers that statements touch."""
    return {found.buffer for found in collect(TOUCHING, *body)}


def _is_apart(loop: For, scope: str) -> bool:
    """Whether different iterations of a loop have buffers of their own."""
    if loop.kind == "parallel":
        return scope != "global"
    return loop.thread is not None and loop.thread.partition(".")[0] in SEEN_BY[scope]
