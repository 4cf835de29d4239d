"""The serial loops of a program of the loop stage that are not inside another loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import For, Stmt


def outermost_loops(body: Iterable[Stmt]) -> Iterator[For]:
    """Yield the serial loops of a body that are not inside another loop.

    >>> from gossamer_testkit.examples import program
    >>> (function,) = program('''
    ... if n > 4:
    ...     for i in T.serial(n):
    ...         for j in T.serial(n):
    ...             Y[i] = Y[i] + X[j]
    ... ''').functions
    >>> [loop.var for loop in outermost_loops(function.body)]
    ['i']
    """
    for stmt in body:
        if not isinstance(stmt, For):
            for inner in effects_of(stmt).bodies:
                yield from outermost_loops(inner.stmts)
        elif stmt.kind == "serial":
            yield stmt
