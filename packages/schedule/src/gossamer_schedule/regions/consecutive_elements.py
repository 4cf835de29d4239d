"""Consecutive elements of a buffer that the loops inside a loop visit."""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from gossamer_ir.analysis.accesses.linear_form import form_of
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ONE, ZERO, mul
from gossamer_ir.dependence.mixed_radix import lowest_loops
from gossamer_ir.nodes import Block, Expr, For
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor


class ElementSpan(msgspec.Struct, frozen=True):
    """Consecutive elements: the indices of the first one, and their number."""

    indices: tuple[Expr, ...]
    count: Expr


def span_below(cursor: Cursor[Block | For], read: tuple[Expr, ...]) -> ElementSpan | None:
    """Return the elements over which the loops inside a loop run; None if they may not be consecutive.

    `read` are the indices of an element, in terms of loops.
    """
    loops = loops_of(cursor.function)
    inner = {loop.var for loop in collect(For, *cursor.node.body)}
    *outer, last = read
    order = _consecutive_loops(last, inner, loops)
    if order is None or any(free_vars(at) & inner for at in outer):
        return None
    count: Expr = ONE
    for name in order:
        count = mul(count, loops[name].extent)
    first = simplify(substitute(last, dict.fromkeys(order, ZERO)))
    return ElementSpan((*outer, first), count)


def _consecutive_loops(
    last: Expr, inner: Set[str], loops: Mapping[str, For]
) -> tuple[str, ...] | None:
    """Return the inner loops that are digits of an index without gaps; None if they are not.

    Their extents must not depend on inner loops, so that their product is the number of elements.
    """
    order = lowest_loops(form_of(last, {}, loops=loops), inner, loops=loops)
    if order is None:
        return None
    return None if any(free_vars(loops[name].extent) & inner for name in order) else order
