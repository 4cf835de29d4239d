"""Expressions that never decrease from one iteration of a loop to the next."""

from __future__ import annotations

from gossamer_ir.analysis.proofs.monotone import is_monotone
from gossamer_ir.nodes import Expr, For
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.program_points import point_in_function


def is_monotone_along(expr: Expr, cursor: Cursor[For]) -> bool:
    """Return whether an expression never decreases nor overflows from one iteration of a loop to the next,
    and from the last one to the value after it."""
    loop = cursor.node
    point = point_in_function(cursor.function)
    point.restrict_changing(loop.body)
    point.assume_loop(loop)
    return is_monotone(expr, loop, point)
