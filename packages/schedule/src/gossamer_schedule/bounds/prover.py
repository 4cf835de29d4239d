"""What may be relied on all through a function: what nothing in it changes."""

from __future__ import annotations

from gossamer_ir.analysis.axis_facts import known_facts
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.nodes import Function


def point_in(function: Function) -> ProgramPoint:
    """A place in a function of which nothing is known yet but what holds all through it."""
    return ProgramPoint(function, facts=known_facts(function), binds_all=True)
