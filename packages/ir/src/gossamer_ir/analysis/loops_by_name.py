"""The loops of a function by name, with bounds of expressions in their variables."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gossamer_ir.analysis.overflow import OverflowAnalysis, overflow_of
from gossamer_ir.nodes import Block, Expr, For, Function, Let, Stmt
from gossamer_ir.support.identity_cache import memoize_by_identity
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import every_statement, statements


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
    >>> rows = Let(index_var("rows"), index(8))
    >>> function = Function("f", (), (rows, For("i", ZERO, index_var("rows"), ())))
    >>> loops_of(function)["i"].extent == index(8)
    True
    """
    values: dict[str, Expr] = {}
    loops = LoopsByName(function)
    for node in every_statement(function):
        match node:
            case Let():
                values[node.var.name] = resolve(node.value, values)
            case Block():
                values |= {item.var: resolve(item.value, values) for item in node.iters}
            case For():
                start, extent = resolve(node.start, values), resolve(node.extent, values)
                is_same = start is node.start and extent is node.extent
                loops[node.var] = node if is_same else replace(node, start=start, extent=extent)
    return loops


def loops_within(body: Iterable[Stmt]) -> set[str]:
    """Return the names of the loops in a body, including those of inits."""
    return {stmt.var for stmt in statements(body) if isinstance(stmt, For)}
