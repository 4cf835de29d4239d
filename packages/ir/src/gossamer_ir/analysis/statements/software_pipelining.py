"""Software pipelining: the annotation of a loop whose copies for later iterations run ahead."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.annotations import PIPELINE, without_annotation
from gossamer_ir.nodes import For, Function, Node, Stmt
from gossamer_ir.traversal.access_types import ACCESSES
from gossamer_ir.traversal.buffer_uses import (
    access_counts,
    buffers_read_in,
    buffers_written_outside,
)
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import every_stmt

MIN_STAGES, MAX_STAGES = 2, 8
"""The least and the greatest number of stages. One stage would be the loop without the annotation."""


def is_pipelined(loop: For) -> bool:
    """Return whether a loop is annotated with `PIPELINE`."""
    return PIPELINE in dict(loop.annotations)


def copies_ahead(loop: For, function: Function) -> tuple[Stmt, ...]:
    """Return the longest prefix of the body of a loop that may run ahead of the rest; empty if there is none.

    The prefix must fill buffers that could be private to each iteration and that the rest does not write.
    It must read only buffers that the loop does not write.

    >>> from gossamer_ir.script import parse_module
    >>> (function,) = parse_module('''
    ... @T.prim_func
    ... def staged(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X_shared = T.alloc_buffer((1,), "float32", scope="shared")
    ...         X_shared[0] = X[i]
    ...         Y[i] = X_shared[0] * 2.0
    ... ''').functions
    >>> [type(stmt).__name__ for stmt in copies_ahead(function.body[0], function)]
    ['Allocate', 'Store']
    """
    for count in range(len(loop.body) - 1, 0, -1):
        first, rest = loop.body[:count], loop.body[count:]
        filled = buffers_written_outside(first)
        is_for_rest = (
            bool(filled)
            and filled <= buffers_read_in(rest)
            and not filled & buffers_written_outside(rest)
        )
        is_fixed = not buffers_read_in(first) & buffers_written_outside(loop.body)
        if is_for_rest and is_fixed and all(_is_own(name, loop, function) for name in filled):
            return first
    return ()


def without_stale_pipelines(function: Function) -> Function:
    """Return a function without the annotation of loops that no longer begin with a copy that may run ahead:
    a pass may have removed what reads it, or copied the loop."""
    stale = {
        loop.var
        for loop in every_stmt(function)
        if isinstance(loop, For) and is_pipelined(loop) and not copies_ahead(loop, function)
    }
    if not stale:
        return function

    def rule(node: Node) -> For | None:
        if not isinstance(node, For) or node.var not in stale:
            return None
        return without_annotation(node, PIPELINE)

    return replace(function, body=rewrite_body(function.body, rule, leaves=False))


def _is_own(name: str, loop: For, function: Function) -> bool:
    """Return whether a buffer could be private to each iteration: the caller does not pass it, and it is not
    used outside the loop."""
    if any(buffer.name == name and buffer.handle is not None for buffer in function.buffers):
        return False
    everywhere = access_counts(*function.body, kinds=ACCESSES)
    return everywhere[name] == access_counts(loop, kinds=ACCESSES)[name]
