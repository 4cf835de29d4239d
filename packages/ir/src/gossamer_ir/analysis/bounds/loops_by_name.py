"""The loops of a function by name, with bounds of expressions in their variables."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.overflow import OverflowAnalysis, overflow_of
from gossamer_ir.core.statement_kinds import VALUE_BINDING_STMTS
from gossamer_ir.nodes import Expr, For, Function, Stmt
from gossamer_ir.traversal.statement_queries import loop_of
from gossamer_ir.traversal.substitute import resolve, resolved_values
from gossamer_ir.traversal.walk import every_stmt, stmts
from gossamer_support.identity_cache import memoize_by_identity


class LoopsByName(dict[str, For]):
    """Loops by name, with bounds of expressions in their variables."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function

    @property
    def overflow(self) -> OverflowAnalysis:
        """Bounds of absolute values, computed on demand: most indices are sums of loop variables, which do
        not need them."""
        return overflow_of(self._function)


@memoize_by_identity
def loops_of(function: Function) -> LoopsByName:
    """Return every loop by name, including those of inits, with start and extent in terms of loop
    variables.

    >>> from gossamer_ir.core.build import ZERO, index, index_var
    >>> from gossamer_ir.nodes import Let
    >>> rows = Let(index_var("rows"), index(8))
    >>> function = Function("f", (), (rows, For("i", ZERO, index_var("rows"), ())))
    >>> loops_of(function)["i"].extent == index(8)
    True
    """
    values: dict[str, Expr] = {}
    loops = LoopsByName(function)
    for node in every_stmt(function):
        if type(node) in VALUE_BINDING_STMTS:
            values |= resolved_values(node, values)
        loop = loop_of(node)
        if loop is not None:
            start, extent = resolve(loop.start, values), resolve(loop.extent, values)
            is_same = start is loop.start and extent is loop.extent
            loops[loop.var] = loop if is_same else replace(loop, start=start, extent=extent)
    return loops


def loops_within(body: Iterable[Stmt]) -> set[str]:
    """Return the names of the loops in a body, including those of inits."""
    loops = map(loop_of, stmts(body))
    return {loop.var for loop in loops if loop is not None}
