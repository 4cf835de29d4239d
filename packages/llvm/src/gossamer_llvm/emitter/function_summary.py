"""Summarizes a function before it is emitted, in one walk over its statements."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer_ir.core.statement_kinds import CALLING_STMTS, CHECKING_STMTS, LOOPS, WRITES
from gossamer_ir.nodes import (
    Buffer,
    Expr,
    Function,
    Launch,
    Let,
    Load,
    ParallelFor,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_support.identity_cache import memoize_by_identity

_WORKING = frozenset({*LOOPS, *WRITES}.difference(CALLING_STMTS))
"""The types of statements that write, or that repeat their bodies."""


class FunctionSummary(msgspec.Struct, frozen=True):
    """Properties of the statements of a function."""

    passed: frozenset[str]
    """Variables that are passed to calls."""
    written: frozenset[str]
    """Handles of the buffers that it writes."""
    replaced: frozenset[tuple[str, tuple[Expr, ...]]]
    """The elements, by buffer and indices, that it binds to variables and stores anew: `t = NEXT[c]`, then
    `NEXT[c] = t + 1`."""
    bounds_checked_buffers: tuple[str, ...]
    """Buffers that guards name."""
    aliasing: frozenset[str]
    """Functions to which a call passes the same variable twice, so that their parameters
    are not `noalias`."""
    has_only_calls: bool
    """True if it has no loop and writes nothing itself."""


@memoize_by_identity
def summarize(function: Function) -> FunctionSummary:
    """Return the summary of a function."""
    body = tuple(stmts(function.body))
    calls = [node for node in body if isinstance(node, CALLING_STMTS)]
    passed = [(call.function, _names(call)) for call in calls]
    stored = {node.buffer for node in body if isinstance(node, WRITES)}
    handles = {
        buffer.handle
        for buffer in function.buffers
        if isinstance(buffer, Buffer) and buffer.handle is not None and buffer.name in stored
    }
    return FunctionSummary(
        passed=frozenset(name for _, names in passed for name in names),
        written=frozenset(handles),
        replaced=_replaced_elements(body),
        bounds_checked_buffers=tuple(
            node.buffer for node in body if isinstance(node, CHECKING_STMTS)
        ),
        aliasing=frozenset(name for name, names in passed if len(set(names)) < len(names)),
        has_only_calls=not any(type(node) in _WORKING for node in body),
    )


# Other statements: they replace no element that they bind.
def _replaced_elements(body: Sequence[Stmt]) -> frozenset[tuple[str, tuple[Expr, ...]]]:
    """Return the elements that lets load and stores replace."""
    stored = {(node.buffer, node.indices) for node in body if isinstance(node, Store)}
    lets = [node.value for node in body if isinstance(node, Let)]
    return frozenset({(load.buffer, load.indices) for load in collect(Load, *lets)} & stored)


def _names(call: ParallelFor | Launch) -> list[str]:
    return [arg.name for arg in call.args if isinstance(arg, Var)]
