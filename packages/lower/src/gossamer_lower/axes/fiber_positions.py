"""Positions in fibers: relative to the start of a fiber, or found by a search in it."""

from __future__ import annotations

from gossamer_ir.core import build
from gossamer_ir.nodes import Binary, Compare, Const, Expr, Search, Select


def element_number(start: Expr, position: Expr) -> Expr:
    """Return start + position, simplified to the element from which the position was computed, if any.

    >>> start, e = build.index_var("start"), build.index_var("e")
    >>> element_number(start, build.sub(e, start)) == e
    True
    """
    match start, position:
        case _, Binary(op="sub", lhs=origin, rhs=first) if first == start:
            return origin
        case _, Select(
            condition=Compare(op="lt", lhs=Search() as origin), if_false=Binary(op="sub", rhs=first)
        ) if first == start and position == position_in_fiber(origin, start):
            return origin
        case _, Binary(op="add", lhs=before, rhs=Const() as step):
            origin = element_number(start, before)
            if origin != build.add(start, before):
                return build.add(origin, step)
        case (
            Binary(op="mul", lhs=Binary(op="floordiv") as fiber, rhs=width),
            Binary(op="floormod", lhs=number, rhs=divisor),
        ) if divisor == width and fiber == Binary("floordiv", number, width):
            return number
    return build.add(start, position)


def position_in_fiber(search: Search, start: Expr) -> Expr:
    """Return the position in its fiber of the element that an exact search found; -1 if it found none."""
    return Select(Compare("lt", search, build.ZERO), search, build.sub(search, start))


def found_by_search(position: Expr, start: Expr) -> Search | None:
    """Return the exact search that computes a position in the fiber with this start; None if none does."""
    match position:
        case Search(kind="exact") if start == build.ZERO:
            return position
        case Select(condition=Compare(op="lt", lhs=Search() as search)) if (
            position == position_in_fiber(search, start)
        ):
            return search
    return None
