"""The position stage: axes and sparse buffers, loops and blocks, searches."""

from __future__ import annotations

from gossamer_ir.nodes import Block, Buffer, Combine, Guard, Search, SparseBuffer, VScale
from gossamer_ir.verify.context import Stage
from gossamer_ir.verify.declarations.reducers import check_combine
from gossamer_ir.verify.expressions.buffer_accesses import check_search
from gossamer_ir.verify.expressions.expressions import SCALAR_EXPRESSIONS
from gossamer_ir.verify.expressions.vector_expressions import check_vscale
from gossamer_ir.verify.stages.flat import check_guard
from gossamer_ir.verify.statements.statements import (
    LOOP_KINDS,
    LOOP_STATEMENTS,
    PLAIN_STATEMENTS,
    check_block,
)

POSITION = Stage(
    name="position",
    expressions=SCALAR_EXPRESSIONS | {Search: check_search, VScale: check_vscale},
    statements=PLAIN_STATEMENTS
    | LOOP_STATEMENTS
    | {Block: check_block, Combine: check_combine, Guard: check_guard},
    buffers=(SparseBuffer, Buffer),
    loops=LOOP_KINDS,
    has_axes=True,
)
