"""The loop stage: loops and blocks over ordinary buffers, searches, vectors."""

from __future__ import annotations

from gossamer_ir.nodes import Block, Buffer, Combine, Guard, Search, VScale
from gossamer_ir.verify.buffer_accesses import check_search
from gossamer_ir.verify.context import Stage
from gossamer_ir.verify.expressions import SCALAR_EXPRESSIONS
from gossamer_ir.verify.flat import check_guard
from gossamer_ir.verify.reducers import check_combine
from gossamer_ir.verify.statements import LOOP_STATEMENTS, LOOPS, PLAIN_STATEMENTS, check_block
from gossamer_ir.verify.vector_expressions import VECTOR_EXPRESSIONS, check_vscale

LOOP = Stage(
    name="loop",
    expressions=SCALAR_EXPRESSIONS
    | VECTOR_EXPRESSIONS
    | {Search: check_search, VScale: check_vscale},
    statements=PLAIN_STATEMENTS
    | LOOP_STATEMENTS
    | {Block: check_block, Combine: check_combine, Guard: check_guard},
    buffers=(Buffer,),
    loops=LOOPS,
)
