"""Buffers that threads do not share, by scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gossamer_ir.nodes import For, Function
from gossamer_ir.traversal.access_types import INDEXED_NODES
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import access_counts
from gossamer_ir.traversal.node_index import nodes_in_body
from gossamer_schedule.cursor.cursor_at import addressable_stmts_of

PRIVATE_ALONG: dict[str, tuple[str, ...]] = {
    "global": (),
    "shared": ("blockIdx",),
    "warp": ("blockIdx",),
    "local": ("blockIdx", "threadIdx"),
    "fragment": ("blockIdx",),
}
"""For each scope, the thread axes along which every thread has its own copy of a buffer."""


def escaping_private_buffers(function: Function) -> Iterator[tuple[For, str]]:
    """Yield pairs of a thread loop and a buffer that its threads do not share, used inside and outside it.

    A value that one thread stores is then not the value used outside the loop.

    >>> from gossamer_schedule import bind
    >>> from gossamer_testkit.examples import STAGED
    >>> made = bind(STAGED, "i", thread="blockIdx.x").module
    >>> [*escaping_private_buffers(made.functions[0])]
    []
    """
    loops = [
        stmt
        for stmt in addressable_stmts_of(function)
        if isinstance(stmt, For) and (stmt.kind == "parallel" or stmt.thread is not None)
    ]
    if not loops:
        return
    scopes = {
        buffer.name: buffer.scope for buffer in all_buffers(function) if buffer.scope != "global"
    }
    if not scopes:
        return
    everywhere = Counter(access.buffer for access in nodes_in_body(function, *INDEXED_NODES))
    for loop in loops:
        private = [name for name, scope in scopes.items() if _is_private(loop, scope)]
        if not everywhere.keys() & private:
            continue
        outside = everywhere - access_counts(loop)
        if outside.keys() & private:
            inside = access_counts(*loop.body)
            yield from [(loop, name) for name in private if outside[name] and inside[name]]


def _is_private(loop: For, scope: str) -> bool:
    """Return whether each iteration of a loop has its own copy of buffers of a scope."""
    if loop.kind == "parallel":
        return scope != "global"
    return loop.thread is not None and loop.thread.partition(".")[0] in PRIVATE_ALONG[scope]
