"""Definite assignment: whether statements give an element of a buffer a value each time that they run.

All accesses are taken to be to one element, which is what `scatters.required_element` requires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer_ir.build import integer_value
from gossamer_ir.nodes import Block, Combine, For, If, Stmt, Store
from gossamer_schedule.accesses import mentioned


def gives_value(body: Sequence[Stmt], buffer: str) -> bool:
    """Return whether a body always stores to a buffer, and reads nothing of it before.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_schedule.sites import statements
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
    >>> gives_value(loop.body, "Y")
    False
    >>> gives_value(loop.body[0].then_body, "Y")
    True
    """
    for statement in body:
        if buffer in mentioned((statement,)):
            return _gives(statement, buffer)
    return False


def _gives(statement: Any, buffer: str) -> bool:
    """Whether a statement does, which touches the buffer."""
    match statement:
        case Store():
            return statement.predicate is None and not _reads(statement, buffer)
        case If():
            bodies = (statement.then_body, statement.else_body)
            is_asked = buffer in mentioned((statement.condition,))
            return not is_asked and all(gives_value(body, buffer) for body in bodies)
        case For():
            is_asked = buffer in mentioned((statement.start, statement.extent))
            return (
                not is_asked and _has_iteration(statement) and gives_value(statement.body, buffer)
            )
        case Block(predicate=None):
            is_asked = buffer in mentioned(statement.iters)
            return not is_asked and gives_value((*statement.init, *statement.body), buffer)
    return False


def _reads(store: Store, buffer: str) -> bool:
    return buffer in mentioned((*store.indices, store.value))


def always_stores(body: Sequence[Stmt], buffer: str) -> bool:
    """Return whether a body stores to a buffer each time that it runs, whatever it reads before."""
    return any(_stores(statement, buffer) for statement in body)


def _stores(statement: Any, buffer: str) -> bool:
    match statement:
        case Store(predicate=None):
            return bool(statement.buffer == buffer)
        case Combine():
            return always_stores(statement.stores, buffer)
        case If():
            bodies = (statement.then_body, statement.else_body)
            return all(always_stores(body, buffer) for body in bodies)
        case For():
            return _has_iteration(statement) and always_stores(statement.body, buffer)
        case Block(predicate=None):
            return always_stores((*statement.init, *statement.body), buffer)
    return False


def _has_iteration(loop: For) -> bool:
    return (integer_value(loop.extent) or 0) > 0
