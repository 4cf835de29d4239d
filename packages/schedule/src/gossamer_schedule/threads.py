"""Buffers that different threads do not share."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.effects import TOUCHING
from gossamer_ir.nodes import For, Function, Stmt
from gossamer_ir.walk import occurrences
from gossamer_schedule.resolve import all_buffers
from gossamer_schedule.sites import Site, named, statements

SEEN_BY: dict[str, tuple[str, ...]] = {
    "global": (),
    "shared": ("blockIdx",),
    "warp": ("blockIdx",),
    "local": ("blockIdx", "threadIdx"),
    "fragment": ("blockIdx",),
}
"""The axes whose different threads each have their own buffer of a scope."""


def split_buffers(function: Function) -> Iterator[tuple[Site, str]]:
    """The loops on threads that do not see each other's buffers of a scope, with such a buffer of which they
    hold some uses, and not all: what one thread stores is not what is used outside of the loop.

    >>> from gossamer_schedule import bind
    >>> from gossamer_schedule.examples import STAGED
    >>> [*split_buffers(bind(STAGED, "i", thread="blockIdx.x").module.functions[0])]
    []
    """
    loops = [
        found
        for found in statements(function.body)
        if isinstance(found, For) and (found.kind == "parallel" or found.thread is not None)
    ]
    if not loops:
        return
    scopes = {found.name: found.scope for found in all_buffers(function) if found.scope != "global"}
    total = _uses(function.body) if scopes else {}
    for loop in loops:
        inside = _uses(loop.body) if scopes else {}
        for buffer, scope in scopes.items():
            if _is_apart(loop, scope) and 0 < inside.get(buffer, 0) < total[buffer]:
                yield named(function, For, loop.var)[0], buffer


def _uses(body: tuple[Stmt, ...]) -> dict[str, int]:
    """How often statements touch each buffer."""
    counts: dict[str, int] = {}
    for found in occurrences(TOUCHING, *body):
        counts[found.buffer] = counts.get(found.buffer, 0) + 1
    return counts


def _is_apart(loop: For, scope: str) -> bool:
    """Whether different iterations of a loop have buffers of their own."""
    if loop.kind == "parallel":
        return scope != "global"
    return loop.thread is not None and loop.thread.partition(".")[0] in SEEN_BY[scope]
