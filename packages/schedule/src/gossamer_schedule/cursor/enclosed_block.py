"""The block at a cursor, as the analysis of inits takes it."""

from __future__ import annotations

from gossamer_ir.analysis.accesses.init_nests import EnclosedBlock
from gossamer_ir.nodes import Block
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at


def enclosed_block(cursor: Cursor[Block]) -> EnclosedBlock:
    """Return the block at a cursor with the loops around it, in the same outer block."""
    return EnclosedBlock(cursor.node, cursor.loops_in_block, values_at(cursor))
