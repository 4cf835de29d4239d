"""Definite assignment: whether statements give an element of a buffer a value each time that they run.

All accesses are taken to be to one element, which is what `written_element.required_element` requires.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.core.statement_kinds import Body, Effects, effects_of
from gossamer_ir.nodes import Block, If, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed


def definitely_assigns(body: Sequence[Stmt], buffer_name: str) -> bool:
    """Return whether a body always stores to a buffer, and reads nothing of it before.

    >>> from gossamer_ir.script import parse_module
    >>> text = '''
    ... @T.prim_func
    ... def positive(x: T.handle, y: T.handle) -> None:
    ...     X = T.match_buffer(x, (8,), "float32")
    ...     Y = T.match_buffer(y, (8,), "float32")
    ...     for i in T.serial(8):
    ...         if X[i] > T.float32(0):
    ...             Y[i] = X[i]
    ... '''
    >>> (loop,) = parse_module(text).functions[0].body
    >>> definitely_assigns(loop.body, "Y")
    False
    >>> definitely_assigns(loop.body[0].then_body, "Y")
    True
    """
    for stmt in body:
        if buffer_name in buffers_accessed(stmt):
            return _stmt_assigns(stmt, buffer_name)
    return False


# Other statements: nothing is concluded from them.
def _stmt_assigns(stmt: Stmt, buffer_name: str) -> bool:
    """Return whether a statement that uses the buffer always stores to it, and reads nothing of it before."""
    effects = effects_of(stmt)
    domains = stmt.iters if isinstance(stmt, Block) else ()
    # A read before the store would see the old value.
    if buffer_name in buffers_accessed(*effects.evaluates, *effects.reads, *domains):
        return False
    # A predicated store may leave the old value.
    if effects.writes:
        return _is_unpredicated(effects)
    if isinstance(stmt, If):
        return all(definitely_assigns(body.stmts, buffer_name) for body in effects.bodies)
    accessing = [body for body in effects.bodies if buffer_name in buffers_accessed(*body.stmts)]
    return any(
        _always_runs(body, stmt) and definitely_assigns(body.stmts, buffer_name)
        for body in accessing[:1]
    )


def always_stores(body: Sequence[Stmt], buffer_name: str) -> bool:
    """Return whether a body stores to a buffer each time that it runs, whatever it reads before."""
    return any(_stmt_always_stores(stmt, buffer_name) for stmt in body)


def _stmt_always_stores(stmt: Stmt, buffer_name: str) -> bool:
    effects = effects_of(stmt)
    if any(write.buffer == buffer_name for write in effects.writes):
        return _is_unpredicated(effects)
    if isinstance(stmt, If):
        return all(always_stores(body.stmts, buffer_name) for body in effects.bodies)
    return any(
        _always_runs(body, stmt) and always_stores(body.stmts, buffer_name)
        for body in effects.bodies
    )


def _is_unpredicated(effects: Effects) -> bool:
    """Return whether the stores of a statement are unpredicated."""
    return all(getattr(write, "predicate", None) is None for write in effects.writes)


def _always_runs(body: Body, stmt: Stmt) -> bool:
    """Return whether a body runs whenever its statement does. An init does if the block has no predicate."""
    is_plain = isinstance(stmt, Block) and stmt.predicate is None
    return body.runs_always or (body.is_init and is_plain)
