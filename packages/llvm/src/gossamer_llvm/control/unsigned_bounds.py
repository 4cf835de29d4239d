"""Conditions of branches and guards, with one comparison for both bounds of an index."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gossamer_ir.core.build import ZERO
from gossamer_ir.core.conditions import TRUE, conjunction, conjuncts
from gossamer_ir.nodes import Buffer, Cast, Compare, Expr


def with_unsigned_bounds(condition: Expr, buffers: Iterable[Buffer]) -> Expr:
    """Return a condition in which `x >= 0 and x < extent` is one unsigned comparison, for the extents of the
    buffers that are passed.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.core.conditions import in_range
    >>> from gossamer_ir.script import print_expr
    >>> i, n = index_var("i"), index_var("n")
    >>> inside = conjunction(*in_range(i, n))
    >>> print_expr(with_unsigned_bounds(inside, [Buffer("X", (n,), "float32", "x")]))
    'T.uint64(i) < T.uint64(n)'
    """
    parts = list(conjuncts(condition))
    if len(parts) < 2:
        return condition
    # A caller cannot pass an array of negative size, and negative numbers are large unsigned ones.
    extents = {extent for buffer in buffers if buffer.handle is not None for extent in buffer.shape}
    conditions = parts[:1]
    for part in parts[1:]:
        first = conditions[-1]
        if isinstance(part, Compare) and _bounds_one_index(first, part, extents):
            conditions[-1] = Compare("lt", Cast("uint64", part.lhs), Cast("uint64", part.rhs))
        else:
            conditions.append(part)
    return conjunction(*conditions) or TRUE


def _bounds_one_index(first: Expr, second: Compare, extents: Collection[Expr]) -> bool:
    """Return whether two conditions are that an index is not negative, and that it is less than one of the
    extents."""
    if second.op != "lt" or second.rhs not in extents:
        return False
    return first == Compare("ge", second.lhs, ZERO)
