"""Positions in fibers: relative to the start of a fiber, or found by a search in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from gossamer_ir.core.build import ZERO, add, sub
from gossamer_ir.nodes import Binary, Compare, Const, Expr, Search, Select, Var

FoundSearches: TypeAlias = Mapping[Expr, Search]
"""The variables of lets that hold the element that an exact search found, or -1; and the search."""


# Other expressions and operations: nothing is concluded from them.
def element_number(start: Expr, position: Expr, searches: FoundSearches) -> Expr:
    """Return start + position, simplified to the element from which the position was computed, if any.

    >>> from gossamer_ir.core.build import index_var
    >>> start, e = index_var("start"), index_var("e")
    >>> element_number(start, sub(e, start), {}) == e
    True
    """
    match start, position:
        case _, Binary(op="sub", lhs=origin, rhs=first) if first == start:
            return origin
        case _, Select() if (element := element_found(position, start, searches)) is not None:
            return element
        case _, Binary(op="add", lhs=before, rhs=Const() as step):
            origin = element_number(start, before, searches)
            if origin != add(start, before):
                return add(origin, step)
        case (
            Binary(op="mul", lhs=Binary(op="floordiv") as fiber, rhs=width),
            Binary(op="floormod", lhs=number, rhs=divisor),
        ) if divisor == width and fiber == Binary("floordiv", number, width):
            return number
    return add(start, position)


def position_in_fiber(element: Expr, start: Expr) -> Expr:
    """Return the position in its fiber of the element that an exact search found; -1 if it found none."""
    if start == ZERO:
        return element
    return Select(Compare("lt", element, ZERO), element, sub(element, start))


# Other expressions: nothing is concluded from them.
def element_found(position: Expr, start: Expr, searches: FoundSearches) -> Search | Var | None:
    """Return the element that an exact search found, if the position is that of the element in the fiber with
    this start; else None. The element is the search itself, or the variable of its let."""
    element = position.if_true if isinstance(position, Select) else position
    is_element = isinstance(element, Search) and element.kind == "exact"
    if not (is_element or element in searches) or position != position_in_fiber(element, start):
        return None
    assert isinstance(element, Search | Var)
    return element
