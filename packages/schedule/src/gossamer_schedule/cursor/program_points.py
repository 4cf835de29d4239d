"""Program points at which only the facts of a function are known, or also those of one block."""

from __future__ import annotations

from gossamer_ir.analysis.axes.axis_facts import known_facts
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.nodes import Block, Function
from gossamer_schedule.cursor.cursor_at import Cursor


def point_in_function(function: Function) -> ProgramPoint:
    """Return a program point at which only facts that hold throughout the function are known."""
    return ProgramPoint(function, facts=known_facts(function), binds_all=True)


def point_in_block(block: Cursor[Block]) -> ProgramPoint:
    """Return a program point in a block: its variables are in their domains, and its predicate holds."""
    point = point_in_function(block.function)
    for iterator in block.node.iters:
        point.assume_domain(iterator)
    if block.node.predicate is not None:
        point.assume(block.node.predicate)
    return point
