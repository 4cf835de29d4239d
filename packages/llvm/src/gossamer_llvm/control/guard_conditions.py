"""The conditions of guards, with one comparison for both bounds of an index."""

from __future__ import annotations

from collections.abc import Collection

from gossamer_ir.core.build import ZERO
from gossamer_ir.core.conditions import TRUE, conjunction, conjuncts
from gossamer_ir.nodes import Buffer, Cast, Compare, Expr


def with_unsigned_bounds(condition: Expr, buffer: Buffer) -> Expr:
    """Return the condition of a guard of a buffer, in which `x >= 0 and x < extent` is one unsigned
    comparison.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.core.conditions import in_range
    >>> from gossamer_ir.script import print_expr
    >>> i, n = index_var("i"), index_var("n")
    >>> inside = conjunction(*in_range(i, n))
    >>> print_expr(with_unsigned_bounds(inside, Buffer("X", (n,), "float32", "x")))
    'T.uint64(i) < T.uint64(n)'
    """
    # A caller cannot pass an array of negative size, and negative numbers are large unsigned ones.
    extents = buffer.shape if buffer.handle is not None else ()
    parts: list[Expr] = []
    for part in conjuncts(condition):
        if parts and _bounds_one_index(parts[-1], part, extents):
            assert isinstance(part, Compare)
            parts[-1] = Compare("lt", Cast("uint64", part.lhs), Cast("uint64", part.rhs))
        else:
            parts.append(part)
    return conjunction(*parts) or TRUE


def _bounds_one_index(first: Expr, second: Expr, extents: Collection[Expr]) -> bool:
    """Return whether two conditions are that an index is not negative, and that it is less than one of the
    extents."""
    match first, second:
        case Compare("ge", index, low), Compare("lt", other, high):
            return low == ZERO and index == other and high in extents
    return False
