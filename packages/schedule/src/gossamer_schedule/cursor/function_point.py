"""Program points at which only the facts that hold throughout a function are known."""

from __future__ import annotations

from gossamer_ir.analysis.axis_facts import known_facts
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.nodes import Function


def point_in_function(function: Function) -> ProgramPoint:
    """Return a program point at which only facts that hold throughout the function are known."""
    return ProgramPoint(function, facts=known_facts(function), binds_all=True)
