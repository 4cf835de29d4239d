"""Expressions that never decrease along a loop."""

from __future__ import annotations

from gossamer_ir.analysis.axis_facts import known_facts
from gossamer_ir.analysis.monotone import never_decreases
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.nodes import Expr
from gossamer_schedule.cursor.cursor import Cursor


def is_monotone(expr: Expr, cursor: Cursor) -> bool:
    """Whether an expression never decreases, nor wraps, from one iteration of a loop to the next, and to
    the value behind the last one."""
    loop = cursor.node
    point = ProgramPoint(cursor.function, facts=known_facts(cursor.function), binds_all=True)
    point.begin(loop.body)
    point.assume_loop(loop)
    return never_decreases(expr, loop, point)
