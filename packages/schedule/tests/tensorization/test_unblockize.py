"""Nested blocks as one block."""

from __future__ import annotations

from msgspec.structs import replace
from program_results import outcome

from gossamer_ir.nodes import Block
from gossamer_schedule.cursor.cursor_at import cursor_at
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.tensorization.unblockize import without_outer_blocks

NESTED = """
for i_0 in T.serial(3):
    with T.block("outer"):
        vo = T.axis.spatial(2, i_0)
        T.where(vo < 2)
        for i_1 in T.serial(4):
            with T.block("inner"):
                vi = T.axis.spatial(4, i_1)
                T.where(X[vo + 6, vi] >= 0.0)
                Y[vo, vi] = X[vo + 6, vi]
"""


def test_what_an_inner_predicate_reads_exists_under_that_of_the_outer_block(program):
    """Row 8 of X does not exist, and the outer predicate keeps the inner one from reading it."""
    module = program(NESTED)
    joined = without_outer_blocks(find_block(cursor_at(module, module.functions[0]), block="outer"))
    assert not any(isinstance(parent, Block) for parent in joined.parents)
    assert outcome(replace(module, functions=(joined.function,))) == outcome(module)
