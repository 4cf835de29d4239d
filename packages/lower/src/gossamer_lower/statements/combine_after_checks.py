"""Combinations whose stores have been lowered."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import Combine, Stmt, Store


def combine_after_checks(reducer_name: str, lowered: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return the combination of the stores among the statements, after all others: lets and guards, which
    the stores depend on.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> from gossamer_ir.nodes import Let
    >>> lookup, store = Let(index_var("at"), ONE), Store("Y", (ZERO,), ONE)
    >>> combine_after_checks("add", [lookup, store]) == (lookup, Combine("add", (store,)))
    True
    """
    stores = tuple(stmt for stmt in lowered if isinstance(stmt, Store))
    checks = (stmt for stmt in lowered if not isinstance(stmt, Store))
    return (*checks, Combine(reducer_name, stores))
